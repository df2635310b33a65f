"""What every server here can do: start, stop, be killed, come back with the same data on the same port."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

PATIENCE = 60.0  # seconds that a server may take to answer


class ServerFailedError(Exception):
    """It did not start; the text ends with what it said."""


def free_port() -> int:
    """Return a free port below the range of outgoing connections, so that none takes it before its server does."""
    while True:
        port = 10_240 + secrets.randbelow(22_528)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


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
        self._signal(signal.SIGSTOP)

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
