"""FastStream on Redis Streams: consumer groups, every message acknowledged after its answer was sent.

FastStream carries messages; the orchestration is in the client's memory (`in_memory.py`). In FastStream's favour: up to
100 messages read at once and worked on concurrently, uvloop in both processes, no validation of types.
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
from faststream.redis import RedisBroker, StreamSub
from in_memory import COLLECT, EXECUTE, RESULTS

AT_ONCE = 100


def broker_at(url: str) -> RedisBroker:
    return RedisBroker(url, apply_types=False, log_level=logging.DEBUG)


def stream(name: str) -> StreamSub:
    """From the beginning, whoever comes first: client or worker."""
    return StreamSub(name, group="bench", consumer="one", last_id="0", max_records=AT_ONCE)


def worker_app(url: str) -> FastStream:
    broker = broker_at(url)

    @broker.publisher(stream=RESULTS)
    @broker.subscriber(stream=stream(COLLECT), max_workers=AT_ONCE)
    async def collect(message: dict[str, Any]) -> dict[str, Any]:
        return in_memory.collect(message)

    @broker.publisher(stream=RESULTS)
    @broker.subscriber(stream=stream(EXECUTE), max_workers=AT_ONCE)
    async def execute(message: dict[str, Any]) -> dict[str, Any]:
        return in_memory.execute(message)

    return FastStream(broker)


@contextlib.asynccontextmanager
async def connected(url: str) -> AsyncIterator[in_memory.Orchestrations]:
    broker = broker_at(url)

    async def send(queue: str, message: dict[str, Any]) -> None:
        await broker.publish(message, stream=queue)

    orchestrations = in_memory.Orchestrations(send)
    broker.subscriber(stream=stream(RESULTS), max_workers=AT_ONCE)(orchestrations.answered)
    async with broker:
        await broker.start()
        yield orchestrations


@contextlib.contextmanager
def open_client(directory: Path) -> Iterator[in_memory.InMemoryClient]:
    with (
        brokers.running("redis", directory) as server,
        in_memory.working(__file__, server.url, connected, directory) as client,
    ):
        yield client


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        uvloop.run(worker_app(sys.argv[2]).run())
    else:
        driver.run(open_client, ["faststream", "redis", "uvloop"], ["redis"])
