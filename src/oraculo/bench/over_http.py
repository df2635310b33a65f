"""W1 and SEQ through the HTTP API: the server in a process of its own, this process as its client."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from tempfile import TemporaryDirectory

from oraculo.bench.place import Place, facts_of
from oraculo.bench.processes import worker_processes
from oraculo.bench.work import REQUEST
from oraculo.bench.workloads import MESSAGES_PER_RUN, Figures, Progress, percentiles
from oraculo.client.async_client import AsyncClient
from oraculo.errors import OraculoError

AT_ONCE = 64


@contextmanager
def server(place: Place, *, workers: bool = True) -> Iterator[str]:
    """`oraculo up` on a free port with a fresh database, and workers inside where the place has them there; yields its
    URL."""
    with TemporaryDirectory(prefix="oraculo-bench-") as folder:
        environment = {
            **os.environ,
            **place.environment(folder),
            "LOG_LEVEL": "WARNING",
            "ORACULO_API_KEY": "",
        }
        command = [sys.executable, "-m", "oraculo", "up", "--port", "0", "--json"]
        if workers and place.embedded:
            command += ["--worker", "oraculo.bench.work:worker"]
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


@asynccontextmanager
async def connected(place: Place) -> AsyncIterator[tuple[AsyncClient, Figures]]:
    """A client of a server that is up with its workers, and what belongs to every figure."""
    facts = {"http": True, **await facts_of(place)}
    outside = 0 if place.embedded else place.worker_processes
    with server(place) as url:
        async with worker_processes(place.broker, outside, None), AsyncClient(url) as client:
            yield client, facts


async def w1(n: int, progress: Progress, place: Place) -> Figures:
    async with connected(place) as (client, facts):
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
            **facts,
            "orchestrations": n,
            "seconds": round(seconds, 4),
            "per_second": round(n / seconds, 1),
            "messages_per_second": round(n * MESSAGES_PER_RUN / seconds),
        }


async def seq(n: int, progress: Progress, place: Place) -> Figures:
    async with connected(place) as (client, facts):
        times = []
        progress(f"SEQ over HTTP: {n} orchestrations, one after another")
        for number in range(n + 10):
            started = time.perf_counter()
            submitted = await client.submit(REQUEST)
            await client.result(submitted.correlation_id, wait=60)
            if number >= 10:
                times.append((time.perf_counter() - started) * 1000)
        return {"workload": "SEQ", **facts, "orchestrations": n, **percentiles(times)}
