"""What standing by costs: a registry of workers that send heartbeats over HTTP, and schedules that are not due.

    .venv/bin/python -m benchmarks.registry --workers 5000 --schedules 10000 --seconds 60 --json

Each load has a server of its own on a fresh SQLite file, as `oraculo up` starts it. What is told is the time on a
processor of that process (user and system, from /proc), per second of the clock: 0.05 is 5 % of one core.

idle       a server that nobody asks for anything
single     every worker sends its own heartbeat, evenly over the 30 s that the server asks for
by host    the workers of a host are one request (`POST /api/v1/workers/heartbeats`), `--per-host` in each
sdk        the same from what Python workers have for it (`oraculo.worker.host_beats`): they begin at any instant, and
           are measured once each has beaten; here the hosts are folders
schedules  no worker; so many schedules that are due in years
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from oraculo import logs
from oraculo.worker.host_beats import HostBeats

API = "/api/v1"
CONNECTIONS = 50
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
HEADERS_MAX_BYTES = 65536
SETTLING_PERIODS = 1.5  # until every worker has beaten, and knows when the others do
Figures = dict[str, Any]


def processor_s(pid: int) -> float:
    """Seconds on a processor of a process and all of its threads since it began."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


@contextmanager
def server(folder: Path) -> Iterator[tuple[int, int]]:
    """`oraculo up` on a fresh file: its process and its port."""
    env = {**os.environ, "ORACULO_STORE": f"sqlite:///{folder}/oraculo.db", "LOG_LEVEL": "ERROR"}
    command = [sys.executable, "-m", "oraculo", "up", "--port", "0", "--json"]
    process = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    try:
        said = json.loads(process.stdout.readline())
        yield said["pid"], int(said["url"].rpartition(":")[2])
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


class Connection:
    """One connection that is kept alive; as little client as there can be."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: Any) -> bytes:
        """Send one request and return its answer; an answer that is no success is an error."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port, limit=HEADERS_MAX_BYTES)
        reader, writer = self._streams
        content = json.dumps(body).encode()
        head = f"{method} {API}{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        told = await reader.readexactly(int(length.partition(b":")[2]))
        if not answer.startswith(b"HTTP/1.1 2"):
            raise SystemExit(f"{method} {path}: {answer[:30]!r} {told!r}")
        return told

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()


Request = tuple[str, str, Any]


async def asked(port: int, requests: list[Request], seconds: float | None = None) -> None:
    """Send all of them over some connections, evenly over so many seconds or as fast as it goes."""
    connections, began = [Connection(port) for _ in range(CONNECTIONS)], time.monotonic()

    async def some(first: int) -> None:
        for number in range(first, len(requests), CONNECTIONS):
            if seconds is not None:
                await asyncio.sleep(max(0.0, began + number * seconds / len(requests) - time.monotonic()))
            await connections[first].ask(*requests[number])

    await asyncio.gather(*(some(first) for first in range(CONNECTIONS)))
    for one in connections:
        one.close()
    if seconds is not None:
        await asyncio.sleep(max(0.0, began + seconds - time.monotonic()))


def beat(number: int) -> dict[str, Any]:
    """What a worker with one order under way says."""
    running = [{"ticket_id": "06721f3a-0000-8000-8000-000004b1c2d3", "tentativa": 1, "progresso": 40}]
    return {"em_andamento": 1, "executando": running, "telemetria": {"fila_local": number % 7}}


def registrations(count: int) -> list[Request]:
    said = {"filas": ["escavador_a"], "capacidades": ["python"], "concorrencia": 4, "timeout_s": 120}
    return [("POST", "/workers", {"worker": f"w{n}", **said}) for n in range(count)]


def beats(count: int, seconds: float, period_s: float, per_host: int) -> list[Request]:
    """The heartbeats of all workers for so long; `per_host` of them in a request, 1: each in its own."""
    rounds = round(count * seconds / period_s)
    numbers = [n % count for n in range(rounds)]
    if per_host == 1:
        return [("PUT", f"/workers/w{n}/heartbeat", beat(n)) for n in numbers]
    hosts = [numbers[at : at + per_host] for at in range(0, len(numbers), per_host)]
    return [("POST", "/workers/heartbeats", [{"worker": f"w{n}", **beat(n)} for n in host]) for host in hosts]


