"""Raw RabbitMQ with pika's asyncio adapter on uvloop: persistent messages, a durable classic queue, confirms counted in
bulk; prefetch of two batches, and one acknowledgement for each batch."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import brokers
import pika
import raw
import uvloop
from pika.adapters.asyncio_connection import AsyncioConnection
from pika.channel import Channel

PERSISTENT = pika.BasicProperties(delivery_mode=2)


class RabbitLoop:
    def __init__(self, url: str) -> None:
        self.runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self.channel: Channel
        self.published = 0
        self.confirmed = 0  # all up to this number are confirmed, and those in `single` besides
        self.single: set[int] = set()
        self.complete: asyncio.Future[None]
        self.runner.run(self.connect(url))

    async def connect(self, url: str) -> None:
        loop = asyncio.get_running_loop()
        opened = loop.create_future()
        self.connection = AsyncioConnection(
            pika.URLParameters(url),
            on_open_callback=opened.set_result,
            on_open_error_callback=lambda _, error: opened.set_exception(error),
            custom_ioloop=loop,
        )
        await opened
        self.channel = await self.done(lambda callback: self.connection.channel(on_open_callback=callback))
        await self.done(
            lambda callback: self.channel.confirm_delivery(ack_nack_callback=self.on_confirm, callback=callback)
        )
        await self.done(lambda callback: self.channel.queue_declare(raw.QUEUE, durable=True, callback=callback))
        await self.done(lambda callback: self.channel.basic_qos(prefetch_count=2 * raw.BATCH, callback=callback))

    async def done(self, call: Callable[[Callable[[Any], None]], Any]) -> Any:
        """The answer of a call that takes a callback."""
        answer = asyncio.get_running_loop().create_future()
        call(answer.set_result)
        return await answer

    def on_confirm(self, frame: Any) -> None:
        """One confirmation may stand for all messages up to its number."""
        if isinstance(frame.method, pika.spec.Basic.Nack):
            raise RuntimeError("RabbitMQ refused a message")
        if frame.method.multiple:
            self.confirmed = max(self.confirmed, frame.method.delivery_tag)
            self.single = {tag for tag in self.single if tag > self.confirmed}
        else:
            self.single.add(frame.method.delivery_tag)
        while self.confirmed + 1 in self.single:
            self.confirmed += 1
            self.single.remove(self.confirmed)
        if self.confirmed == self.published and not self.complete.done():
            self.complete.set_result(None)

    def publish(self, n: int) -> None:
        self.runner.run(self.publish_all(n))

    async def publish_all(self, n: int) -> None:
        for size in raw.batches(n):
            self.complete = asyncio.get_running_loop().create_future()
            self.published += size
            for _ in range(size):
                self.channel.basic_publish("", raw.QUEUE, raw.BODY, PERSISTENT)
            await self.complete

    def consume(self, n: int) -> None:
        self.runner.run(self.consume_all(n))

    async def consume_all(self, n: int) -> None:
        complete, seen = asyncio.get_running_loop().create_future(), 0

        def on_message(channel: Channel, method: Any, _properties: Any, _body: bytes) -> None:
            nonlocal seen
            seen += 1
            if seen % raw.BATCH == 0 or seen == n:
                channel.basic_ack(method.delivery_tag, multiple=True)
            if seen == n:
                complete.set_result(None)

        tag = self.channel.basic_consume(raw.QUEUE, on_message)
        await complete
        await self.done(lambda callback: self.channel.basic_cancel(tag, callback=callback))

    def close(self) -> None:
        async def closing() -> None:
            closed = asyncio.get_running_loop().create_future()
            self.connection.add_on_close_callback(lambda *_: closed.set_result(None))
            self.connection.close()
            await closed

        self.runner.run(closing())
        self.runner.close()


@contextlib.contextmanager
def opened(directory: Path) -> Iterator[RabbitLoop]:
    with brokers.running("rabbitmq", directory) as server, contextlib.closing(RabbitLoop(server.url)) as loop:
        yield loop


if __name__ == "__main__":
    raw.run(opened, ["pika", "uvloop"], "rabbitmq")
