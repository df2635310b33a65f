"""What every peer program shares: its command line, the measuring, and the servers it starts.

A peer is a program called as ``peer.py --workload W1 -n 500 --json``. It starts what it needs in a temporary directory
and on free ports, warms up, measures one workload, prints one JSON object on stdout and stops everything again:

- W1: ``{"workload": "W1", "orchestrations": N, "seconds": s, "per_second": r}``
- SEQ: ``{"workload": "SEQ", "orchestrations": N, "p50_ms": a, "p99_ms": b, "max_ms": c}``
- W2: ``{"workload": "W2", "width": F, "seconds": s}``

A ``versions`` object names what was measured. Start-up and warm-up are outside the measured time. Raw client loops are
programs of the same kind with a workload of their own, RAW (`raw.py`).
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import brokers

WARM_UP = 20
PATIENCE = 600.0
"""Seconds after which a wait for one result counts as lost."""


class Client(Protocol):
    """A peer that is up. Every method returns once the client holds all results, and raises if one is wrong."""

    def many(self, n: int) -> None:
        """Submit n orchestrations at once and wait for all of them."""

    def one(self) -> None:
        """Submit one orchestration and wait for it."""

    def wide(self, width: int) -> None:
        """Run one fan-out of `width` and its fan-in."""


def run(
    open_client: Callable[[Path], AbstractContextManager[Client]], packages: Sequence[str], servers: Sequence[str] = ()
) -> None:
    """The whole program: read the command line, open the peer, measure, print."""
    program(["W1", "SEQ", "W2"], open_client, measure, packages, servers)


def program(
    workloads: Sequence[str],
    opened: Callable[[Path], AbstractContextManager[Any]],
    measured: Callable[[Any, str, int], dict[str, Any]],
    packages: Sequence[str],
    servers: Sequence[str],
) -> None:
    """Open something in a temporary directory, measure it as the command line says, print what was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workload", choices=workloads, required=True)
    parser.add_argument("-n", type=int, required=True, help="orchestrations; for W2, the width; for RAW, messages")
    parser.add_argument("--json", action="store_true", help="accepted for symmetry; the output is always JSON")
    wanted = parser.parse_args()
    brokers.unwind_on_terminate()
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        try:
            with opened(Path(directory)) as subject:
                result = measured(subject, wanted.workload, wanted.n)
        except BaseException:
            show_logs(Path(directory))
            raise
    result["versions"] = {name: importlib.metadata.version(name) for name in packages}
    for name in servers:
        result["versions"] |= brokers.version(name)
    print(json.dumps(result), flush=True)


def measure(client: Client, workload: str, n: int) -> dict[str, Any]:
    """Warm up, then time one workload."""
    client.many(WARM_UP)
    if workload == "SEQ":
        return sequential(client, n)
    started = time.perf_counter()
    if workload == "W1":
        client.many(n)
    else:
        client.wide(n)
    seconds = time.perf_counter() - started
    if workload == "W1":
        return {"workload": "W1", "orchestrations": n, "seconds": seconds, "per_second": n / seconds}
    return {"workload": "W2", "width": n, "seconds": seconds}


def sequential(client: Client, n: int) -> dict[str, Any]:
    """Time n orchestrations one after the other."""
    client.one()
    latencies = []
    for _ in range(n):
        started = time.perf_counter()
        client.one()
        latencies.append((time.perf_counter() - started) * 1000)
    latencies.sort()
    return {
        "workload": "SEQ",
        "orchestrations": n,
        "p50_ms": percentile(latencies, 50),
        "p99_ms": percentile(latencies, 99),
        "max_ms": latencies[-1],
    }


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Nearest rank: the smallest value that at least `percent` of all values do not exceed."""
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def port_of(name: str) -> int:
    """The port of a server, chosen by the program that will start it and known to the workers that it starts."""
    return int(os.environ.setdefault(f"BENCH_{name.upper()}_PORT", str(free_port())))


@contextlib.contextmanager
def process(name: str, command: Sequence[str], directory: Path, cwd: Path | None = None) -> Iterator[subprocess.Popen]:
    """Run a server or worker, its output in `directory`, and stop it at the end."""
    with (directory / f"{name}.log").open("w") as log:
        running = subprocess.Popen(
            command, cwd=cwd or directory, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            yield running
        finally:
            running.terminate()
            try:
                running.wait(timeout=15)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()


def wait_for_port(port: int, server: subprocess.Popen, seconds: float = 30) -> None:
    """Return once something listens on the port; raise if the server ended or time ran out."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise RuntimeError(f"server ended with {server.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"nothing listens on port {port} after {seconds:.0f} s")


def show_logs(directory: Path) -> None:
    """The last lines of every server log, on stderr, to explain a failure."""
    for log in sorted(directory.glob("**/*.log")):
        lines = log.read_text(errors="replace").splitlines()[-5:]
        print(f"--- {log.name}", *lines, sep="\n", file=sys.stderr)
