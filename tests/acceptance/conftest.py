"""Real processes: a server, workers, and the means to kill them."""

from __future__ import annotations

import json
import os
import signal
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tools.servers.server import free_port

from forked import Forked
from waiting import DEADLINE_S

# Nobody here speaks TLS; made once, because a client of its own would read every authority of this machine for it.
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Process:
    def __init__(self, arguments: list[str], cwd: Path, env: dict[str, str]) -> None:
        self.arguments, self.cwd, self.env = arguments, cwd, env
        self.popen: Forked | None = None

    def start(self, **extra: str) -> str:
        """Started; the first line of its standard output."""
        self.begin(**extra)
        assert self.popen is not None
        return self.popen.stdout.readline()

    def begin(self, **extra: str) -> None:
        """Started; whether it is ready is for somebody else to see."""
        env = {**os.environ, **self.env, **extra}
        self.popen = Forked(self.arguments, self.cwd, env, self.cwd / "stderr.log")

    def kill(self) -> None:
        assert self.popen is not None
        self.popen.send_signal(signal.SIGKILL)
        self.wait()

    def wait(self, timeout: float = DEADLINE_S) -> int:
        assert self.popen is not None
        code = self.popen.wait(timeout)
        self.popen.stdout.close()
        return code

    def terminate(self) -> int:
        assert self.popen is not None
        self.popen.terminate()
        return self.wait()

    @property
    def running(self) -> bool:
        return self.popen is not None and self.popen.poll() is None

    @property
    def stopped(self) -> bool:
        """As SIGSTOP leaves it."""
        assert self.popen is not None
        return Path(f"/proc/{self.popen.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def go_on(self) -> None:
        assert self.popen is not None
        self.popen.send_signal(signal.SIGCONT)


class Server(Process):
    def __init__(self, cwd: Path, arguments: list[str]) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        env = {
            "ORACULO_STORE": f"sqlite:///{cwd / 'oraculo.db'}",
            "LOG_LEVEL": "WARNING",
            "ORACULO_RETRY_BASE_S": "0.2",
        }
        super().__init__(["up", "--port", str(self.port), "--json", *arguments], cwd, env)
        self.store = cwd / "oraculo.db"

    def up(self, **extra: str) -> None:
        line = self.start(**extra)
        if line:
            json.loads(line)  # it says so when it is ready
        elif "ORACULO_CRASH_AT" not in extra:
            raise AssertionError(f"the server did not start: {(self.cwd / 'stderr.log').read_text()[-2000:]}")

    def call(self, method: str, path: str, **options: Any) -> httpx2.Response | None:
        """The answer, or None when the server is not there."""
        try:
            with httpx2.Client(trust_env=False, timeout=30, verify=_NO_TLS) as client:
                return client.request(method, self.url + path, **options)
        except httpx2.TransportError:
            return None

    def result(self, correlation_id: str, wait: float = 60) -> dict[str, Any]:
        until = time.monotonic() + wait
        while time.monotonic() < until:
            answer = self.call("GET", f"/api/v1/orchestrations/{correlation_id}/result?wait=10")
            if answer is not None and answer.status_code == 200:
                document: dict[str, Any] = answer.json()
                return document
        raise AssertionError(f"{correlation_id} did not end in {wait} s")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    started: list[Server] = []

    def make(*arguments: str) -> Server:
        one = Server(tmp_path, list(arguments))
        started.append(one)
        return one

    yield make
    for one in started:
        if one.running:
            one.kill()


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    started: list[Process] = []

    def make(target: str, url: str, **env: str) -> Process:
        folder = tmp_path / f"worker{len(started)}"
        folder.mkdir()
        one = Process(["worker", target, "--url", url], folder, {"LOG_LEVEL": "WARNING", **env})
        started.append(one)
        one.begin()
        return one

    yield make
    for one in started:
        if one.running:
            one.kill()
