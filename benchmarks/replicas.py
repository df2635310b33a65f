"""How throughput grows with replicas: W1 orchestrations that arrive by message, on PostgreSQL and Redis Streams.

    python -m benchmarks.replicas [-n 3000] [--replicas 1 2] [--json FILE]

Each replica is an `oraculo up` in a process of its own, with one worker process beside it; the requests are published
to `orquestrador_requisicoes` before the clock starts, which is when the first of them has begun; it stops when the last
has ended.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from tools.servers.postgres import Postgres
from tools.servers.redis import Redis
from tools.servers.server import free_port

from oraculo.adapters.brokers.connect import broker_of
from oraculo.bootstrap.adapters import store_of
from oraculo.ports.broker import Outgoing, publish_confirmed
from oraculo.wire import names

BEGUN = "SELECT count(*) FROM runs"
CLOSED = "SELECT count(*) FROM runs WHERE closed_at IS NOT NULL"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=3000, help="orchestrations")
    parser.add_argument("--replicas", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    figures = [measure(options.n, count) for count in options.replicas]
    for one in figures:
        print(", ".join(f"{key} {value}" for key, value in one.items()))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


def measure(n: int, replicas: int) -> dict[str, Any]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="oraculo-replicas-")))
        folder.chmod(0o755)
        postgres = stack.enter_context(Postgres(folder / "postgres"))
        redis = stack.enter_context(Redis(folder / "redis"))
        asyncio.run(_prepare(postgres.url, redis.url, n))
        environment = {
            **os.environ,
            "ORACULO_STORE": postgres.url,
            "ORACULO_BROKER": redis.url,
            "LOG_LEVEL": "ERROR",
        }
        began = time.monotonic()
        processes = [
            stack.enter_context(_process([*command], folder, environment))
            for _ in range(replicas)
            for command in (
                ("up", "--port", str(free_port())),
                ("worker", "oraculo.bench.work:worker"),
            )
        ]
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            first = _until(connection, BEGUN, 1)
            last = _until(connection, CLOSED, n)
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(30)
    return {
        "replicas": replicas,
        "orchestrations": n,
        "per_second": round(n / (last - first), 1),
        "seconds": round(last - began, 2),
    }


async def _prepare(store: str, broker: str, n: int) -> None:
    """The tables are there, and the requests wait."""
    async with store_of(store):
        pass
    link = broker_of(broker)
    payload: dict[str, Any] = {
        "coletas": [{"fonte": f"bench_{one}", "parametros": {"n": 1}} for one in "abc"],
        "execucoes": [{"executador": "bench_soma"}],
    }
    for start in range(0, n, 500):
        await publish_confirmed(link, [_request(number, payload) for number in range(start, min(n, start + 500))])
    await link.close()


def _request(number: int, payload: dict[str, Any]) -> Outgoing:
    envelope = {
        "correlation_id": f"pedido-{number}",
        "tipo_evento": "iniciar_coleta",
        "payload": payload,
        "timestamp": "2026-01-01T00:00:00Z",
    }
    return Outgoing(names.REQUESTS, json.dumps(envelope).encode(), "")


def _process(arguments: list[str], folder: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "oraculo", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _until(connection: psycopg.Connection[Any], counting: LiteralString, count: int) -> float:
    while connection.execute(counting).fetchall()[0][0] < count:
        time.sleep(0.02)
    return time.monotonic()


if __name__ == "__main__":
    main()
