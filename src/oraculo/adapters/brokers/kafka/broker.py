"""Kafka: a queue is a topic, shared by the members of a consumer group of its own.

Kafka hands out partitions, not messages, and remembers one offset for each. What the port promises beyond that (single
messages settled in any order, a message that came before says so, slow work stays with who does it) is kept in ledgers
(ledger.py) and in how partitions are shared (assignor.py).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence

from oraculo.errors import BrokerError, BrokerUnavailableError, MissingExtraError

try:
    from aiokafka.admin.config_resource import ConfigResourceType
    from aiokafka.errors import IncompatibleBrokerVersion
except ImportError as error:
    raise MissingExtraError("the Kafka broker", "kafka") from error

from oraculo.adapters.brokers.kafka import options
from oraculo.adapters.brokers.kafka.faults import FAULTS
from oraculo.adapters.brokers.kafka.ferry import Flight
from oraculo.adapters.brokers.kafka.ledger import Ledger
from oraculo.adapters.brokers.kafka.link import Link, RefusedNameError
from oraculo.adapters.brokers.kafka.queue import Queue
from oraculo.ports.broker import Backlog, Delivery, Health, Outgoing, Settle, Settlement


class KafkaBroker:
    scheme = "kafka"
    volatile = False
    partitioned = True  # a queue is divided among its readers

    def __init__(self, url: str, groups: Mapping[str, str] | None = None) -> None:
        """`groups`: queues that are read as members of this consumer group, and not of one of their own."""
        self._options = options.parse(url, groups)
        self._link = Link(self._options)
        self._queues: dict[str, Queue] = {}
        self.produced: Counter[str] = Counter()  # queue → messages that were confirmed
        self.consumed: Counter[str] = Counter()  # queue → messages that were handed out
        self.errors: Counter[tuple[str, str]] = Counter()  # (operation, error) → how often

    async def publish(self, messages: Sequence[Outgoing]) -> None:
        if not messages:
            return
        try:
            await self._publish(messages)
        except BrokerUnavailableError as error:
            self.errors["produce", "refused" if error.refused and not error.unconfirmed else "unconfirmed"] += 1
            left = {id(one) for one in (messages if error.unconfirmed is None else error.unconfirmed)}
            left.update(id(one) for one, _ in error.refused)
            self.produced.update(one.queue for one in messages if id(one) not in left)
            raise
        except BaseException as error:
            self.errors["produce", type(error).__name__] += 1
            raise
        self.produced.update(one.queue for one in messages)

    async def _publish(self, messages: Sequence[Outgoing]) -> None:
        patience = self._options.confirm_timeout
        connection = await self._link.ready(patience)
        flight = Flight()
        why = ""
        try:
            async with asyncio.timeout(patience):
                for queue, some in _by_queue(messages).items():
                    try:
                        topic = await self._link.topic(queue)
                    except RefusedNameError as error:
                        flight.refused += [(message, str(error)) for message in some]
                    except (*FAULTS, BrokerError) as error:
                        why = str(error) or type(error).__name__
                    else:
                        crates = flight.pack(queue, topic.limit, some)
                        connection.ferry.load(queue, topic.partitions, topic.limit, crates)
                flight.depart()
                if flight.left:
                    await asyncio.wait([flight.landed, connection.lost], return_when=asyncio.FIRST_COMPLETED)
                    why = "the connection to Kafka was lost" if flight.left else why
        except TimeoutError:
            why = f"no confirmation from Kafka within {patience:g} s"
            self._link.drop(why, connection)
        if flight.error is not None:
            why = f"Kafka did not take a batch: {flight.error!r}"
            self._link.drop(why, connection)  # an idempotent producer has a hole in its numbers now
        unconfirmed = flight.unconfirmed(messages) if why else []
        if unconfirmed or flight.refused:
            raise BrokerUnavailableError(
                why or f"Kafka will never take {len(flight.refused)} of {len(messages)} messages",
                unconfirmed=unconfirmed,
                refused=flight.refused,
            )

    async def fetch(self, queue: str, *, limit: int, wait: float) -> list[Delivery]:
        found = self._queues.get(queue)
        if found is None:
            found = self._queues[queue] = Queue(queue, self._link)
        try:
            taken = await found.fetch(limit, wait)
        except BrokerError as error:
            self.errors["consume", type(error).__name__] += 1
            raise
        self.consumed[queue] += len(taken)
        return taken

    async def settle(self, settlements: Sequence[Settlement]) -> None:
        done: dict[str, list[Delivery]] = {}
        for settlement in settlements:
            delivery = settlement.delivery
            if settlement.verdict is Settle.ACK:
                done.setdefault(delivery.queue, []).append(delivery)
            elif delivery.queue in self._queues:
                self._queues[delivery.queue].retry(delivery, settlement.delay)
        for queue, deliveries in done.items():
            if queue in self._queues:
                self._queues[queue].settle(deliveries)

    async def backlog(self, queue: str) -> Backlog:
        try:
            async with asyncio.timeout(self._options.confirm_timeout):
                return Backlog(await self._waiting(queue))
        except FAULTS as error:
            raise BrokerUnavailableError(f"Kafka does not say what waits in {queue}: {error!r}") from error

    async def durability(self) -> str:
        """Kafka confirms what all replicas in sync have in memory, and survives the death of every process with that;
        so it is crash-safe, unless a replica that lags may be elected; and power-safe if each message is flushed."""
        try:
            async with asyncio.timeout(self._options.confirm_timeout):
                return await self._durability()
        except IncompatibleBrokerVersion:
            return "best-effort"  # it cannot say
        except FAULTS as error:
            if "Authorization" in type(error).__name__:
                return "best-effort"  # we may not ask
            raise BrokerUnavailableError(f"Kafka does not say how durable it is: {error!r}") from error

    def health(self) -> Health:
        return self._link.health()

    async def reset(self) -> None:
        await asyncio.gather(*(queue.reset() for queue in self._queues.values()))
        self._link.renew()

    async def close(self) -> None:
        await asyncio.gather(*(queue.close() for queue in self._queues.values()))
        self._queues.clear()
        await self._link.close()

    async def _waiting(self, queue: str) -> int:
        link = self._link
        await link.ready(self._options.confirm_timeout)
        if not await link.exists(queue):
            return 0
        partitions = await link.partitions(queue)
        group = self._options.group_of(queue)
        bounds, words = await asyncio.gather(link.bounds(queue, partitions), link.committed(group, queue, partitions))
        ours = self._queues[queue].holdings.ledgers if queue in self._queues else {}
        return sum(
            (ours.get(number) or Ledger(number, *words.get(number, (-1, "")))).waiting(*bounds[number])
            for number in partitions
        )

    async def _durability(self) -> str:
        claims = [
            _claim(await self._link.settings(ConfigResourceType.BROKER, str(node)), "log.flush.interval.messages")
            for node in await self._link.nodes()
        ]
        claims += [
            _claim(await self._link.settings(ConfigResourceType.TOPIC, topic), "flush.messages")
            for topic in list(self._link.topics)
        ]
        return max(claims, key=("power-safe", "crash-safe", "best-effort").index, default="best-effort")


def _by_queue(messages: Sequence[Outgoing]) -> dict[str, list[Outgoing]]:
    found: dict[str, list[Outgoing]] = {}
    for message in messages:
        found.setdefault(message.queue, []).append(message)
    return found


def _claim(settings: dict[str, str] | None, flush: str) -> str:
    if settings is None:
        return "crash-safe"
    if settings.get("unclean.leader.election.enable") == "true":
        return "best-effort"
    return "power-safe" if settings.get(flush) == "1" else "crash-safe"
