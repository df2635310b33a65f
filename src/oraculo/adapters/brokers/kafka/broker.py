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

from oraculo.adapters.brokers.kafka.connection import ClusterConnection, RefusedNameError
from oraculo.adapters.brokers.kafka.consume import GroupConsumer
from oraculo.adapters.brokers.kafka.faults import FAULTS
from oraculo.adapters.brokers.kafka.ledger import Ledger
from oraculo.adapters.brokers.kafka.publish import PublishBatch
from oraculo.adapters.brokers.kafka.url import parse
from oraculo.ports.broker import (
    ALL_CONFIRMED,
    Backlog,
    Broker,
    BrokerTraits,
    Delivery,
    Health,
    Outgoing,
    PublishReport,
    Refusal,
    Settle,
    Settlement,
)


class KafkaBroker(Broker):
    scheme = "kafka"
    traits = BrokerTraits(partitioned=True)

    def __init__(self, url: str, groups: Mapping[str, str] | None = None) -> None:
        """`groups`: queues that are read as members of this consumer group, and not of one of their own."""
        self._options = parse(url, groups)
        self._cluster = ClusterConnection(self._options)
        self._queues: dict[str, GroupConsumer] = {}
        self.produced: Counter[str] = Counter()  # queue → messages that were confirmed
        self.consumed: Counter[str] = Counter()  # queue → messages that were handed out
        self.errors: Counter[tuple[str, str]] = Counter()  # (operation, error) → how often

    async def publish(self, messages: Sequence[Outgoing]) -> PublishReport:
        if not messages:
            return ALL_CONFIRMED
        try:
            report = await self._publish(messages)
        except BrokerUnavailableError as error:
            report = PublishReport(messages, reason=str(error))
        except BaseException as error:
            self.errors["produce", type(error).__name__] += 1
            raise
        if not report.complete:
            self.errors["produce", "unconfirmed" if report.unconfirmed else "refused"] += 1
        self.produced.update(one.queue for one in report.confirmed(messages))
        return report

    async def _publish(self, messages: Sequence[Outgoing]) -> PublishReport:
        patience = self._options.confirm_timeout
        connection = await self._cluster.ready(patience)
        batch = PublishBatch()
        why = ""
        try:
            async with asyncio.timeout(patience):
                for queue, some in _by_queue(messages).items():
                    try:
                        topic = await self._cluster.topic(queue)
                    except RefusedNameError as error:
                        batch.refused += [Refusal(message, str(error)) for message in some]
                    except (*FAULTS, BrokerError) as error:
                        why = str(error) or type(error).__name__
                    else:
                        records = batch.pack(queue, topic.limit, some)
                        connection.batches.add(queue, topic.partitions, topic.limit, records)
                batch.settle_one()
                if batch.left:
                    await asyncio.wait([batch.ended, connection.lost], return_when=asyncio.FIRST_COMPLETED)
                    why = "the connection to Kafka was lost" if batch.left else why
        except TimeoutError:
            why = f"no confirmation from Kafka within {patience:g} s"
            self._cluster.drop(why, connection)
        if batch.error is not None:
            why = f"Kafka did not take a batch: {batch.error!r}"
            self._cluster.drop(why, connection)  # an idempotent producer has a hole in its numbers now
        unconfirmed = batch.unconfirmed(messages) if why else []
        if batch.refused and not why:
            why = f"Kafka will never take {len(batch.refused)} of {len(messages)} messages"
        return PublishReport(unconfirmed, refused=batch.refused, reason=why)

    async def fetch(self, queue: str, *, limit: int, wait: float) -> list[Delivery]:
        found = self._queues.get(queue)
        if found is None:
            found = self._queues[queue] = GroupConsumer(queue, self._cluster)
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
        return self._cluster.health()

    async def reset(self) -> None:
        await asyncio.gather(*(queue.reset() for queue in self._queues.values()))
        self._cluster.renew()

    async def close(self) -> None:
        await asyncio.gather(*(queue.close() for queue in self._queues.values()))
        self._queues.clear()
        await self._cluster.close()

    async def _waiting(self, queue: str) -> int:
        cluster = self._cluster
        await cluster.ready(self._options.confirm_timeout)
        if not await cluster.exists(queue):
            return 0
        partitions = await cluster.partitions(queue)
        group = self._options.group_of(queue)
        bounds, committed, others = await asyncio.gather(
            cluster.bounds(queue, partitions),
            cluster.committed(group, queue, partitions),
            self._others(queue, partitions),
        )
        ours = self._queues[queue].ownership.ledgers if queue in self._queues else {}
        return sum(
            min(
                (ours.get(number) or Ledger(number, *committed.get(number, (-1, "")))).waiting(*bounds[number]),
                Ledger(number, others.get(number, -1), "").waiting(*bounds[number]),
            )
            for number in partitions
        )

    async def _others(self, queue: str, partitions: list[int]) -> dict[int, int]:
        """Partition → what workers of another make have committed; empty where there are none."""
        theirs, group = self._options.workers
        if queue != theirs:
            return {}
        found = await self._cluster.committed(group, queue, partitions)
        return {number: offset for number, (offset, _note) in found.items()}

    async def _durability(self) -> str:
        claims = [
            _claim(await self._cluster.settings(ConfigResourceType.BROKER, str(node)), "log.flush.interval.messages")
            for node in await self._cluster.nodes()
        ]
        claims += [
            _claim(await self._cluster.settings(ConfigResourceType.TOPIC, topic), "flush.messages")
            for topic in list(self._cluster.topics)
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
