"""FastStream on RabbitMQ: durable queues, every message acknowledged after its answer was confirmed.

FastStream carries messages; the orchestration is in the client's memory (`in_memory.py`). Publisher confirms are on by
default; messages are not persistent by default and are made so here, as every row on RabbitMQ has it. In FastStream's
favour: 100 messages prefetched and worked on concurrently, uvloop in both processes, no validation of types.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import brokers
import driver
import in_memory
import uvloop
from faststream import FastStream
from faststream.rabbit import Channel, RabbitBroker, RabbitQueue
from in_memory import COLLECT, EXECUTE, RESULTS

AT_ONCE = 100


def broker_at(url: str) -> RabbitBroker:
    channel = Channel(prefetch_count=AT_ONCE, publisher_confirms=True)
    return RabbitBroker(url, default_channel=channel, apply_types=False, log_level=logging.DEBUG)


def queue(name: str) -> RabbitQueue:
    return RabbitQueue(name, durable=True)


def worker_app(url: str) -> FastStream:
    broker = broker_at(url)

    @broker.publisher(RESULTS, persist=True)
    @broker.subscriber(queue(COLLECT))
    async def collect(message: dict[str, Any]) -> dict[str, Any]:
        return in_memory.collect(message)

    @broker.publisher(RESULTS, persist=True)
    @broker.subscriber(queue(EXECUTE))
    async def execute(message: dict[str, Any]) -> dict[str, Any]:
        return in_memory.execute(message)

    return FastStream(broker)


@contextlib.asynccontextmanager
async def connected(url: str) -> AsyncIterator[in_memory.Orchestrations]:
    broker = broker_at(url)

    async def send(name: str, message: dict[str, Any]) -> None:
        await broker.publish(message, name, persist=True)

    orchestrations = in_memory.Orchestrations(send)
    broker.subscriber(queue(RESULTS))(orchestrations.answered)
    async with broker:
        await broker.start()
        for name in (COLLECT, EXECUTE):  # the worker may come later than the first message
            await broker.declare_queue(queue(name))
        yield orchestrations


@contextlib.contextmanager
def open_client(directory: Path) -> Iterator[in_memory.InMemoryClient]:
    with (
        brokers.running("rabbitmq", directory) as server,
        in_memory.working(__file__, server.url, connected, directory) as client,
    ):
        yield client


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        uvloop.run(worker_app(sys.argv[2]).run())
    else:
        driver.run(open_client, ["faststream", "aio-pika", "uvloop"], ["rabbitmq"])
