"""The plain Kafka workers of the documentation do their work, started by themselves, on a real server."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import orjson
import pytest
from services.kafka import Kafka

from oraculo.adapters.brokers.kafka import KafkaBroker
from oraculo.ports.broker import Delivery, Outgoing, Settlement
from servers import own

WORKERS = Path(__file__).parents[2] / "examples" / "workers" / "kafka"
SOON = 30.0
INSTALL = 60.0  # seconds that npm may take
_numbers = count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with own("kafka", tmp_path_factory.mktemp("examples")) as server:
        assert isinstance(server, Kafka)
        yield server


def python_worker(_: Path) -> list[str]:
    return [sys.executable, str(WORKERS / "worker.py")]


def node_worker(folder: Path) -> list[str]:
    """With the package beside it, as a user would have it."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("Node.js is not installed")
    shutil.copy(WORKERS / "worker.mjs", folder)
    install = [npm, "install", "--no-audit", "--no-fund", "--prefer-offline", "--prefix", str(folder), "kafkajs@2"]
    try:
        subprocess.run(install, check=True, capture_output=True, timeout=INSTALL)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        pytest.skip("npm cannot install the package `kafkajs`")
    return [node, str(folder / "worker.mjs")]


def order(fonte: str, number: int) -> Outgoing:
    body = {
        "correlation_id": f"{fonte}-{number}",
        "tipo_evento": "iniciar_coleta",
        "payload": {"fonte": fonte, "parametros": {"n": number}},
        "timestamp": "2025-10-14T12:00:00Z",
        "ticket_id": "t",
    }
    return Outgoing(f"escavador_{fonte}", orjson.dumps(body), f"m-{number}")


async def answers(broker: KafkaBroker, count: int) -> list[Delivery]:
    taken: list[Delivery] = []
    async with asyncio.timeout(SOON):
        while len(taken) < count:
            got = await broker.fetch("orquestrador_resultados", limit=count, wait=SOON)
            await broker.settle([Settlement(delivery) for delivery in got])
            taken += got
    return taken


@pytest.mark.xdist_group("kafka-examples")
@pytest.mark.parametrize("first", ["the worker first", "the orchestrator first"])
@pytest.mark.parametrize("command_of", [python_worker, node_worker])
async def test_a_plain_worker_answers_with_the_four_required_fields(
    server: Kafka, tmp_path: Path, command_of: Callable[[Path], list[str]], first: str
) -> None:
    command = await asyncio.to_thread(command_of, tmp_path)
    fonte = f"eco{next(_numbers)}"
    broker = KafkaBroker(server.url)
    sent = 0
    if first == "the orchestrator first":
        await broker.publish([order(fonte, 0)])
        sent = 1
    process = await asyncio.create_subprocess_exec(
        *command,
        env={**os.environ, "KAFKA_SERVERS": f"127.0.0.1:{server.port}", "FONTE": fonte},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(SOON):
            assert f"escavador_{fonte}".encode() in await process.stdout.readline()
        await broker.publish([order(fonte, number) for number in range(sent, 20)])
        results = [orjson.loads(answer.body) for answer in await answers(broker, 20)]
        assert sorted(result["correlation_id"] for result in results) == sorted(f"{fonte}-{n}" for n in range(20))
        for result in results:
            assert set(result) == {"correlation_id", "tipo_evento", "payload", "timestamp"}
            number = int(result["correlation_id"].rpartition("-")[2])
            assert result["payload"] == {
                "fonte": fonte, "status": "ok", "dados": [{"fonte": fonte, "parametros": {"n": number}}]
            }  # fmt: skip
        async with asyncio.timeout(SOON):  # the worker has said that it is done with all of them
            while (await broker.backlog(f"escavador_{fonte}")).waiting:
                pass
        process.terminate()
        async with asyncio.timeout(SOON):
            assert await process.wait() == 0
    finally:
        await broker.close()
        if process.returncode is None:
            process.kill()
            await process.wait()
