"""What others do to a neighbour: the p99 of one tenant's submissions, alone and beside each of three attacks.

    python -m benchmarks.neighbours [--requests 1200] [--blocks 12]

A server of its own (`oraculo up`, SQLite), tenants `a` and `b`. Beside `b`: `a` at fifty times its quota, 1,100
connections that send half a header, 200 bodies that never end. The attack is a process of its own, so that what it
costs its sender is not taken for what it costs `b`; blocks with and without it take turns, so that what else the
machine does is in both. On a machine that does much else, `chrt -r 1` before it keeps that out. The goal is a p99 of
twice that of being alone.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import secrets
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

QUOTA_PER_S = 5
FLOOD_PER_S = 50 * QUOTA_PER_S
FLOOD_CONNECTIONS = 32
HALF_OPEN_CONNECTIONS = 1100
SLOW_BODIES = 200
START_TIMEOUT_S = 60.0
SETTLED_AFTER_S = 1.0  # what is held open has arrived; the first second of a quota is used up
BODY = b'{"coletas":[{"fonte":"youtube"}]}'
ROUTE = "/api/v1/orchestrations"
HALF = b"POST /api/v1/orchestrations HTTP/1.1\r\nHost: 127.0.0.1\r\n"


def request_of(key: str, length: int = len(BODY), body: bytes = BODY) -> bytes:
    fields = b"X-API-Key: %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (key.encode(), length)
    return HALF + fields + body


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

    def key(self, tenant: str) -> str:
        body = {"role": "operador", "tenant": tenant}
        made = httpx2.post(f"{self.url}/api/v1/keys", json=body, headers={"X-API-Key": self._admin})
        return str(made.json()["key"])


# -- the attacks: each is a process of its own until its input ends ----------------------------------------------------


def flood(port: int, key: str) -> None:
    """Submissions at a steady rate; tell which answers there were."""
    told: Counter[str] = Counter()
    selector, request = selectors.DefaultSelector(), request_of(key)
    free = [socket.create_connection(("127.0.0.1", port)) for _ in range(FLOOD_CONNECTIONS)]
    for one in (*free, sys.stdin):
        selector.register(one, selectors.EVENT_READ)
    due = time.monotonic()
    print("ready", flush=True)
    while True:
        while free and time.monotonic() >= due:
            free.pop().sendall(request)
            due = max(due + 1 / FLOOD_PER_S, time.monotonic() - 0.1)
        for ready, _ in selector.select(max(0.0, due - time.monotonic()) if free else None):
            if ready.fileobj is sys.stdin:
                print(json.dumps(told))
                return
            assert isinstance(ready.fileobj, socket.socket)
            told[status_of(ready.fileobj)] += 1
            free.append(ready.fileobj)


def hold(port: int, count: int, said: bytes) -> None:
    """Connections that say this and then nothing more."""
    held = []
    for _ in range(count):
        held.append(socket.create_connection(("127.0.0.1", port)))
        held[-1].sendall(said)
    print("ready", flush=True)
    sys.stdin.read()
    print(len(held))


ATTACKS: dict[str, Callable[[int, str], None]] = {
    f"tenant a at {FLOOD_PER_S}/s of {QUOTA_PER_S}/s": flood,
    f"{HALF_OPEN_CONNECTIONS} half-open connections": lambda port, _key: hold(port, HALF_OPEN_CONNECTIONS, HALF),
    f"{SLOW_BODIES} slow bodies": lambda port, key: hold(port, SLOW_BODIES, request_of(key, 900_000, b"{")),
}


@contextmanager
def attacked(name: str, port: int, key: str) -> Iterator[None]:
    command = [sys.executable, "-m", "benchmarks.neighbours", "--attack", name, str(port)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "KEY": key})
    assert process.stdin is not None and process.stdout is not None
    try:
        assert process.stdout.readline() == b"ready\n"
        time.sleep(SETTLED_AFTER_S)
        yield
    finally:
        process.stdin.close()
        print("  ", process.stdout.read().decode().strip())
        process.wait(30)


# -- the neighbour -----------------------------------------------------------------------------------------------------


def status_of(connection: socket.socket) -> str:
    """Read one answer; return its status."""
    raw = b""
    while b"\r\n\r\n" not in raw:
        raw += connection.recv(65_536) or _closed()
    head, _, body = raw.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65_536) or _closed()
    return head[9:12].decode()


def _closed() -> bytes:
    raise ConnectionError("the server closed the connection")


def measured(port: int, key: str, requests: int) -> list[float]:
    """Milliseconds of submissions one after the other."""
    times = []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for _ in range(requests):
            began = time.perf_counter()
            connection.sendall(request_of(key))
            status = status_of(connection)
            times.append((time.perf_counter() - began) * 1000)
            assert status == "202", status
    return times


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


def compare(server: Neighbour, requests: int, blocks: int) -> dict[str, dict[str, float]]:
    a, b = server.key("a"), server.key("b")
    time.sleep(6)  # until the quota is known
    measured(server.port, b, 50)  # warm
    found = {}
    for name in ATTACKS:
        alone: list[float] = []
        beside: list[float] = []
        for _ in range(blocks):
            alone += measured(server.port, b, requests // blocks)
            with attacked(name, server.port, a):
                beside += measured(server.port, b, requests // blocks)
        figures = {f"{share}_ms": percentile(beside, at) for share, at in (("p50", 0.5), ("p99", 0.99))}
        figures |= {f"alone_{share}_ms": percentile(alone, at) for share, at in (("p50", 0.5), ("p99", 0.99))}
        ratio = figures["ratio"] = figures["p99_ms"] / figures["alone_p99_ms"]
        found[name] = figures
        print(f"{name}: {ratio:.2f} times; {json.dumps({key: round(value, 2) for key, value in figures.items()})}")
    return found


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--requests", type=int, default=1200)
    options.add_argument("--blocks", type=int, default=12)
    options.add_argument("--json", type=Path)
    options.add_argument("--attack", nargs=2, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    if chosen.attack:
        ATTACKS[chosen.attack[0]](int(chosen.attack[1]), os.environ["KEY"])
        return
    with tempfile.TemporaryDirectory() as folder:
        server = Neighbour(Path(folder))
        process = server.start()
        try:
            server.limit()
            found = compare(server, chosen.requests, chosen.blocks)
        finally:
            process.terminate()
            process.wait(30)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
