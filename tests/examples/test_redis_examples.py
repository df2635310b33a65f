"""The plain Redis workers of the documentation do their work, started by themselves, on a real server."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from adapters.redis_tools import SOON, ack, eventually, opened, plain, take
from oraculo.ports.broker import Outgoing
from servers import own

WORKERS = Path(__file__).parents[2] / "examples" / "workers" / "redis"
INSTALL = 60.0  # seconds that npm may take


def python_worker(_: Path) -> list[str]:
    return [sys.executable, str(WORKERS / "worker.py")]


def node_worker(folder: Path) -> list[str]:
    """With the package beside it, as a user would have it."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("Node.js is not installed")
    shutil.copy(WORKERS / "worker.mjs", folder)
    install = [npm, "install", "--no-audit", "--no-fund", "--prefer-offline", "--prefix", str(folder), "redis@6"]
    try:
        subprocess.run(install, check=True, capture_output=True, timeout=INSTALL)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        pytest.skip("npm cannot install the package `redis`")
    return [node, str(folder / "worker.mjs")]


@pytest.mark.parametrize("command_of", [python_worker, node_worker])
async def test_a_plain_worker_answers_with_the_four_required_fields(tmp_path: Path, command_of: object) -> None:
    command = await asyncio.to_thread(command_of, tmp_path)  # type: ignore[arg-type]
    with own("redis", tmp_path) as server:
        process = await asyncio.create_subprocess_exec(
            *command, env={**os.environ, "REDIS_URL": server.url, "FONTE": "eco"}
        )
        try:
            async with opened(server) as broker:
                for number in range(2):
                    order = {
                        "correlation_id": f"c-{number}",
                        "tipo_evento": "iniciar_coleta",
                        "payload": {"fonte": "eco", "parametros": {"n": number}},
                        "timestamp": "2025-10-14T12:00:00Z",
                        "ticket_id": "t",
                    }
                    await broker.publish([Outgoing("escavador_eco", orjson.dumps(order), f"m-{number}")])
                answers = await take(broker, "orquestrador_resultados", 2, within=2 * SOON)
                await ack(broker, answers)
            for number, answer in enumerate(answers):
                result = orjson.loads(answer.body)
                assert set(result) == {"correlation_id", "tipo_evento", "payload", "timestamp"}
                assert result["correlation_id"] == f"c-{number}" and result["tipo_evento"] == "resultado_coleta"
                assert result["payload"]["dados"] == [{"fonte": "eco", "parametros": {"n": number}}]
            await eventually(lambda: plain(server).xpending("escavador_eco", "oraculo")["pending"] == 0)
            process.terminate()
            async with asyncio.timeout(SOON):
                assert await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
