"""The plain workers of examples/workers/: how each is started, what it is sent, what it must answer."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from oraculo.ports.broker import Broker, Outgoing, Settlement
from waiting import DEADLINE_S

EXAMPLES = Path(__file__).parents[2] / "examples" / "workers"
INSTALL = 100.0  # seconds that npm may take
FIELDS = {"correlation_id", "tipo_evento", "payload", "timestamp", "ticket_id", "tentativa", "token"}
Command = Callable[[Path], list[str]]


def python_worker(broker: str) -> Command:
    return lambda _: [sys.executable, str(EXAMPLES / broker / "worker.py")]


def node_worker(broker: str, package: str) -> Command:
    """With the package beside it, as a user would have it."""

    def command(folder: Path) -> list[str]:
        shutil.copy(EXAMPLES / broker / "worker.mjs", folder)
        npm(folder, "install", "--prefer-offline", "--prefix", str(folder), package)
        return [str(shutil.which("node")), str(folder / "worker.mjs")]

    return command


def npm(folder: Path, *arguments: str) -> None:
    """Skips where there is no Node.js, or nothing to install from."""
    program = shutil.which("npm")
    if program is None or shutil.which("node") is None:
        pytest.skip("Node.js is not installed")
    command = [program, *arguments, "--no-audit", "--no-fund"]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=INSTALL)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"npm cannot install what the worker needs: {str(error.stderr)[-300:]}")


def order(fonte: str, number: int) -> Outgoing:
    body = {
        "correlation_id": f"{fonte}-{number}",
        "tipo_evento": "iniciar_coleta",
        "payload": {"fonte": fonte, "parametros": {"n": number}},
        "timestamp": "2025-10-14T12:00:00Z",
        "ticket_id": f"t-{number}",
        "tentativa": 2,
        "token": f"k-{number}",
    }
    return Outgoing(f"escavador_{fonte}", orjson.dumps(body), f"m-{number}")


async def answers(broker: Broker, fonte: str, count: int) -> None:
    """To as many orders, with the four required fields, ticket, attempt and token, and nothing else."""
    found: dict[str, Any] = {}
    async with asyncio.timeout(DEADLINE_S):
        while len(found) < count:
            got = await broker.fetch("orquestrador_resultados", limit=count, wait=DEADLINE_S)
            await broker.settle([Settlement(delivery) for delivery in got])
            found |= {result["correlation_id"]: result for result in (orjson.loads(one.body) for one in got)}
    assert set(found) == {f"{fonte}-{number}" for number in range(count)}
    for name, result in found.items():
        assert set(result) == FIELDS and result["tipo_evento"] == "resultado_coleta"
        number = int(name.rpartition("-")[2])
        assert (result["ticket_id"], result["tentativa"], result["token"]) == (f"t-{number}", 2, f"k-{number}")
        dados = [{"fonte": fonte, "parametros": {"n": number}}]
        assert result["payload"] == {"fonte": fonte, "status": "ok", "dados": dados}


async def started(command: list[str], fonte: str, **env: str) -> asyncio.subprocess.Process:
    """It says what it reads from as soon as it can."""
    process = await asyncio.create_subprocess_exec(
        *command, env={**os.environ, "FONTE": fonte, **env}, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    async with asyncio.timeout(DEADLINE_S):
        assert f"escavador_{fonte}".encode() in await process.stdout.readline()
    return process


async def stopped(process: asyncio.subprocess.Process) -> None:
    """As an operator does it; it ends well."""
    process.terminate()
    async with asyncio.timeout(DEADLINE_S):
        assert await process.wait() == 0


async def ended(process: asyncio.subprocess.Process | None) -> None:
    if process is not None and process.returncode is None:
        process.kill()
        await process.wait()
