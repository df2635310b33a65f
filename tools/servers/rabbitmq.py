"""RabbitMQ from the distribution's package, with a data folder, a port and a name service (epmd) of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

from tools.servers.server import Server, free_port, listens

HOME = Path("/usr/lib/rabbitmq")
PROGRAM = HOME / "bin" / "rabbitmq-server"
GREETING = b"AMQP\x00\x00\x09\x01"
GONE = 5.0  # seconds that a killed process may take to leave its ports


class RabbitMQ(Server):
    """`config` holds lines of rabbitmq.conf, `tls_port` is where it speaks TLS too; change them before `start`."""

    name = "rabbitmq"

    def __init__(self, folder: Path, port: int | None = None) -> None:
        super().__init__(folder, port)
        self.epmd_port = free_port()
        self.dist_port = free_port()
        self.tls_port: int | None = None
        self.config: dict[str, str] = {}

    @classmethod
    def missing(cls) -> str | None:
        if not PROGRAM.exists():
            return "rabbitmq-server (Debian: apt-get install rabbitmq-server)"
        return None if shutil.which("epmd") else "epmd (Debian: apt-get install erlang-base)"

    @classmethod
    def version(cls) -> str:
        found = sorted((HOME / "lib").glob("rabbitmq_server-*"))
        return found[-1].name.removeprefix("rabbitmq_server-")

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/"

    def command(self) -> list[str]:
        """epmd is ours and in our process group, so that killing this server touches no other. The script then becomes
        the Erlang machine itself."""
        (self.folder / "rabbitmq.conf").write_text(
            "".join(f"{key} = {value}\n" for key, value in {**self._defaults(), **self.config}.items())
        )
        (self.folder / "enabled_plugins").write_text("[].\n")
        epmd = f"epmd -port {self.epmd_port} -address 127.0.0.1"
        return ["/bin/sh", "-c", f"{epmd} & exec {PROGRAM}"]

    def environment(self) -> dict[str, str]:
        folder = self.folder
        return {
            "HOME": str(folder),  # the cookie is made there
            "ERL_EPMD_PORT": str(self.epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RUNNING_UNDER_SYSTEMD": "true",  # no shell between us and the Erlang machine
            "RABBITMQ_NODENAME": "rabbit@localhost",
            "RABBITMQ_DIST_PORT": str(self.dist_port),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_PID_FILE": str(folder / "rabbitmq.pid"),
            "RABBITMQ_GENERATED_CONFIG_DIR": str(folder / "generated"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / "advanced.config"),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "rabbitmq-env.conf"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}",
        }

    def answers(self) -> bool:
        """It says hello: listeners open last, when the queues are there."""
        if self.tls_port is not None and not listens(self.tls_port):
            return False
        with socket.socket() as probe:
            probe.settimeout(0.5)
            try:
                probe.connect(("127.0.0.1", self.port))
                probe.sendall(GREETING)
                return probe.recv(1) == b"\x01"
            except OSError:
                return False

    def kill(self) -> None:
        group = self.pid
        super().kill()
        until = time.monotonic() + GONE
        while group is not None and _alive(group) and time.monotonic() < until:
            time.sleep(0.01)

    def control(self, *arguments: str) -> str:
        """What rabbitmqctl says; it takes a second or two."""
        return subprocess.run(
            [str(HOME / "bin" / "rabbitmqctl"), "-q", "-n", "rabbit@localhost", *arguments],
            env={**os.environ, **self.environment()},
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def _defaults(self) -> dict[str, str]:
        tls = {} if self.tls_port is None else {"listeners.ssl.1": f"127.0.0.1:{self.tls_port}"}
        return {
            "listeners.tcp.1": f"127.0.0.1:{self.port}",
            **tls,
            "log.console": "true",
            "log.console.level": "warning",
            "log.file": "false",
            "disk_free_limit.absolute": "1MB",
            "total_memory_available_override_value": "4GB",
        }


def _alive(group: int) -> bool:
    """Whether some process of the group still runs; one that only waits to be reaped does not."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, pgrp = stat.read_text().rpartition(")")[2].split()[:3]
            if int(pgrp) == group and state != "Z":
                return True
    return False
