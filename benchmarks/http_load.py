"""What a server does over HTTP, asked by wrk, in figures that stand beside those of `oraculo bench`:

    .venv/bin/python benchmarks/http_load.py --workload SUBMIT -n 5 --json

SUBMIT    W1 orchestrations a second, one request each, 16 connections, the worker inside the server
BATCH     the same, 200 in a request, 4 connections
HEALTH    answers of `/health` a second, and those of an empty application on the same parser and loop, in turns
OVERLOAD  completions a second of a worker over HTTP: alone with a backlog, and while 32 connections submit all the time

`-n` is the seconds of each load. SUBMIT and BATCH count what was completed, until the last one was.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from oraculo.bench import over_http
from oraculo.bench.place import Place
from oraculo.bench.work import REQUEST

SUBMIT, BATCH = "/api/v1/orchestrations", "/api/v1/orchestrations/batch"
BATCH_SIZE = 200
BACKLOG = 4000  # orchestrations that wait for the worker when it is measured alone
SUBMIT_CONNECTIONS, BATCH_CONNECTIONS, HEALTH_CONNECTIONS, OVERLOAD_CONNECTIONS = 16, 4, 16, 32
HEALTH_TURNS = 3
PATIENCE_S = 120.0
SAMPLE_INTERVAL_S = 0.25
COMPLETED = re.compile(r"^orchestration_workflows_completed_total\{[^}]*\} ([0-9.e+]+)", re.MULTILINE)
SCRIPT = """
wrk.method = %(method)s
wrk.body = %(body)s
wrk.headers["Content-Type"] = "application/json"
done = function(summary, latency)
  io.write(string.format('{"requests": %%d, "us": %%d, "refused": %%d, "p50_us": %%d, "p99_us": %%d}\\n',
    summary.requests, summary.duration, summary.errors.status, latency:percentile(50), latency:percentile(99)))
end
"""
EMPTY = """
import sys, uvicorn
async def app(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})
settings = {"log_config": None, "access_log": False, "server_header": False, "lifespan": "off", "ws": "none"}
uvicorn.run(app, port=int(sys.argv[1]), **settings)
"""

Figures = dict[str, Any]


def wrk(url: str, seconds: float, connections: int, body: Any = None) -> Figures:
    """Ask one address without pause; what wrk counted."""
    text = "nil" if body is None else json.dumps(json.dumps(body, separators=(",", ":")))
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(SCRIPT % {"method": '"GET"' if body is None else '"POST"', "body": text})
        script.flush()
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "--timeout", "30s", "-s", script.name, url]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: Figures = json.loads(done.stdout.strip().rpartition("\n")[2])
    return {**found, "per_second": found["requests"] / found["us"] * 1e6}


def posted(url: str, body: Any) -> None:
    headers = {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers), timeout=60) as answer:
        answer.read()


def completed(url: str) -> int:
    """How many orchestrations have ended in this server."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=30) as answer:
        return int(sum(float(number) for number in COMPLETED.findall(answer.read().decode())))


def wait_for(url: str, count: int) -> None:
    """Return when so many have ended."""
    until = time.monotonic() + PATIENCE_S
    while completed(url) < count:
        if time.monotonic() > until:
            raise SystemExit(f"only {completed(url)} of {count} orchestrations were completed")
        time.sleep(0.02)


def submitted(seconds: float, path: str, connections: int, body: Any, size: int) -> Figures:
    """The rate of submissions that were completed, the worker inside."""
    with over_http.server(Place()) as url:
        wrk(f"{url}{path}", 1, connections, body)
        wait_until_idle(url)
        before, started = completed(url), time.perf_counter()
        asked = wrk(f"{url}{path}", seconds, connections, body)
        accepted = (asked["requests"] - asked["refused"]) * size
        wait_for(url, before + accepted)
        took = time.perf_counter() - started
    return {"per_second": accepted / took, "accepted_per_second": accepted / asked["us"] * 1e6, **latency(asked)}


def wait_until_idle(url: str) -> None:
    """Return when nothing more ends: what was accepted has ended, answers that wrk did not wait for among it."""
    seen = -1
    while (now := completed(url)) != seen:
        seen = now
        time.sleep(0.5)


def latency(asked: Figures) -> Figures:
    return {"refused": asked["refused"], "p50_ms": asked["p50_us"] / 1000, "p99_ms": asked["p99_us"] / 1000}


def submit(seconds: float) -> Figures:
    return submitted(seconds, SUBMIT, SUBMIT_CONNECTIONS, REQUEST, 1)


def batch(seconds: float) -> Figures:
    return submitted(seconds, BATCH, BATCH_CONNECTIONS, [REQUEST] * BATCH_SIZE, BATCH_SIZE)


