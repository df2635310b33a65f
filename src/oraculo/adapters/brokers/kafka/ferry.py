"""Takes messages to Kafka: whatever several publishers have ready at the same moment goes in one batch a partition.

The client takes one unsent batch a partition and makes everybody else wait for it, so there is one who sends for all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from aiokafka.errors import KafkaError
from aiokafka.partitioner import murmur2

from oraculo.adapters.brokers.kafka.faults import FAULTS
from oraculo.ports.broker import Outgoing

BATCH = 512 * 1024  # bytes of one partition's part of a request
ENVELOPE = 100  # bytes of a batch that are not records, generously
RECORD = 30  # bytes of a record that are neither key, value nor headers, generously
MESSAGE_ID = "message_id"  # the header that has it when a message has a key of its own

Crate = tuple["Flight", Outgoing, bytes | None, list[tuple[str, bytes]], int]  # key, headers, bytes


class Flight:
    """The messages of one publish: how many are on their way, which arrived, which Kafka will never take. It has landed
    when the last one has arrived after `depart`: some may arrive before the others are packed."""

    __slots__ = ("_arrived", "error", "landed", "left", "refused")

    def __init__(self) -> None:
        self.left = 1
        self.landed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.error: BaseException | None = None
        self.refused: list[tuple[Outgoing, str]] = []
        self._arrived: set[int] = set()

    def pack(self, topic: str, limit: int, messages: Iterable[Outgoing]) -> list[Crate]:
        crates: list[Crate] = []
        for message in messages:
            key = (message.key or message.message_id).encode() or None
            headers = [(name, value.encode()) for name, value in message.headers.items()] if message.headers else []
            if message.key and message.message_id:
                headers.append((MESSAGE_ID, message.message_id.encode()))
            needs = len(message.body) + len(key or b"") + RECORD
            for name, value in headers:
                needs += 4 * len(name) + len(value) + 10
            if needs + ENVELOPE > limit:
                self.refused.append((message, f"{needs} bytes are more than the topic {topic} takes ({limit})"))
            else:
                crates.append((self, message, key, headers, needs))
        self.left += len(crates)
        return crates

    def arrive(self, message: Outgoing, error: BaseException | None) -> None:
        if error is None:
            self._arrived.add(id(message))
        else:
            self.error = error
        self.depart()

    def depart(self) -> None:
        self.left -= 1
        if not self.left and not self.landed.done():
            self.landed.set_result(None)

    def unconfirmed(self, messages: Iterable[Outgoing]) -> list[Outgoing]:
        fine = self._arrived | {id(message) for message, _ in self.refused}
        return [message for message in messages if id(message) not in fine]


class Ferry:
    """Belongs to one producer and ends with it."""

    def __init__(self, producer: Any) -> None:
        self._producer = producer
        self._waiting: dict[str, tuple[Sequence[int], int, list[Crate]]] = {}
        self._called = asyncio.Event()
        self._turn = 0

    def load(self, topic: str, partitions: Sequence[int], limit: int, crates: list[Crate]) -> None:
        """For the next crossing. `limit`: bytes of a batch that the topic takes."""
        if (waiting := self._waiting.get(topic)) is not None:
            waiting[2].extend(crates)
        elif crates:
            self._waiting[topic] = (partitions, min(limit, BATCH) - ENVELOPE, crates)
            self._called.set()

    async def run(self) -> None:
        while True:
            await self._called.wait()
            self._called.clear()
            cargo, self._waiting = self._waiting, {}
            for topic, (partitions, most, crates) in cargo.items():
                await self._cross(topic, partitions, most, crates)

    async def _cross(self, topic: str, partitions: Sequence[int], most: int, crates: list[Crate]) -> None:
        """Where their keys say. Those without one are spread over the partitions, beginning with another one each time:
        what shares a partition shares its fate."""
        keyed: dict[int, list[Crate]] = {}
        free: list[Crate] = []
        for crate in crates:
            if crate[1].key:
                keyed.setdefault(partition_of(crate[1].key, partitions), []).append(crate)
            else:
                free.append(crate)
        for partition, some in keyed.items():
            await self._load(topic, partition, most, some)
        lanes = min(len(partitions), len(free))
        for lane in range(lanes):
            self._turn += 1
            await self._load(topic, partitions[self._turn % len(partitions)], most, free[lane::lanes])

    async def _load(self, topic: str, partition: int, most: int, crates: list[Crate]) -> None:
        some: list[Crate] = []
        size = 0
        for crate in crates:
            if some and size + crate[4] > most:
                await self._send(topic, partition, some)
                some, size = [], 0
            some.append(crate)
            size += crate[4]
        await self._send(topic, partition, some)

    async def _send(self, topic: str, partition: int, crates: list[Crate]) -> None:
        batch = self._producer.create_batch()
        for _, message, key, headers, _ in crates:
            batch.append(key=key, value=message.body, timestamp=None, headers=headers)
        batch.close()
        try:
            future = await self._producer.send_batch(batch, topic, partition=partition)
        except FAULTS as error:
            _landed(crates, error)
        else:
            future.add_done_callback(lambda future: _landed(crates, _outcome(future)))


def partition_of(key: str, partitions: Sequence[int]) -> int:
    """As Kafka's own clients choose it."""
    number: int = murmur2(key.encode())
    return partitions[(number & 0x7FFFFFFF) % len(partitions)]


def _landed(crates: list[Crate], error: BaseException | None) -> None:
    for crate in crates:
        crate[0].arrive(crate[1], error)


def _outcome(future: asyncio.Future[Any]) -> BaseException | None:
    return KafkaError("it was given up") if future.cancelled() else future.exception()
