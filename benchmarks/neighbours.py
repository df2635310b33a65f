"""What others do to a neighbour: the p99 of one tenant's submissions, alone and beside each of three attacks.

    python -m benchmarks.neighbours [--requests 400]

A server of its own (`oraculo up`, SQLite), tenants `a` and `b`. Beside `b`: `a` at fifty times its quota, 1,100
connections that send half a header, 200 bodies that never end. The goal is a p99 of twice that of being alone.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import resource
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import httpx2

QUOTA_PER_S = 5
FLOOD_PER_S = 50 * QUOTA_PER_S
HALF_OPEN_CONNECTIONS = 1100
SLOW_BODIES = 200
START_TIMEOUT_S = 60.0
ONE = {"coletas": [{"fonte": "youtube"}]}
ROUTE = "/api/v1/orchestrations"


class Neighbour:
    """A running server, and the keys of its two tenants."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = int(free.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self._admin = secrets.token_urlsafe(32)
        self._folder = folder
        self._env = {**os.environ, "ORACULO_STORE": f"sqlite:///{folder}/o.db", "ORACULO_API_KEY": self._admin}

    def start(self) -> subprocess.Popen[bytes]:
        with open(self._folder / "log", "wb") as log:
            command = [sys.executable, "-m", "oraculo", "up", "--port", str(self.port)]
            process = subprocess.Popen(command, env=self._env, cwd=self._folder, stdout=log, stderr=log)
        until = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < until:
            with contextlib.suppress(httpx2.TransportError):
                if httpx2.get(f"{self.url}/health").status_code == 200:
                    return process
            time.sleep(0.1)
        process.kill()
        raise SystemExit((self._folder / "log").read_text())

    def limit(self) -> None:
        """Give `a` its quota; other processes know within five seconds."""
        put = ["tenants", "put", "a", "--per-second", str(QUOTA_PER_S)]
        subprocess.run([sys.executable, "-m", "oraculo", *put], env=self._env, check=True, capture_output=True)

    def key(self, tenant: str) -> dict[str, str]:
        body = {"role": "operador", "tenant": tenant}
        made = httpx2.post(f"{self.url}/api/v1/keys", json=body, headers={"X-API-Key": self._admin})
        return {"X-API-Key": made.json()["key"]}


@asynccontextmanager
async def alone() -> AsyncIterator[None]:
    yield


@asynccontextmanager
async def flood(server: Neighbour, key: dict[str, str]) -> AsyncIterator[None]:
    """Submissions of `a` at a steady rate, far beyond its quota."""
    told: dict[int, int] = {}

    async def one(client: httpx2.AsyncClient) -> None:
        with contextlib.suppress(httpx2.TransportError):
            status = (await client.post(ROUTE, json=ONE, headers=key)).status_code
            told[status] = told.get(status, 0) + 1

    async def run() -> None:
        limits = httpx2.Limits(max_connections=64)
        async with (
            httpx2.AsyncClient(base_url=server.url, limits=limits, timeout=30) as client,
            asyncio.TaskGroup() as tasks,
        ):
            while True:
                tasks.create_task(one(client))
                await asyncio.sleep(1 / FLOOD_PER_S)

    task = asyncio.create_task(run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        print(f"  answers to the flood: {told}")


@asynccontextmanager
async def held(server: Neighbour, count: int, said: bytes) -> AsyncIterator[None]:
    """Connections that said this and then nothing more."""
    writers = []
    for _ in range(count):
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(said)
        writers.append(writer)
    try:
        yield
    finally:
        for writer in writers:
            writer.close()


async def measured(server: Neighbour, key: dict[str, str], requests: int) -> tuple[float, float]:
    """Milliseconds: p50 and p99 of submissions one after the other."""
    times = []
    async with httpx2.AsyncClient(base_url=server.url, timeout=60) as client:
        for _ in range(requests):
            began = time.perf_counter()
            answer = await client.post(ROUTE, json=ONE, headers=key)
            times.append((time.perf_counter() - began) * 1000)
            assert answer.status_code == 202, answer.text
    times.sort()
    return times[len(times) // 2], times[min(len(times) - 1, int(len(times) * 0.99))]


async def compare(server: Neighbour, requests: int) -> dict[str, dict[str, float]]:
    a, b = server.key("a"), server.key("b")
    await asyncio.sleep(6)  # until the quota is known
    half = b"POST /api/v1/orchestrations HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    body = half + b"X-API-Key: %b\r\n" % a["X-API-Key"].encode()
    body += b"Content-Type: application/json\r\nContent-Length: 900000\r\n\r\n{"
    attacks: dict[str, Callable[[], AbstractAsyncContextManager[None]]] = {
        f"tenant a at {FLOOD_PER_S}/s of {QUOTA_PER_S}/s": lambda: flood(server, a),
        f"{HALF_OPEN_CONNECTIONS} half-open connections": lambda: held(server, HALF_OPEN_CONNECTIONS, half),
        f"{SLOW_BODIES} slow bodies": lambda: held(server, SLOW_BODIES, body),
    }
    found = {}
    await measured(server, b, requests // 4)  # warm
    for name, attack in attacks.items():
        _, before = await measured(server, b, requests)
        async with attack():
            p50, p99 = await measured(server, b, requests)
        _, after = await measured(server, b, requests)
        quiet = max(before, after)  # what the machine does by itself is not the attack's
        found[name] = {"p50_ms": p50, "p99_ms": p99, "alone_p99_ms": quiet, "ratio": p99 / quiet}
        print(f"{name}: p50 {p50:.1f} ms, p99 {p99:.1f} ms; alone p99 {quiet:.1f} ms; {p99 / quiet:.2f} times")
    return found


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--requests", type=int, default=400)
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    with tempfile.TemporaryDirectory() as folder:
        server = Neighbour(Path(folder))
        process = server.start()
        try:
            server.limit()
            found = asyncio.run(compare(server, chosen.requests))
        finally:
            process.terminate()
            process.wait(30)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
