"""Raw Kafka with aiokafka on uvloop: one partition, acks=all, an idempotent producer, a batch sent before its answers
are awaited; a group consumer that commits its offset after each batch."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import brokers
import raw
import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer


class KafkaLoop:
    def __init__(self, address: str) -> None:
        self.runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self.runner.run(self.connect(address))

    async def connect(self, address: str) -> None:
        self.producer = AIOKafkaProducer(bootstrap_servers=address, acks="all", enable_idempotence=True)
        await self.producer.start()
        await self.producer.partitions_for(raw.QUEUE)  # makes the topic
        self.consumer = AIOKafkaConsumer(
            raw.QUEUE,
            bootstrap_servers=address,
            group_id="raw",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=raw.BATCH,
        )
        await self.consumer.start()

    def publish(self, n: int) -> None:
        self.runner.run(self.publish_all(n))

    async def publish_all(self, n: int) -> None:
        for size in raw.batches(n):
            await asyncio.gather(*[await self.producer.send(raw.QUEUE, raw.BODY) for _ in range(size)])

    def consume(self, n: int) -> None:
        self.runner.run(self.consume_all(n))

    async def consume_all(self, n: int) -> None:
        left = n
        while left:
            found = await self.consumer.getmany(timeout_ms=1000)
            taken = sum(map(len, found.values()))
            if taken:
                await self.consumer.commit()
            left -= taken

    def close(self) -> None:
        self.runner.run(self.consumer.stop())
        self.runner.run(self.producer.stop())
        self.runner.close()


@contextlib.contextmanager
def opened(directory: Path) -> Iterator[KafkaLoop]:
    with (
        brokers.running("kafka", directory) as server,
        contextlib.closing(KafkaLoop(server.url.removeprefix("kafka://"))) as loop,
    ):
        yield loop


if __name__ == "__main__":
    raw.run(opened, ["aiokafka", "uvloop"], "kafka")
