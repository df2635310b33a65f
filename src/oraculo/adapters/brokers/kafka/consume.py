"""One queue as this process consumes it: a member of the queue's own consumer group.

Every queue is a group of its own, so that a process that begins or ceases to fetch from one queue does not disturb the
others; unless the group of a queue is given. Partitions come and go with the group; for each one that is
ours there is a ledger.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable
from logging import DEBUG, ERROR
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

from oraculo.adapters.brokers.kafka.assignor import OwnershipAssignor
from oraculo.adapters.brokers.kafka.buffer import Buffer
from oraculo.adapters.brokers.kafka.client_internals import close_consumer, position, start
from oraculo.adapters.brokers.kafka.connection import ClusterConnection, RefusedNameError
from oraculo.adapters.brokers.kafka.faults import FAULTS
from oraculo.adapters.brokers.kafka.ledger import Ledger
from oraculo.adapters.brokers.kafka.offsets import OffsetCommitter
from oraculo.adapters.brokers.kafka.ownership import PartitionOwnership
from oraculo.adapters.brokers.kit.reconnect import RETRY_FIRST_S, pauses
from oraculo.errors import BrokerError, BrokerUnavailableError
from oraculo.ports.broker import Delivery

log = structlog.get_logger("oraculo.broker")

PREFETCH_TIMEOUT_S = 1.0  # without a fetch after which nothing more is taken from the server
IDLE_TIMEOUT_S = 10.0  # without a fetch after which the partitions are left to others
SETTLE_TIMEOUT_S = 0.3  # in which messages that were just handed out may be settled before partitions move
TEND_INTERVAL_S = 1.0  # between two looks at what other members should have or hear
FETCH_MAX_MESSAGES = 500
SILENCE_TIMEOUT_S = 10.0  # without an answer to a fetch; the consumer is then made again

Records = dict[Any, list[Any]]  # topic and partition → records


class GroupConsumer(ConsumerRebalanceListener):  # type: ignore[misc]
    """A member of the group from the first fetch until IDLE_TIMEOUT_S seconds without one, when nothing is held."""

    def __init__(self, name: str, cluster: ClusterConnection) -> None:
        self.name = name
        self.group = cluster.options.group_of(name)
        self.ownership = PartitionOwnership()
        self._cluster = cluster
        self._buffer = Buffer(self._again)
        self._assignor = OwnershipAssignor(lambda: self.ownership.member_state(self._wants))
        self._consumer: Any = None
        self._serving = asyncio.Event()  # partitions are assigned and their ledgers are read
        self._demand = asyncio.Event()
        self._committer = OffsetCommitter(name, self.ownership)
        self._epoch = 0  # of the assignment: whatever was read in another one is not ours to store
        self._fetched = self._handed = time.monotonic()
        self._error: BrokerError | None = None
        self._refused = False  # Kafka will never have a topic of this name
        self._wants = True
        self._task = cluster.spawn(self._run())

    # -- verbs -------------------------------------------------------------------------------------------------------

    async def fetch(self, limit: int, wait: float) -> list[Delivery]:
        self._fetched = time.monotonic()
        self._demand.set()
        if not self._wants:
            self._wants = True
            self._rejoin()
        if taken := self._hand_out(limit):
            return taken
        outages, up = self._cluster.outages, self._cluster.up
        if wait <= 0:
            await self._look()
        until = time.monotonic() + wait
        while not (taken := self._hand_out(limit)) and (left := until - time.monotonic()) > 0 and not self._refused:
            await self._buffer.arrival(left)
        if taken:
            return taken
        if self._error is not None and not self._serving.is_set():
            raise self._error
        if not up and not self._cluster.up and outages == self._cluster.outages:
            raise BrokerUnavailableError(f"no connection to Kafka: {self._cluster.health().error}")
        return []

    def settle(self, deliveries: Iterable[Delivery]) -> None:
        stable = self._serving.is_set()
        for delivery in deliveries:
            ledger, offset = delivery.tag
            if stable and ledger.mine:
                ledger.settle(offset)
            else:
                self.ownership.settle(ledger, offset)
        self._committer.dirty.set()

    def retry(self, delivery: Delivery, delay: float) -> None:
        """The same message again, from here: it is not settled, so it outlives this process."""
        ledger, offset = delivery.tag
        again = Delivery(self.name, delivery.body, delivery.tag, True, delivery.headers)
        if delay > 0:
            if ledger.postpone(offset, time.time() + delay):
                self._committer.dirty.set()
                self._buffer.postpone(again, delay)
        elif ledger.give_back(offset):
            self._again(again)

    async def reset(self) -> None:
        """Leave the group and join it again: what is not settled is delivered again."""
        await self.close()
        if self._buffer.waiting:
            self._demand.set()
        self._task = self._cluster.spawn(self._run())

    async def close(self) -> None:
        """Writes what is settled, leaves the group, forgets the rest: others get it."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._forget()

    def _hand_out(self, limit: int) -> list[Delivery]:
        if not self._serving.is_set():
            return []
        taken = self._buffer.take(limit)
        if taken:
            self._fetched = self._handed = time.monotonic()
            self._committer.dirty.set()
        if self._buffer.ready:
            self._buffer.wake()
        else:
            self._demand.set()
        return taken

    async def _look(self) -> None:
        """What can be had now: join if we have not yet, ask how far the partitions go, wait for what lies before."""
        patience = self._cluster.options.confirm_timeout
        with contextlib.suppress(*FAULTS, BrokerError):
            async with asyncio.timeout(patience):
                await self._cluster.ready(patience)
                await self._serving.wait()
                ledgers = self.ownership.ledgers
                bounds = await self._cluster.bounds(self.name, list(ledgers))
                if any(ledger.waiting(*bounds[n]) for n, ledger in ledgers.items() if n in bounds):
                    await self._buffer.arrival(1.0)

    def _again(self, delivery: Delivery) -> None:
        if self.ownership.let_go(delivery):
            self._buffer.ready.append(delivery)
            self._buffer.wake()

    # -- life --------------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        attempts = pauses()
        while True:
            if self._buffer.waiting:  # since before it broke off
                self._demand.set()
            await self._demand.wait()
            try:
                await self._cluster.wait_up(None)
                await self._cluster.topic(self.name)
                await self._consume()
                attempts = pauses()
                self._forget()
                continue
            except RefusedNameError as error:
                self._error, self._refused = BrokerError(str(error)), True
                self._buffer.wake_all()
                return
            except Exception as error:  # the client's own faults too: reading goes on
                known = isinstance(error, (*FAULTS, BrokerError))
                log.log(
                    DEBUG if known else ERROR,
                    "reading a queue broke off",
                    queue=self.name,
                    exc_info=None if known else error,
                )
                text = str(error) or type(error).__name__
                self._error = BrokerUnavailableError(f"Kafka does not let us read {self.name}: {text}")
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                self._error = BrokerUnavailableError("the Kafka client broke off")  # one of its tasks, not we
            await asyncio.sleep(next(attempts))

    async def _consume(self) -> None:
        """Consume until something breaks, or until the queue is not fetched from any more."""
        options = self._cluster.options
        strategy = {"partition_assignment_strategy": [self._assignor]}
        consumer = self._consumer = AIOKafkaConsumer(group_id=self.group, **options.consumer(), **strategy)
        consumer.subscribe([self.name], listener=self)
        tasks = []
        try:
            async with asyncio.timeout(options.lease + options.confirm_timeout):
                await start(consumer)
            works = (self._pump(), self._committer.run(consumer, self._serving), self._tend())
            tasks = [asyncio.create_task(work) for work in works]
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._serving.is_set():
                with contextlib.suppress(*FAULTS):
                    async with asyncio.timeout(1.0):
                        await self._committer.write(consumer)
            self._serving.clear()
            self._consumer = None
            await close_consumer(consumer)

    async def _tend(self) -> None:
        """Leave the partitions to others when there is no fetch here, and tell them what became of messages of theirs.
        Returns when there is nothing to stay for."""
        options = self._cluster.options
        patience, served = 2 * options.lease + options.confirm_timeout, time.monotonic()
        while True:
            await asyncio.sleep(TEND_INTERVAL_S)
            self.ownership.tidy()
            if not self._serving.is_set():
                if time.monotonic() - served > patience:
                    raise TimeoutError(f"the group did not form within {patience:.0f} s")
                continue
            served = time.monotonic()
            if self._consumer.partitions_for_topic(self.name) is None:
                self._cluster.topics.pop(self.name, None)
                self._forget()
                raise KafkaError("the topic was deleted")
            idle = not self._buffer.waiting and time.monotonic() - self._fetched >= IDLE_TIMEOUT_S
            if idle and not self.ownership.holding and not self.ownership.untold:
                self._demand.clear()
                return
            if self.ownership.untold or (idle and self._wants):
                self._wants = not idle
                self._rejoin()

    def _forget(self) -> None:
        self.ownership.forget()
        self._buffer.clear()

    # -- reading -----------------------------------------------------------------------------------------------------

    async def _pump(self) -> None:
        """Read from the server into the buffer while a fetch waits and the buffer is empty."""
        answered = time.monotonic()
        while True:
            await self._serving.wait()
            self._demand.clear()
            if self._buffer.ready or not (
                self._buffer.waiting or time.monotonic() - self._fetched < PREFETCH_TIMEOUT_S
            ):
                await self._demand.wait()
                answered = time.monotonic()
                continue
            epoch = self._epoch
            found = await self._consumer.getmany(timeout_ms=1000, max_records=FETCH_MAX_MESSAGES)
            if found and epoch != self._epoch:
                await self._rewind(found)
                continue
            if found:
                answered = time.monotonic()
                self._store(found)
            if epoch == self._epoch:
                self._pass_over()
            if found:
                continue
            if not self._cluster.up or not self._serving.is_set():
                answered = time.monotonic()
            elif time.monotonic() - answered > SILENCE_TIMEOUT_S and not self._polled():
                raise TimeoutError(f"no answer for {SILENCE_TIMEOUT_S:.0f} s")

    def _pass_over(self) -> None:
        """Tell the ledgers how far has been read where no record is left to take."""
        for number, ledger in self.ownership.ledgers.items():
            reached = position(self._consumer, TopicPartition(self.name, number))
            if reached is not None:
                ledger.pass_over(reached)
                if ledger.dirty:
                    self._committer.dirty.set()

    def _polled(self) -> bool:
        consumer = self._consumer
        polled = [consumer.last_poll_timestamp(at) or 0 for at in consumer.assignment()]
        return not polled or time.time() - max(polled) / 1000 < SILENCE_TIMEOUT_S

    async def _rewind(self, found: Records) -> None:
        """Read these again: they were read while partitions moved, so their owner is not known."""
        await self._serving.wait()
        for at in found:
            ledger = self.ownership.ledgers.get(at.partition)
            if ledger is not None and ledger.next >= 0:
                self._consumer.seek(at, ledger.next)
            elif ledger is not None:
                await self._consumer.seek_to_beginning(at)

    def _store(self, found: Records) -> None:
        name = self.name
        for at, records in found.items():
            ledger = self.ownership.ledgers[at.partition]
            if records[0].offset < ledger.next:
                ledger = self._restarted(at.partition)
            ready = self._buffer.ready
            take, seen, plain = ledger.take, ledger.seen, ledger.plain
            for record in records:
                offset = record.offset
                if not take(offset):
                    continue
                headers = _headers(record.headers) if record.headers else {}
                delivery = Delivery(name, record.value or b"", (ledger, offset), offset < seen, headers)
                if plain:
                    ready.append(delivery)
                elif due := ledger.due(offset):
                    self._buffer.postpone(delivery, max(due - time.time(), 0.0))
                elif not ledger.park(offset, delivery):
                    ready.append(delivery)
            if ledger.dirty:
                self._committer.dirty.set()
        if self._buffer.ready:
            self._buffer.wake()

    def _restarted(self, number: int) -> Ledger:
        """We always ask for what comes next; so if something earlier comes, the partition began again: the topic
        was deleted and made again, and what we know of the old one is void."""
        self.ownership.ledgers[number].forget()
        self._buffer.purge()
        ledger = self.ownership.ledgers[number] = Ledger(number)
        return ledger

    # -- the group ---------------------------------------------------------------------------------------------------

    def _rejoin(self) -> None:
        coordinator = getattr(self._consumer, "_coordinator", None)
        if coordinator is not None:
            coordinator.request_rejoin()

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        """The group forms again: hand out nothing more, wait a moment for settlements, commit them."""
        self._epoch += 1
        self._serving.clear()
        consumer = self._consumer
        for _ in range(int((self._handed + SETTLE_TIMEOUT_S - time.monotonic()) / 0.01)):
            if not self.ownership.holding:
                break
            await asyncio.sleep(0.01)
        if revoked:
            with contextlib.suppress(*FAULTS):
                async with asyncio.timeout(1.0):
                    await self._committer.write(consumer)

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """Partitions that stay ours go on where we are; the others begin where their last owner's word says."""
        self._epoch += 1
        numbers = sorted(at.partition for at in assigned)
        ledgers, consumer = self.ownership.ledgers, self._consumer
        for number in [number for number in ledgers if number not in numbers]:
            self.ownership.lose(number)
        before = {number: ledger for number, ledger in ledgers.items() if ledger.next >= 0}
        for number, ledger in before.items():
            consumer.seek(TopicPartition(self.name, number), ledger.next)
        said = await self._committed(numbers)
        for number in numbers:
            word = said.get(number, (-1, ""))
            self._buffer.ready += self.ownership.gain(number, word, self._assignor.news)
            if number in before and before[number] is not ledgers[number] and word[0] >= 0:
                consumer.seek(TopicPartition(self.name, number), word[0])
        self._buffer.purge()
        self._error = None
        self._committer.dirty.set()
        self._serving.set()
        if self._buffer.ready:
            self._buffer.wake()
        if self.ownership.outdated(self._wants):
            self._rejoin()

    async def _committed(self, numbers: list[int]) -> dict[int, tuple[int, str]]:
        while numbers:
            try:
                async with asyncio.timeout(self._cluster.options.confirm_timeout):
                    return await self._cluster.committed(self.group, self.name, numbers)
            except (*FAULTS, BrokerError):
                await asyncio.sleep(RETRY_FIRST_S)
        return {}


def _headers(found: Iterable[tuple[Any, Any]]) -> dict[str, str]:
    """Whatever a plain client put there, as text."""
    return {
        str(name): value.decode("utf-8", "replace") if isinstance(value, bytes) else "" if value is None else str(value)
        for name, value in found
    }
