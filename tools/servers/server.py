"""What every server here can do: start, stop, be killed, come back with the same data on the same port."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

PATIENCE = 60.0  # seconds that a server may take to answer
FIRST_PORT, PORTS_LENT = 10_240, 22_528
# A run within a run has another TMPDIR and the same claims: without them one port would be lent twice.
CLAIMS = Path(os.environ.setdefault("TEST_PORT_CLAIMS", f"{tempfile.gettempdir()}/oraculo-ports-{os.getuid()}"))


class ServerFailedError(Exception):
    """It did not start; the text ends with what it said."""


def free_port() -> int:
    """Return a free port that no other process which asks here gets while this one lives."""
    return free_ports(1)


def free_ports(count: int) -> int:
    """Return the first of `count` free ports in a row.

    They are below the range of outgoing connections, so that none takes one before its server does, and each is claimed
    by a file that names the process: a port looks free from the moment it is lent until its server listens.
    """
    while True:
        first = FIRST_PORT + secrets.randbelow(PORTS_LENT - count)
        ports = range(first, first + count)
        claimed = [port for port in ports if _claim(port)]
        if len(claimed) == count and all(_can_bind(port) for port in ports):
            return first
        for port in claimed:
            (CLAIMS / str(port)).unlink(missing_ok=True)


def _claim(port: int) -> bool:
    CLAIMS.mkdir(exist_ok=True)
    path = CLAIMS / str(port)
    with contextlib.suppress(FileNotFoundError, ValueError):
        if path.exists() and not _lives(int(path.read_text())):
            path.unlink()
    try:
        with open(path, "x") as claim:
            claim.write(str(os.getpid()))
    except FileExistsError:
        return False
    return True


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _can_bind(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Server:
    """`folder` holds all that it writes; the same folder and port are used again after a stop or a kill."""

    name = "server"

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self.folder = folder
        self.port = port or free_port()
        self._process: subprocess.Popen[bytes] | None = None

    # -- what a server fills in --------------------------------------------------------------------------------------

    @classmethod
    def missing(cls) -> str | None:
        """What is not installed; None when it can be started."""
        raise NotImplementedError

    @classmethod
    def version(cls) -> str:
        raise NotImplementedError

    def command(self) -> list[str]:
        """The command line; configuration files are written here."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return {}

    def answers(self) -> bool:
        """It takes work, not only connections."""
        return listens(self.port)

    @property
    def url(self) -> str:
        """What ORACULO_BROKER takes."""
        raise NotImplementedError

    # -- life --------------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                cwd=self.folder,
                env={**os.environ, **self.environment()},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until = time.monotonic() + PATIENCE
        while not self.answers():
            if self._process.poll() is not None or time.monotonic() > until:
                self.kill()
                raise ServerFailedError(f"{self.name} did not start: {self.log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.02)
        return self

    def stop(self, patience: float = 30.0) -> None:
        """As an operator would."""
        self._signal(signal.SIGTERM)
        if self._process is not None:
            try:
                self._process.wait(patience)
            except subprocess.TimeoutExpired:
                self.kill()
        self._process = None

    def kill(self) -> None:
        """At once, with every process that it started."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
        self._process = None

    def freeze(self) -> None:
        """Every process of it stands still when this returns, also on a busy machine."""
        self._signal(signal.SIGSTOP)
        while self._process is not None and not set(_states(self._process.pid)) <= {"T", "Z"}:
            time.sleep(0.01)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _signal(self, number: int) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)


def _states(group: int) -> Iterator[str]:
    """The states of the threads of all processes of a group, as /proc has them."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(file.read_text().rpartition(")")[2].split()[2]) == group:
                for thread in file.parent.glob("task/*/stat"):
                    yield thread.read_text().rpartition(")")[2].split()[0]