class Host:
    """The workers of one host, as Python's `Worker` has them beat: each by itself, until stopped."""

    def __init__(self, port: int, folder: Path, numbers: range) -> None:
        self._connection = Connection(port)
        self._numbers = numbers
        self.requests = 0
        self.beats = [HostBeats(f"http://127.0.0.1:{port}", None, self._send, folder) for _ in numbers]

    async def _send(self, said: list[dict[str, Any]]) -> list[dict[str, Any]]:
        self.requests += 1
        items: list[dict[str, Any]] = json.loads(await self._connection.ask("POST", "/workers/heartbeats", said))[
            "itens"
        ]
        return items

    async def worker(self, number: int, first_s: float) -> None:
        beats = self.beats[number - self._numbers.start]
        await asyncio.sleep(first_s)
        while True:
            began = time.monotonic()
            told = await beats.beat({"worker": f"w{number}", **beat(number)})
            if told is None or "proximo_s" not in told:
                raise SystemExit(f"w{number} was told {told!r}")
            await asyncio.sleep(max(0.0, began + told["proximo_s"] - time.monotonic()))

    async def close(self) -> None:
        for one in self.beats:
            await one.close()
        self._connection.close()


async def python_workers(port: int, pid: int, count: int, per_host: int, seconds: float, period_s: float) -> Figures:
    """The share of one core while all of them beat, and how many requests that was."""
    with tempfile.TemporaryDirectory() as folder:
        ranges = [range(at, min(at + per_host, count)) for at in range(0, count, per_host)]
        hosts = [Host(port, Path(folder, str(at)), numbers) for at, numbers in enumerate(ranges)]
        works = [
            asyncio.create_task(host.worker(number, (number % per_host) * period_s / per_host))
            for host, numbers in zip(hosts, ranges, strict=True)
            for number in numbers
        ]
        await asyncio.sleep(period_s * SETTLING_PERIODS)
        spent, began, requests = processor_s(pid), time.monotonic(), sum(host.requests for host in hosts)
        await asyncio.sleep(seconds)
        took = time.monotonic() - began
        share, requests = (processor_s(pid) - spent) / took, sum(host.requests for host in hosts) - requests
        for work in works:
            if work.done():
                work.result()
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)
        for host in hosts:
            await host.close()
    return {"core": round(share, 4), "requests_per_second": round(requests / took, 1), "seconds": round(took, 1)}


def with_python_workers(count: int, per_host: int, seconds: float, period_s: float) -> Figures:
    with tempfile.TemporaryDirectory() as folder, server(Path(folder)) as (pid, port):
        asyncio.run(asked(port, registrations(count)))
        return asyncio.run(python_workers(port, pid, count, per_host, seconds, period_s))


def schedules(count: int) -> list[Request]:
    body = {"cron": "0 0 1 1 *", "requisicao": {"coletas": [{"fonte": "a"}]}}
    return [("PUT", f"/schedules/s{n}", body) for n in range(count)]


def measured(before: list[Request], load: list[Request], seconds: float) -> Figures:
    """The share of one core that a server takes under a load, after `before` was asked."""
    with tempfile.TemporaryDirectory() as folder, server(Path(folder)) as (pid, port):
        asyncio.run(asked(port, before))
        time.sleep(3)  # what was asked is written, and looked at once
        spent, began = processor_s(pid), time.monotonic()
        asyncio.run(asked(port, load, seconds))
        took = time.monotonic() - began
        share = (processor_s(pid) - spent) / took
    return {"core": round(share, 4), "requests_per_second": round(len(load) / took, 1), "seconds": round(took, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=5000)
    parser.add_argument("--per-host", type=int, default=50)
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--period", type=float, default=30.0, help="seconds between two heartbeats of a worker")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    logs.configure("ERROR", "json", "benchmark")
    count, seconds, period = chosen.workers, chosen.seconds, chosen.period
    found = {
        "idle": measured([], [], seconds),
        "single": measured(registrations(count), beats(count, seconds, period, 1), seconds),
        "by host": measured(registrations(count), beats(count, seconds, period, chosen.per_host), seconds),
        "sdk": with_python_workers(count, chosen.per_host, seconds, period),
        "schedules": measured(schedules(chosen.schedules), [], seconds),
    }
    if chosen.json:
        print(json.dumps(found, indent=1))
        return
    for name, figures in found.items():
        print(f"{name:10} {figures['core']:.2%} of one core, {figures['requests_per_second']:g} requests/s")


if __name__ == "__main__":
    main()
