"""The plain Redis, NATS and Kafka workers of the documentation do their work, started by themselves, on real servers.

Those for RabbitMQ have a test of their own; test_broker_stories.py runs one of each with a whole orchestrator.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import nats
import pytest
import redis
from tools.servers.server import Server

from examples.plain_workers import Command, answers, ended, node_worker, order, python_worker, started, stopped
from oraculo.adapters.brokers.connect import broker_of
from oraculo.ports.broker import Broker, publish_confirmed
from servers import own
from waiting import until

FONTE = "eco"
QUEUE = f"escavador_{FONTE}"
ORDERS = 20


async def held_by_redis(server: Server, _broker: Broker) -> int:
    with redis.Redis(port=server.port) as client:
        return int(client.xpending(QUEUE, "oraculo")["pending"])


async def held_by_nats(server: Server, _broker: Broker) -> int:
    connection = await nats.connect(server.url)
    try:
        info = await connection.jetstream().consumer_info(QUEUE, "oraculo")
        return int(info.num_ack_pending or 0) + int(info.num_pending or 0)
    finally:
        await connection.close()


async def held_by_kafka(_server: Server, broker: Broker) -> int:
    """What is not committed waits."""
    return (await broker.backlog(QUEUE)).waiting or 0


@dataclass(frozen=True)
class Case:
    """`address` is what the worker is told; `held` counts the orders that it has not settled."""

    package: str
    address: Callable[[Server], dict[str, str]]
    held: Callable[[Server, Broker], Awaitable[int]]


CASES = {
    "redis": Case("redis@6", lambda server: {"REDIS_URL": server.url}, held_by_redis),
    "nats": Case("nats@2", lambda server: {"NATS_URL": server.url}, held_by_nats),
    "kafka": Case("kafkajs@2", lambda server: {"KAFKA_SERVERS": f"127.0.0.1:{server.port}"}, held_by_kafka),
}


@pytest.mark.parametrize("first", ["the worker first", "the orchestrator first"])
@pytest.mark.parametrize("language", ["python", "node"])
@pytest.mark.parametrize("name", CASES)
async def test_a_plain_worker_answers_with_the_ticket_and_the_attempt(
    tmp_path: Path, name: str, language: str, first: str
) -> None:
    case = CASES[name]
    command: Command = python_worker(name) if language == "python" else node_worker(name, case.package)
    arguments = await asyncio.to_thread(command, tmp_path)
    with own(name, tmp_path) as server:
        broker, process, sent = broker_of(server.url), None, 0
        try:
            if first == "the orchestrator first":
                await publish_confirmed(broker, [order(FONTE, 0)])
                sent = 1
            process = await started(arguments, FONTE, **case.address(server))
            await publish_confirmed(broker, [order(FONTE, number) for number in range(sent, ORDERS)])
            await answers(broker, FONTE, ORDERS)

            async def nothing_held() -> bool:
                return not await case.held(server, broker)

            await until(nothing_held)
            await stopped(process)
        finally:
            await broker.close()
            await ended(process)
