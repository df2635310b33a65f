"""FastStream on Kafka (aiokafka): acks=all, one partition for each topic.

FastStream carries messages; the orchestration is in the client's memory (`in_memory.py`). Offsets are committed early,
as by default: a worker that dies loses what it was working on. Committing after the work would be safer, but then
FastStream works on the messages of a partition one by one. In FastStream's favour besides: 100 messages worked on
concurrently, uvloop in both processes, no validation of types.
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
from faststream.kafka import KafkaBroker
from in_memory import COLLECT, EXECUTE, RESULTS

AT_ONCE = 100
LARGEST = 4 * 1024 * 1024


def broker_at(address: str) -> KafkaBroker:
    return KafkaBroker(address, acks="all", max_request_size=LARGEST, apply_types=False, log_level=logging.DEBUG)


def subscribed(broker: KafkaBroker, topic: str) -> Any:
    return broker.subscriber(topic, group_id=f"bench-{topic}", auto_offset_reset="earliest", max_workers=AT_ONCE)


def worker_app(address: str) -> FastStream:
    broker = broker_at(address)

    @broker.publisher(RESULTS)
    @subscribed(broker, COLLECT)
    async def collect(message: dict[str, Any]) -> dict[str, Any]:
        return in_memory.collect(message)

    @broker.publisher(RESULTS)
    @subscribed(broker, EXECUTE)
    async def execute(message: dict[str, Any]) -> dict[str, Any]:
        return in_memory.execute(message)

    return FastStream(broker)


@contextlib.asynccontextmanager
async def connected(address: str) -> AsyncIterator[in_memory.Orchestrations]:
    broker = broker_at(address)

    async def send(topic: str, message: dict[str, Any]) -> None:
        await broker.publish(message, topic)

    orchestrations = in_memory.Orchestrations(send)
    subscribed(broker, RESULTS)(orchestrations.answered)
    async with broker:
        await broker.start()
        yield orchestrations


@contextlib.contextmanager
def open_client(directory: Path) -> Iterator[in_memory.InMemoryClient]:
    with (
        brokers.running("kafka", directory) as server,
        in_memory.working(__file__, server.url.removeprefix("kafka://"), connected, directory) as client,
    ):
        yield client


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        uvloop.run(worker_app(sys.argv[2]).run())
    else:
        driver.run(open_client, ["faststream", "aiokafka", "uvloop"], ["kafka"])
