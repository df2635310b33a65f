"""FastStream on NATS JetStream: one stream in files, pull consumers, every message acknowledged after its answer was
confirmed.

FastStream carries messages; the orchestration is in the client's memory (`in_memory.py`). By default it uses NATS
without JetStream, which keeps nothing. In FastStream's favour: 100 messages pulled at once and worked on concurrently,
uvloop in both processes, no validation of types.
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
from faststream.nats import JStream, NatsBroker, PullSub
from in_memory import COLLECT, EXECUTE, RESULTS
from nats.js.api import RetentionPolicy, StorageType

AT_ONCE = 100
STREAM = JStream(
    "bench",
    subjects=[COLLECT, EXECUTE, RESULTS],
    storage=StorageType.FILE,
    retention=RetentionPolicy.WORK_QUEUE,
)


def broker_at(url: str) -> NatsBroker:
    return NatsBroker(url, apply_types=False, log_level=logging.DEBUG)


def subscribed(broker: NatsBroker, subject: str) -> Any:
    pull = PullSub(batch_size=AT_ONCE)
    return broker.subscriber(subject, stream=STREAM, durable=subject, pull_sub=pull, max_workers=AT_ONCE)


def worker_app(url: str) -> FastStream:
    broker = broker_at(url)

    @broker.publisher(RESULTS, stream=STREAM)
    @subscribed(broker, COLLECT)
    async def collect(message: dict[str, Any]) -> dict[str, Any]:
        return in_memory.collect(message)

    @broker.publisher(RESULTS, stream=STREAM)
    @subscribed(broker, EXECUTE)
    async def execute(message: dict[str, Any]) -> dict[str, Any]:
        return in_memory.execute(message)

    return FastStream(broker)


@contextlib.asynccontextmanager
async def connected(url: str) -> AsyncIterator[in_memory.Orchestrations]:
    broker = broker_at(url)

    async def send(subject: str, message: dict[str, Any]) -> None:
        await broker.publish(message, subject, stream=STREAM.name)

    orchestrations = in_memory.Orchestrations(send)
    subscribed(broker, RESULTS)(orchestrations.answered)
    async with broker:
        await broker.start()
        yield orchestrations


@contextlib.contextmanager
def open_client(directory: Path) -> Iterator[in_memory.InMemoryClient]:
    with (
        brokers.running("nats", directory) as server,
        in_memory.working(__file__, server.url, connected, directory) as client,
    ):
        yield client


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        uvloop.run(worker_app(sys.argv[2]).run())
    else:
        driver.run(open_client, ["faststream", "nats-py", "uvloop"], ["nats"])
