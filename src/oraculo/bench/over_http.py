"""W1 and SEQ through the HTTP API: the server in a process of its own, this process as its client."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from oraculo.bench.work import REQUEST
from oraculo.bench.workloads import Figures, Progress, _percentiles
from oraculo.client import AsyncClient
from oraculo.errors import OraculoError

AT_ONCE = 64


@contextmanager
def server() -> Iterator[str]:
    """`oraculo up` on a free port with a fresh database; yields its URL."""
    with TemporaryDirectory(prefix="oraculo-bench-") as folder:
        environment = {
            **os.environ,
            "ORACULO_STORE": "sqlite:///bench.db",
            "LOG_LEVEL": "WARNING",
            "ORACULO_API_KEY": "",
        }
        command = [
            sys.executable,
            "-m",
            "oraculo",
            "up",
            "--port",
            "0",
            "--json",
            "--worker",
            "oraculo.bench.work:worker",
        ]
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise OraculoError("the server did not start")
            yield json.loads(line)["url"]
        finally:
            process.terminate()
            process.wait(30)
            process.stdout.close() if process.stdout else None


async def w1(n: int, progress: Progress) -> Figures:
    with server() as url:
        async with AsyncClient(url) as client:
            gate = asyncio.Semaphore(AT_ONCE)

            async def one() -> None:
                async with gate:
                    submitted = await client.submit(REQUEST)
                async with gate:
                    result = await client.result(submitted.correlation_id, wait=120)
                if result is None or result["status"] != "concluida":
                    raise OraculoError(f"a benchmark orchestration ended wrong: {result}")

            await asyncio.gather(*(one() for _ in range(50)))
            progress(f"W1 over HTTP: {n} orchestrations")
            started = time.perf_counter()
            await asyncio.gather(*(one() for _ in range(n)))
            seconds = time.perf_counter() - started
            return {
                "workload": "W1",
                "http": True,
                "orchestrations": n,
                "seconds": round(seconds, 4),
                "per_second": round(n / seconds, 1),
            }


async def seq(n: int, progress: Progress) -> Figures:
    with server() as url:
        async with AsyncClient(url) as client:
            times = []
            progress(f"SEQ over HTTP: {n} orchestrations, one after another")
            for number in range(n + 10):
                started = time.perf_counter()
                submitted = await client.submit(REQUEST)
                await client.result(submitted.correlation_id, wait=60)
                if number >= 10:
                    times.append((time.perf_counter() - started) * 1000)
            return {"workload": "SEQ", "http": True, "orchestrations": n, **_percentiles(times)}
