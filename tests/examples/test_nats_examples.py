"""The plain NATS workers of the documentation do their work, started by themselves, on a real server."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nats
import orjson
import pytest

from oraculo.adapters.brokers.nats_jetstream import NatsBroker
from oraculo.ports.broker import Delivery, Outgoing, Settlement
from servers import own

WORKERS = Path(__file__).parents[2] / "examples" / "workers" / "nats"
SOON = 30.0
INSTALL = 60.0  # seconds that npm may take


def python_worker(_: Path) -> list[str]:
    return [sys.executable, str(WORKERS / "worker.py")]


def node_worker(folder: Path) -> list[str]:
    """With the package beside it, as a user would have it."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("Node.js is not installed")
    shutil.copy(WORKERS / "worker.mjs", folder)
    install = [npm, "install", "--no-audit", "--no-fund", "--prefer-offline", "--prefix", str(folder), "nats@2"]
    try:
        subprocess.run(install, check=True, capture_output=True, timeout=INSTALL)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        pytest.skip("npm cannot install the package `nats`")
    return [node, str(folder / "worker.mjs")]


def order(number: int) -> Outgoing:
    body = {
        "correlation_id": f"c-{number}",
        "tipo_evento": "iniciar_coleta",
        "payload": {"fonte": "eco", "parametros": {"n": number}},
        "timestamp": "2025-10-14T12:00:00Z",
        "ticket_id": "t",
    }
    return Outgoing("escavador_eco", orjson.dumps(body), f"m-{number}")


async def answers(broker: NatsBroker, count: int) -> list[Delivery]:
    taken: list[Delivery] = []
    async with asyncio.timeout(SOON):
        while len(taken) < count:
            got = await broker.fetch("orquestrador_resultados", limit=count, wait=SOON)
            await broker.settle([Settlement(delivery) for delivery in got])
            taken += got
    return taken


async def nothing_is_held(url: str) -> None:
    connection = await nats.connect(url)
    try:
        async with asyncio.timeout(SOON):
            while True:
                info = await connection.jetstream().consumer_info("escavador_eco", "oraculo")
                if not info.num_ack_pending and not info.num_pending:
                    return
                await asyncio.sleep(0.05)
    finally:
        await connection.close()


@pytest.mark.parametrize("first", ["the worker first", "the orchestrator first"])
@pytest.mark.parametrize("command_of", [python_worker, node_worker])
async def test_a_plain_worker_answers_with_the_four_required_fields(
    tmp_path: Path, command_of: Callable[[Path], list[str]], first: str
) -> None:
    command = await asyncio.to_thread(command_of, tmp_path)
    with own("nats", tmp_path) as server:
        broker = NatsBroker(server.url)
        if first == "the orchestrator first":
            await broker.publish([order(0)])
        process = await asyncio.create_subprocess_exec(
            *command, env={**os.environ, "NATS_URL": server.url, "FONTE": "eco"}, stdout=asyncio.subprocess.PIPE
        )
        try:
            assert process.stdout is not None
            async with asyncio.timeout(SOON):
                assert b"escavador_eco" in await process.stdout.readline()
            await broker.publish([order(0), order(1)])
            results = [orjson.loads(answer.body) for answer in await answers(broker, 2)]
            for number, result in enumerate(sorted(results, key=lambda result: str(result["correlation_id"]))):
                assert set(result) == {"correlation_id", "tipo_evento", "payload", "timestamp"}
                assert result["correlation_id"] == f"c-{number}" and result["tipo_evento"] == "resultado_coleta"
                assert result["payload"]["dados"] == [{"fonte": "eco", "parametros": {"n": number}}]
            await nothing_is_held(server.url)
            process.terminate()
            async with asyncio.timeout(SOON):
                assert await process.wait() == 0
        finally:
            await broker.close()
            if process.returncode is None:
                process.kill()
                await process.wait()
