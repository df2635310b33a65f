"""Redis from the distribution's package: one process, one folder, one port."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path

from tools.servers.server import Server

PROGRAM = "redis-server"


class Redis(Server):
    """`config` holds lines of redis.conf; change it before `start`. Without an append-only file (`appendonly="no"`)
    nothing survives a kill."""

    name = "redis"

    def __init__(
        self, folder: Path, port: int | None = None, *, appendonly: str = "yes", appendfsync: str = "everysec"
    ) -> None:
        super().__init__(folder, port)
        self.config: dict[str, str] = {"appendonly": appendonly, "appendfsync": appendfsync, "databases": "1000"}

    @classmethod
    def missing(cls) -> str | None:
        return None if shutil.which(PROGRAM) else f"{PROGRAM} (Debian: apt-get install redis-server)"

    @classmethod
    def version(cls) -> str:
        said = subprocess.run([PROGRAM, "--version"], check=True, capture_output=True, text=True).stdout
        return next(word.removeprefix("v=") for word in said.split() if word.startswith("v="))

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        lines = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "dir": f'"{self.folder}"',
            "save": '""',
            "loglevel": "warning",
            **self.config,
        }
        file = self.folder / "redis.conf"
        file.write_text("".join(f"{key} {value}\n" for key, value in lines.items()))
        return [PROGRAM, str(file)]

    def answers(self) -> bool:
        """It has loaded its data. One that wants a password or another role is there too."""
        if self.config.get("tls-port") == str(self.port):
            return super().answers()
        try:
            with socket.create_connection(("127.0.0.1", self.port), 0.5) as probe:
                probe.sendall(b"PING\r\n")
                return probe.recv(64).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False
