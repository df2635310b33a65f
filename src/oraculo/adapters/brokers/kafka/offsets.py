"""Commits to Kafka what was settled: soon, and for all partitions at once."""

from __future__ import annotations

import asyncio
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import OffsetMetadataTooLargeError

from oraculo.adapters.brokers.kafka.faults import FAULTS
from oraculo.adapters.brokers.kafka.ledger import ROOM, Ledger
from oraculo.adapters.brokers.kafka.ownership import PartitionOwnership

COMMIT_INTERVAL_S = 0.1  # seconds in which settlements are collected before they are written


class OffsetCommitter:
    """Commits the ledgers of one queue while `serving` is set."""

    def __init__(self, topic: str, ownership: PartitionOwnership) -> None:
        self.dirty = asyncio.Event()  # there is something to write
        self._topic = topic
        self._ownership = ownership
        self._room = ROOM

    async def run(self, consumer: Any, serving: asyncio.Event) -> None:
        while True:
            await self.dirty.wait()
            await asyncio.sleep(COMMIT_INTERVAL_S)
            await serving.wait()
            self.dirty.clear()
            try:
                await self.write(consumer)
            except FAULTS:
                self.dirty.set()
                await asyncio.sleep(COMMIT_INTERVAL_S)

    async def write(self, consumer: Any) -> None:
        committed: dict[Any, tuple[int, str]] = {}
        written: list[tuple[Ledger, tuple[int, str]]] = []
        for ledger in self._ownership.ledgers.values():
            if ledger.dirty and ledger.next >= 0:
                ledger.dirty = False
                word = ledger.word(self._room)
                committed[TopicPartition(self._topic, ledger.partition)] = word
                written.append((ledger, word))
                ledger.claims.add(word)
        if not committed:
            return
        try:
            await consumer.commit(committed)
        except BaseException as error:
            for ledger, _ in written:
                ledger.dirty = True
            if isinstance(error, OffsetMetadataTooLargeError):
                self._room //= 2  # this server's offset.metadata.max.bytes is less than the default
            raise
        for ledger, word in written:
            ledger.claims = {word}
