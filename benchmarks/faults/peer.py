"""What every peer is here: parts that can be killed and started again, a call that submits, a call that asks."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

sys.path.append(str(Path(__file__).parents[2]))
sys.path.append(str(Path(__file__).parents[1] / "peers"))

from tools.servers.server import free_port, listens

__all__ = ["HERE", "Part", "Peer", "Program", "free_port", "listens", "wait_for_port"]

HERE = Path(__file__).parent


class Part(Protocol):
    """A server or program that can be killed with all that it started, and started again with the same data."""

    def start(self) -> Any: ...
    def kill(self) -> None: ...


class Peer(Protocol):
    """`parts` says what "worker", "broker" and "orchestrator" are; one part may be two of them."""

    settings: dict[str, str]
    parts: dict[str, Part]
    packages: Sequence[str]

    def submit(self, name: str) -> None:
        """Return when the peer has accepted it; raise when it has not."""

    def outcome(self, name: str) -> tuple[str, Any] | None:
        """("ended", what it gave) or ("failed", why); None while it runs. Raises while the peer cannot be asked."""

    def close(self) -> None:
        """Let go of connections."""


class Program:
    """One process of a peer, in a group of its own."""

    def __init__(self, name: str, command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None):
        self.name = name
        self.command = list(command)
        self.folder = folder
        self.environment = {**os.environ, **(environment or {})}
        self.running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.folder / f"{self.name}.log").open("ab") as log:
            self.running = subprocess.Popen(
                self.command,
                cwd=HERE,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        if self.running is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.running.pid, signal.SIGKILL)
            self.running.wait()
        self.running = None


def wait_for_port(port: int, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not listens(port):
        if time.monotonic() > until:
            raise RuntimeError(f"nothing listens on port {port} after {seconds:.0f} s")
        time.sleep(0.05)
