"""How long until an orchestrator that was killed works again with 10,000 tickets in flight, and until another broker
stands in for one that was killed.

    .venv/bin/python -m benchmarks.recovery [--tickets 10000] [--repeats 3] [--json FILE]

Recovery: a process opens one orchestration of so many tickets, or so many orchestrations of one, on SQLite and the
in-process broker, and is killed with all of them in flight; the broker has forgotten them all. Then `oraculo up` starts
on the same folder: seconds of the clock and of a processor until `/ready` says so, and until all orders are back.
Failover: `oraculo up` on RabbitMQ with Redis behind it, requests all the time; RabbitMQ is killed, and the clock stops
when Redis has confirmed an order. The promise is 3 s for either on an idle machine; the load is printed beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
from benchmarks.machine import describe
from tools.servers.rabbitmq import RabbitMQ
from tools.servers.redis import Redis
from tools.servers.server import free_port

from oraculo.service import Oraculo
from oraculo.settings.settings import load

SOURCE, TIMEOUT_S = "recovery", 36_000
SHAPES = ("one run", "many runs")
PATIENCE_S, POLL_S = 120.0, 0.01
FILL_CHUNK = 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tickets", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--fill", nargs=2, metavar=("SHAPE", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fill:
        asyncio.run(fill(options.fill[0], Path(options.fill[1]), options.tickets))
        return
    figures: list[dict[str, Any]] = []
    for number, shape in itertools.product(range(1, options.repeats + 1), (*SHAPES, "failover")):
        one = failover() if shape == "failover" else recovery(shape, options.tickets)
        figures.append({"what": shape, "repeat": number, **one, "load": round(os.getloadavg()[0], 1)})
        print(", ".join(f"{name} {value}" for name, value in figures[-1].items()), flush=True)
    if options.json:
        options.json.write_text(json.dumps({"machine": describe(), "figures": figures}, indent=1) + "\n")


# -- recovery ----------------------------------------------------------------------------------------------------------


async def fill(shape: str, folder: Path, tickets: int) -> None:
    """Open the tickets; when all are in flight this process ends as with kill -9."""
    settings = load(environment(folder, "memory://"), None)
    async with Oraculo(settings) as oraculo:
        if shape == SHAPES[0]:
            await oraculo.submit(request(tickets))
        else:
            for _ in range(0, tickets, FILL_CHUNK):
                await asyncio.gather(*(oraculo.submit(request(1)) for _ in range(FILL_CHUNK)))
        await oraculo.engine.drained()
        os.kill(os.getpid(), signal.SIGKILL)


def recovery(shape: str, tickets: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="oraculo-recovery-") as folder:
        command = [sys.executable, "-m", "benchmarks.recovery", "--tickets", str(tickets), "--fill", shape, folder]
        ended = subprocess.run(command, capture_output=True, check=False)
        if ended.returncode != -signal.SIGKILL:
            raise SystemExit(ended.stderr.decode(errors="replace"))
        with server(Path(folder), "memory://") as (process, url):
            began = time.monotonic()
            found = {"tickets": tickets}
            for what, reached in (
                ("ready", lambda: answers(url, "/ready")),
                ("orders_back", lambda: metric(url, "orchestration_queue_depth", f"escavador_{SOURCE}") >= tickets),
            ):
                until(reached, process, what)
                found |= {f"{what}_s": round(time.monotonic() - began, 2), f"{what}_processor_s": processor_s(process)}
            return found


# -- failover ----------------------------------------------------------------------------------------------------------


def failover() -> dict[str, Any]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="oraculo-failover-")))
        folder.chmod(0o755)
        rabbit = stack.enter_context(RabbitMQ(folder / "rabbitmq"))
        redis = stack.enter_context(Redis(folder / "redis"))
        process, url = stack.enter_context(server(folder, f"{rabbit.url},{redis.url}"))
        until(lambda: answers(url, "/ready"), process, "ready")
        for broker in (rabbit.url, redis.url):
            stack.enter_context(worker(broker))

        def published() -> float:
            """Every look brings a request, so that there is always something to publish."""
            submit(url)
            return metric(url, "orchestration_tickets_published_total")

        until(lambda: published() > 10, process, "orders are taken by RabbitMQ")
        began = time.monotonic()
        rabbit.kill()
        before = published()
        until(lambda: published() > before + 1, process, "orders are taken by Redis")
        return {"first_confirmed_s": round(time.monotonic() - began, 2)}


# -- processes ---------------------------------------------------------------------------------------------------------


def environment(folder: Path, broker: str) -> dict[str, str]:
    return {"ORACULO_STORE": f"sqlite:///{folder / 'recovery.db'}", "ORACULO_BROKER": broker, "LOG_LEVEL": "ERROR"}


def request(tickets: int, source: str = SOURCE) -> dict[str, Any]:
    collects = [{"fonte": source, "parametros": {"n": n}, "timeout_s": TIMEOUT_S} for n in range(tickets)]
    return {"coletas": collects, "timeout_s": TIMEOUT_S}


@contextmanager
def server(folder: Path, broker: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    port = free_port()
    with _process(["up", "--port", str(port)], environment(folder, broker)) as process:
        yield process, f"http://127.0.0.1:{port}"


@contextmanager
def worker(broker: str) -> Iterator[None]:
    given = {"ORACULO_BROKER": broker, "LOG_LEVEL": "CRITICAL"}
    with _process(["worker", "oraculo.bench.work:worker"], given):
        yield


@contextmanager
def _process(arguments: list[str], given: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "oraculo", *arguments],
        env={**os.environ, **given},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def until(reached: Callable[[], bool], process: subprocess.Popen[bytes], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not reached():
        if process.poll() is not None or time.monotonic() > end:
            raise SystemExit(f"not reached: {what}")
        time.sleep(POLL_S)


def answers(url: str, path: str) -> bool:
    try:
        return httpx2.get(f"{url}{path}", timeout=5).status_code == 200
    except httpx2.TransportError:
        return False


def submit(url: str) -> None:
    httpx2.post(f"{url}/api/v1/orchestrations", json=request(1, "bench_a"), timeout=30)


def metric(url: str, name: str, queue: str = "") -> float:
    """The sum of a family, or of its samples for one queue."""
    text = httpx2.get(f"{url}/metrics", timeout=30).text
    found = re.findall(rf"^{name}(?:\{{([^}}]*)\}})? (\S+)$", text, re.MULTILINE)
    return sum(float(value) for labels, value in found if not queue or f'fila="{queue}"' in labels)


def processor_s(process: subprocess.Popen[bytes]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return round((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), 2)


if __name__ == "__main__":
    main()
