"""Publishing to Kafka: what several callers publish at the same moment goes in one batch a partition.

The client takes one unsent batch a partition and makes every other caller wait for it, so one task sends for all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka.errors import KafkaError
from aiokafka.partitioner import murmur2

from oraculo.adapters.brokers.kafka.faults import FAULTS
from oraculo.ports.broker import Outgoing, Refusal

BATCH_MAX_BYTES = 512 * 1024  # bytes of one partition's part of a request
BATCH_OVERHEAD_BYTES = 100  # bytes of a batch that are not records, generously
RECORD_OVERHEAD_BYTES = 30  # bytes of a record that are neither key, value nor headers, generously
MESSAGE_ID_HEADER = "message_id"  # the header that has it when a message has a key of its own


@dataclass(slots=True)
class PendingRecord:
    """One message as a record that waits to be sent. `size`: its bytes, generously."""

    batch: PublishBatch
    message: Outgoing
    key: bytes | None
    headers: list[tuple[str, bytes]]
    size: int


class PublishBatch:
    """The messages of one publish: how many are on their way, which are confirmed, which Kafka will never take. It
    counts one more than its records until all are packed, so that it does not end before."""

    __slots__ = ("_confirmed", "ended", "error", "left", "refused")

    def __init__(self) -> None:
        self.left = 1
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.error: BaseException | None = None
        self.refused: list[Refusal] = []
        self._confirmed: set[int] = set()

    def pack(self, topic: str, limit: int, messages: Iterable[Outgoing]) -> list[PendingRecord]:
        records: list[PendingRecord] = []
        for message in messages:
            key = (message.key or message.message_id).encode() or None
            headers = [(name, value.encode()) for name, value in message.headers.items()] if message.headers else []
            if message.key and message.message_id:
                headers.append((MESSAGE_ID_HEADER, message.message_id.encode()))
            needs = len(message.body) + len(key or b"") + RECORD_OVERHEAD_BYTES
            for name, value in headers:
                needs += 4 * len(name) + len(value) + 10
            if needs + BATCH_OVERHEAD_BYTES > limit:
                self.refused.append(Refusal(message, f"{needs} bytes are more than the topic {topic} takes ({limit})"))
            else:
                records.append(PendingRecord(self, message, key, headers, needs))
        self.left += len(records)
        return records

    def settle(self, message: Outgoing, error: BaseException | None) -> None:
        if error is None:
            self._confirmed.add(id(message))
        else:
            self.error = error
        self.settle_one()

    def settle_one(self) -> None:
        self.left -= 1
        if not self.left and not self.ended.done():
            self.ended.set_result(None)

    def unconfirmed(self, messages: Iterable[Outgoing]) -> list[Outgoing]:
        fine = self._confirmed | {id(refusal.message) for refusal in self.refused}
        return [message for message in messages if id(message) not in fine]


class BatchProducer:
    """Sends the records of all callers through one producer, and ends with it."""

    def __init__(self, producer: Any) -> None:
        self._producer = producer
        self._waiting: dict[str, tuple[Sequence[int], int, list[PendingRecord]]] = {}
        self._called = asyncio.Event()
        self._next_partition = 0

    def add(self, topic: str, partitions: Sequence[int], limit: int, records: list[PendingRecord]) -> None:
        """Queue records for the next round. `limit`: bytes of a batch that the topic takes."""
        if (waiting := self._waiting.get(topic)) is not None:
            waiting[2].extend(records)
        elif records:
            self._waiting[topic] = (partitions, min(limit, BATCH_MAX_BYTES) - BATCH_OVERHEAD_BYTES, records)
            self._called.set()

    async def run(self) -> None:
        while True:
            await self._called.wait()
            self._called.clear()
            cargo, self._waiting = self._waiting, {}
            for topic, (partitions, most, records) in cargo.items():
                await self._send_topic(topic, partitions, most, records)

    async def _send_topic(self, topic: str, partitions: Sequence[int], most: int, records: list[PendingRecord]) -> None:
        """Send records to the partitions that their keys choose. Those without a key are spread over the partitions,
        beginning with another one each time."""
        keyed: dict[int, list[PendingRecord]] = {}
        free: list[PendingRecord] = []
        for record in records:
            if record.message.key:
                keyed.setdefault(partition_of(record.message.key, partitions), []).append(record)
            else:
                free.append(record)
        for partition, some in keyed.items():
            await self._send_partition(topic, partition, most, some)
        lanes = min(len(partitions), len(free))
        for lane in range(lanes):
            self._next_partition += 1
            await self._send_partition(
                topic, partitions[self._next_partition % len(partitions)], most, free[lane::lanes]
            )

    async def _send_partition(self, topic: str, partition: int, most: int, records: list[PendingRecord]) -> None:
        some: list[PendingRecord] = []
        size = 0
        for record in records:
            if some and size + record.size > most:
                await self._send(topic, partition, some)
                some, size = [], 0
            some.append(record)
            size += record.size
        await self._send(topic, partition, some)

    async def _send(self, topic: str, partition: int, records: list[PendingRecord]) -> None:
        batch = self._producer.create_batch()
        for one in records:
            batch.append(key=one.key, value=one.message.body, timestamp=None, headers=one.headers)
        batch.close()
        try:
            future = await self._producer.send_batch(batch, topic, partition=partition)
        except FAULTS as error:
            _settled(records, error)
        else:
            future.add_done_callback(lambda future: _settled(records, _outcome(future)))


def partition_of(key: str, partitions: Sequence[int]) -> int:
    """As Kafka's own clients choose it."""
    number: int = murmur2(key.encode())
    return partitions[(number & 0x7FFFFFFF) % len(partitions)]


def _settled(records: list[PendingRecord], error: BaseException | None) -> None:
    for record in records:
        record.batch.settle(record.message, error)


def _outcome(future: asyncio.Future[Any]) -> BaseException | None:
    return KafkaError("it was given up") if future.cancelled() else future.exception()
