"""Raw NATS JetStream with nats-py on uvloop: a stream in files, a batch published before its answers are awaited; a
pull consumer that acknowledges each message, as consumers that share a queue must."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import brokers
import nats
import raw
import uvloop
from nats.js.api import AckPolicy, ConsumerConfig, RetentionPolicy, StorageType


class NatsLoop:
    def __init__(self, url: str) -> None:
        self.runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self.runner.run(self.connect(url))

    async def connect(self, url: str) -> None:
        self.connection = await nats.connect(url)
        self.stream = self.connection.jetstream(publish_async_max_pending=2 * raw.BATCH)
        await self.stream.add_stream(
            name=raw.QUEUE,
            subjects=[raw.QUEUE],
            storage=StorageType.FILE,
            retention=RetentionPolicy.WORK_QUEUE,
        )
        config = ConsumerConfig(ack_policy=AckPolicy.EXPLICIT, max_ack_pending=10 * raw.BATCH)
        self.pulled = await self.stream.pull_subscribe(raw.QUEUE, durable="raw", config=config)

    def publish(self, n: int) -> None:
        self.runner.run(self.publish_all(n))

    async def publish_all(self, n: int) -> None:
        for size in raw.batches(n):
            answers = [await self.stream.publish_async(raw.QUEUE, raw.BODY) for _ in range(size)]
            await asyncio.gather(*answers)

    def consume(self, n: int) -> None:
        self.runner.run(self.consume_all(n))

    async def consume_all(self, n: int) -> None:
        left = n
        while left:
            messages = await self.pulled.fetch(min(raw.BATCH, left), timeout=30)
            for message in messages:
                await message.ack()
            left -= len(messages)
        await self.connection.flush()

    def close(self) -> None:
        self.runner.run(self.connection.close())
        self.runner.close()


@contextlib.contextmanager
def opened(directory: Path) -> Iterator[NatsLoop]:
    with brokers.running("nats", directory) as server, contextlib.closing(NatsLoop(server.url)) as loop:
        yield loop


if __name__ == "__main__":
    raw.run(opened, ["nats-py", "uvloop"], "nats")
