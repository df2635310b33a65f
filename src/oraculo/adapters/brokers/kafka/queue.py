"""One queue as this process consumes it: a member of the queue's own consumer group.

Every queue is a group of its own, so that a process that begins or ceases to fetch from one queue disturbs nobody at
the others; unless somebody says which group it is to be. Partitions come and go with the group; for each one that is
ours there is a ledger.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Iterable
from logging import DEBUG, ERROR
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

from oraculo.adapters.brokers.kafka.assignor import HoldingAssignor
from oraculo.adapters.brokers.kafka.buffer import Buffer
from oraculo.adapters.brokers.kafka.close import close_consumer
from oraculo.adapters.brokers.kafka.faults import FAULTS
from oraculo.adapters.brokers.kafka.holdings import Holdings
from oraculo.adapters.brokers.kafka.ledger import Ledger
from oraculo.adapters.brokers.kafka.link import FIRST_RETRY, LAST_RETRY, Link, RefusedNameError
from oraculo.adapters.brokers.kafka.scribe import Scribe
from oraculo.errors import BrokerError, BrokerUnavailableError
from oraculo.ports.broker import Delivery

log = structlog.get_logger("oraculo.broker")

SLACK = 1.0  # seconds without a fetch after which nothing more is taken from the server
IDLE = 10.0  # seconds without a fetch after which the partitions are left to others
SETTLING = 0.3  # seconds in which those who just got messages may settle them before partitions move
TEND = 1.0  # seconds between two looks at what others should have or hear
BATCH = 500  # messages taken at once
SILENCE = 10.0  # seconds without an answer to a fetch after which the consumer is made anew

Records = dict[Any, list[Any]]  # topic and partition → records


class Queue(ConsumerRebalanceListener):  # type: ignore[misc]
    """A member of the group from the first fetch until nobody has fetched for IDLE seconds and nothing is held."""

    def __init__(self, name: str, link: Link) -> None:
        self.name = name
        self.group = link.options.group_of(name)
        self.holdings = Holdings()
        self._link = link
        self._buffer = Buffer(self._again)
        self._assignor = HoldingAssignor(lambda: self.holdings.stake(self._wants))
        self._consumer: Any = None
        self._serving = asyncio.Event()  # partitions are assigned and their ledgers are read
        self._demand = asyncio.Event()
        self._scribe = Scribe(name, self.holdings)
        self._epoch = 0  # of the assignment: whatever was read in another one is not ours to store
        self._fetched = self._handed = time.monotonic()
        self._error: BrokerError | None = None
        self._refused = False  # Kafka will never have a topic of this name
        self._wants = True
        self._task = link.spawn(self._run())

    # -- verbs -------------------------------------------------------------------------------------------------------

    async def fetch(self, limit: int, wait: float) -> list[Delivery]:
        self._fetched = time.monotonic()
        self._demand.set()
        if not self._wants:
            self._wants = True
            self._rejoin()
        if taken := self._hand_out(limit):
            return taken
        outages, up = self._link.outages, self._link.up
        if wait <= 0:
            await self._look()
        until = time.monotonic() + wait
        while not (taken := self._hand_out(limit)) and (left := until - time.monotonic()) > 0 and not self._refused:
            await self._buffer.arrival(left)
        if taken:
            return taken
        if self._error is not None and not self._serving.is_set():
            raise self._error
        if not up and not self._link.up and outages == self._link.outages:
            raise BrokerUnavailableError(f"no connection to Kafka: {self._link.health().error}")
        return []

    def settle(self, deliveries: Iterable[Delivery]) -> None:
        stable = self._serving.is_set()
        for delivery in deliveries:
            ledger, offset = delivery.tag
            if stable and ledger.mine:
                ledger.settle(offset)
            else:
                self.holdings.settle(ledger, offset)
        self._scribe.dirty.set()

    def retry(self, delivery: Delivery, delay: float) -> None:
        """The same message again, from here: it is not settled, so it outlives this process."""
        ledger, offset = delivery.tag
        again = Delivery(self.name, delivery.body, delivery.tag, True, delivery.headers)
        if delay > 0:
            if ledger.postpone(offset, time.time() + delay):
                self._scribe.dirty.set()
                self._buffer.postpone(again, delay)
        elif ledger.give_back(offset):
            self._again(again)

    async def reset(self) -> None:
        """Leaves the group, joins it anew: whatever is not settled comes again, to somebody."""
        await self.close()
        if self._buffer.waiting:
            self._demand.set()
        self._task = self._link.spawn(self._run())

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
            self._scribe.dirty.set()
        if self._buffer.ready:
            self._buffer.wake()
        else:
            self._demand.set()
        return taken

    async def _look(self) -> None:
        """What can be had now: join if we have not yet, ask how far the partitions go, wait for what lies before."""
        patience = self._link.options.confirm_timeout
        with contextlib.suppress(*FAULTS, BrokerError):
            async with asyncio.timeout(patience):
                await self._link.ready(patience)
                await self._serving.wait()
                ledgers = self.holdings.ledgers
                bounds = await self._link.bounds(self.name, list(ledgers))
                if any(ledger.waiting(*bounds[n]) for n, ledger in ledgers.items() if n in bounds):
                    await self._buffer.arrival(1.0)

    def _again(self, delivery: Delivery) -> None:
        if self.holdings.let_go(delivery):
            self._buffer.ready.append(delivery)
            self._buffer.wake()

    # -- life --------------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        pause = FIRST_RETRY
        while True:
            if self._buffer.waiting:  # since before it broke off
                self._demand.set()
            await self._demand.wait()
            try:
                await self._link.wait_up(None)
                await self._link.topic(self.name)
                await self._consume()
                pause = FIRST_RETRY
                self._forget()
                continue
            except RefusedNameError as error:
                self._error, self._refused = BrokerError(str(error)), True
                self._buffer.wake_all()
                return
            except Exception as error:  # the client's own faults too: whoever reads this queue must not be left alone
                known = isinstance(error, (*FAULTS, BrokerError))
                log.log(
                    DEBUG if known else ERROR, "reading broke off", queue=self.name, exc_info=None if known else error
                )
                text = str(error) or type(error).__name__
                self._error = BrokerUnavailableError(f"Kafka does not let us read {self.name}: {text}")
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                self._error = BrokerUnavailableError("the Kafka client broke off")  # one of its tasks, not we
            await asyncio.sleep(pause * random.uniform(0.8, 1.2))
            pause = min(pause * 2, LAST_RETRY)

    async def _consume(self) -> None:
        """Until something breaks, or nobody wants this queue any more."""
        options = self._link.options
        strategy = {"partition_assignment_strategy": [self._assignor]}
        consumer = self._consumer = AIOKafkaConsumer(group_id=self.group, **options.consumer(), **strategy)
        consumer.subscribe([self.name], listener=self)
        tasks = []
        try:
            async with asyncio.timeout(options.lease + options.confirm_timeout):
                await consumer.start()
            works = (self._pump(), self._scribe.run(consumer, self._serving), self._tend())
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
                        await self._scribe.write(consumer)
            self._serving.clear()
            self._consumer = None
            await close_consumer(consumer)

    async def _tend(self) -> None:
        """Leaves the partitions to others when nobody here fetches, and tells them what became of messages of theirs.
        Returns when there is nothing to stay for."""
        options = self._link.options
        patience, served = 2 * options.lease + options.confirm_timeout, time.monotonic()
        while True:
            await asyncio.sleep(TEND)
            self.holdings.tidy()
            if not self._serving.is_set():
                if time.monotonic() - served > patience:
                    raise TimeoutError(f"the group did not form within {patience:.0f} s")
                continue
            served = time.monotonic()
            if self._consumer.partitions_for_topic(self.name) is None:
                self._link.topics.pop(self.name, None)
                self._forget()
                raise KafkaError("somebody deleted the topic")
            idle = not self._buffer.waiting and time.monotonic() - self._fetched >= IDLE
            if idle and not self.holdings.holding and not self.holdings.untold:
                self._demand.clear()
                return
            if self.holdings.untold or (idle and self._wants):
                self._wants = not idle
                self._rejoin()

    def _forget(self) -> None:
        self.holdings.forget()
        self._buffer.clear()

    # -- reading -----------------------------------------------------------------------------------------------------

    async def _pump(self) -> None:
        """From the server into the buffer, while somebody asks and the buffer is empty."""
        answered = time.monotonic()
        while True:
            await self._serving.wait()
            self._demand.clear()
            if self._buffer.ready or not (self._buffer.waiting or time.monotonic() - self._fetched < SLACK):
                await self._demand.wait()
                answered = time.monotonic()
                continue
            epoch = self._epoch
            found = await self._consumer.getmany(timeout_ms=1000, max_records=BATCH)
            if found and epoch != self._epoch:
                await self._rewind(found)
            elif found:
                answered = time.monotonic()
                self._store(found)
            elif not self._link.up or not self._serving.is_set():
                answered = time.monotonic()
            elif time.monotonic() - answered > SILENCE and not self._polled():
                raise TimeoutError(f"no answer for {SILENCE:.0f} s")

    def _polled(self) -> bool:
        consumer = self._consumer
        polled = [consumer.last_poll_timestamp(at) or 0 for at in consumer.assignment()]
        return not polled or time.time() - max(polled) / 1000 < SILENCE

    async def _rewind(self, found: Records) -> None:
        """These were read while partitions moved: nobody can say whose they are, so they are read again."""
        await self._serving.wait()
        for at in found:
            ledger = self.holdings.ledgers.get(at.partition)
            if ledger is not None and ledger.next >= 0:
                self._consumer.seek(at, ledger.next)
            elif ledger is not None:
                await self._consumer.seek_to_beginning(at)

    def _store(self, found: Records) -> None:
        name = self.name
        for at, records in found.items():
            ledger = self.holdings.ledgers[at.partition]
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
                self._scribe.dirty.set()
        if self._buffer.ready:
            self._buffer.wake()

    def _restarted(self, number: int) -> Ledger:
        """We always ask for what comes next; so if something earlier comes, the partition began anew: somebody
        deleted the topic and made another, and what we know of the old one is void."""
        self.holdings.ledgers[number].forget()
        self._buffer.purge()
        ledger = self.holdings.ledgers[number] = Ledger(number)
        return ledger

    # -- the group ---------------------------------------------------------------------------------------------------

    def _rejoin(self) -> None:
        coordinator = getattr(self._consumer, "_coordinator", None)
        if coordinator is not None:
            coordinator.request_rejoin()

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        """The group forms anew: hand out nothing more, let those who just got something settle it, write it down."""
        self._epoch += 1
        self._serving.clear()
        consumer = self._consumer
        for _ in range(int((self._handed + SETTLING - time.monotonic()) / 0.01)):
            if not self.holdings.holding:
                break
            await asyncio.sleep(0.01)
        if revoked:
            with contextlib.suppress(*FAULTS):
                async with asyncio.timeout(1.0):
                    await self._scribe.write(consumer)

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """Partitions that stay ours go on where we are; the others begin where their last owner's word says."""
        self._epoch += 1
        numbers = sorted(at.partition for at in assigned)
        ledgers, consumer = self.holdings.ledgers, self._consumer
        for number in [number for number in ledgers if number not in numbers]:
            self.holdings.lose(number)
        before = {number: ledger for number, ledger in ledgers.items() if ledger.next >= 0}
        for number, ledger in before.items():
            consumer.seek(TopicPartition(self.name, number), ledger.next)
        said = await self._words(numbers)
        for number in numbers:
            word = said.get(number, (-1, ""))
            self._buffer.ready += self.holdings.gain(number, word, self._assignor.news)
            if number in before and before[number] is not ledgers[number] and word[0] >= 0:
                consumer.seek(TopicPartition(self.name, number), word[0])
        self._buffer.purge()
        self._error = None
        self._scribe.dirty.set()
        self._serving.set()
        if self._buffer.ready:
            self._buffer.wake()
        if self.holdings.outdated(self._wants):
            self._rejoin()

    async def _words(self, numbers: list[int]) -> dict[int, tuple[int, str]]:
        while numbers:
            try:
                async with asyncio.timeout(self._link.options.confirm_timeout):
                    return await self._link.committed(self.group, self.name, numbers)
            except (*FAULTS, BrokerError):
                await asyncio.sleep(FIRST_RETRY)
        return {}


def _headers(found: Iterable[tuple[Any, Any]]) -> dict[str, str]:
    """Whatever a plain client put there, as text."""
    return {
        str(name): value.decode("utf-8", "replace") if isinstance(value, bytes) else "" if value is None else str(value)
        for name, value in found
    }