def health(seconds: float) -> Figures:
    ours: list[float] = []
    empty: list[float] = []
    with over_http.server(Place(), workers=False) as url, empty_server() as other:
        for turn in range(HEALTH_TURNS):
            pair = [(f"{url}/health", ours), (other, empty)]
            for address, figures in pair if turn % 2 == 0 else reversed(pair):
                figures.append(wrk(address, max(1, seconds / HEALTH_TURNS), HEALTH_CONNECTIONS)["per_second"])
    ratios = [a / b for a, b in zip(ours, empty, strict=True)]
    return {"per_second": statistics.median(ours), "empty_per_second": statistics.median(empty),
            "ratio": statistics.median(ratios)}  # fmt: skip


@contextlib.contextmanager
def empty_server() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    process = subprocess.Popen([sys.executable, "-c", EMPTY, str(port)])
    try:
        until = time.monotonic() + PATIENCE_S
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            if time.monotonic() > until or process.poll() is not None:
                raise SystemExit("the empty application did not start")
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.wait(30)


def overload(seconds: float) -> Figures:
    with over_http.server(Place(), workers=False) as url, worker(url) as working:
        fill(url, BACKLOG // 4)
        wait_until_idle(url)
        before = completed(url)
        working.send_signal(signal.SIGSTOP)  # or it would be done with most of them before the rate is taken
        fill(url, BACKLOG)
        working.send_signal(signal.SIGCONT)
        alone = rate(url, lambda _at, count: count < before + BACKLOG * 0.9, skip=0.2)
        wait_for(url, before + BACKLOG)
        until = time.perf_counter() + seconds
        with tempfile.TemporaryFile("w+") as told:
            asking = [sys.executable, __file__, "--workload", "LOAD", "-n", str(seconds + 1), "--url", url]
            load = subprocess.Popen(asking, stdout=told, text=True)
            during = rate(url, lambda at, _count: at < until, skip=0.25)
            if load.wait(PATIENCE_S):
                raise SystemExit("the load ended early")
            told.seek(0)
            asked = json.loads(told.read())
    accepted = (asked["requests"] - asked["refused"]) / asked["us"] * 1e6
    return {"alone_per_second": alone, "per_second": during, "ratio": during / alone, "accepted_per_second": accepted,
            **latency(asked)}  # fmt: skip


def fill(url: str, count: int) -> None:
    for start in range(0, count, 1000):
        posted(f"{url}{BATCH}", [REQUEST] * min(1000, count - start))


def rate(url: str, goes_on: Callable[[float, int], bool], skip: float) -> float:
    """Completions a second, between samples, the first of which (a share) do not count."""
    samples = [(time.perf_counter(), completed(url))]
    while goes_on(*samples[-1]):
        time.sleep(SAMPLE_INTERVAL_S)
        samples.append((time.perf_counter(), completed(url)))
    first, last = samples[int(len(samples) * skip)], samples[-1]
    return (last[1] - first[1]) / (last[0] - first[0])


@contextlib.contextmanager
def worker(url: str) -> Iterator[subprocess.Popen[str]]:
    """`oraculo worker` that takes its orders from this server."""
    command = [sys.executable, "-m", "oraculo", "worker", "oraculo.bench.work:worker", "--url", url, "--json"]
    command += ["--concurrency", "256"]
    environment = {**os.environ, "LOG_LEVEL": "WARNING"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise SystemExit("the worker did not start")
        yield process
    finally:
        process.terminate()
        process.wait(30)


WORKLOADS: dict[str, Callable[[float], Figures]] = {
    "SUBMIT": submit,
    "BATCH": batch,
    "HEALTH": health,
    "OVERLOAD": overload,
}


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workload", choices=[*WORKLOADS, "LOAD"], required=True)
    parser.add_argument("-n", type=float, default=5, help="seconds of each load")
    parser.add_argument("--url", help="of the server, for LOAD")
    parser.add_argument("--json", action="store_true", help="accepted for symmetry; the output is always JSON")
    options = parser.parse_args(given)
    if shutil.which("wrk") is None:
        raise SystemExit("no wrk; apt-get install wrk")
    if options.workload == "LOAD":
        print(json.dumps(wrk(f"{options.url}{SUBMIT}", options.n, OVERLOAD_CONNECTIONS, REQUEST)))
        return
    found = WORKLOADS[options.workload](options.n)
    rounded = {name: round(value, 3) for name, value in found.items()}
    version = subprocess.run(["wrk", "-v"], capture_output=True, text=True, check=False).stdout.split()[1:2]
    print(json.dumps({"workload": options.workload, **rounded, "versions": {"wrk": " ".join(version)}}), flush=True)


if __name__ == "__main__":
    main()
