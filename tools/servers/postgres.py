"""PostgreSQL from the distribution's package: a cluster of its own in its folder, on its own port.

It refuses to run as root, so then it becomes another user. The folder may lie in one that only root may enter (as those
of tests do), hence the one capability that it keeps.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
from pathlib import Path

from tools.servers.server import Server, ServerFailedError

HOMES = Path("/usr/lib/postgresql")
USER = "oraculo"  # of the database, without a password: only this machine can reach it
SYSTEM_USERS = ("postgres", "nobody")
AS_USER = ("setpriv", "--clear-groups", "--inh-caps=+dac_override", "--ambient-caps=+dac_override")


class Postgres(Server):
    """`config` holds lines of postgresql.conf; change it before `start`. `fsync` is on, as everywhere else."""

    name = "postgres"

    def __init__(self, folder: Path, port: int | None = None) -> None:
        super().__init__(folder, port)
        self.config: dict[str, str] = {}

    @classmethod
    def missing(cls) -> str | None:
        if _program("postgres") is None or _program("initdb") is None:
            return "postgres (Debian: apt-get install postgresql)"
        if os.geteuid() == 0 and shutil.which(AS_USER[0]) is None:
            return "setpriv (Debian: apt-get install util-linux): PostgreSQL does not run as root"
        return None

    @classmethod
    def version(cls) -> str:
        said = subprocess.run([_found("postgres"), "--version"], check=True, capture_output=True, text=True).stdout
        return said.split()[2]

    @property
    def url(self) -> str:
        return self.database("postgres")

    def database(self, name: str) -> str:
        """The URL of one of its databases."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{name}"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def command(self) -> list[str]:
        if not (self.data / "PG_VERSION").exists():
            self._make()
        lines = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": ".",  # in its data: short enough wherever that is
            "max_connections": "200",
            "log_min_messages": "warning",
            **self.config,
        }
        return [*_as_user(), _found("postgres"), "-D", str(self.data), *(f"-c{key}={lines[key]}" for key in lines)]

    def _make(self) -> None:
        shutil.rmtree(self.data, ignore_errors=True)
        self.data.mkdir(mode=0o700)
        if user := _system_user():
            os.chown(self.data, user.pw_uid, user.pw_gid)
        command = [*_as_user(), _found("initdb"), "-D", str(self.data), "-U", USER, "-A", "trust", "-E", "UTF8"]
        done = subprocess.run(
            [*command, "--locale=C", "--no-sync"], cwd="/", capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise ServerFailedError(f"initdb: {done.stderr[-2000:]}")

    def answers(self) -> bool:
        """It has recovered what it must, and takes connections."""
        command = [_found("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port), "-t", "1"]
        return super().answers() and subprocess.run(command, check=False).returncode == 0

    def stop(self, patience: float = 30.0) -> None:
        """The fast way: connections are closed, and what was under way is undone."""
        self._signal(signal.SIGINT)
        super().stop(patience)

    def kill(self) -> None:
        """Its processes lead groups of their own."""
        children = self._children()
        super().kill()
        _signal_all(children, signal.SIGKILL)

    def freeze(self) -> None:
        super().freeze()
        _signal_all(self._children(), signal.SIGSTOP)

    def thaw(self) -> None:
        _signal_all(self._children(), signal.SIGCONT)
        super().thaw()

    def _children(self) -> list[int]:
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                if int(stat.read_text().rpartition(")")[2].split()[1]) == self.pid:
                    found.append(int(stat.parent.name))
        return found


def _program(name: str) -> str | None:
    """From the newest version that is installed, else from the PATH."""
    versions = sorted((int(home.name), home) for home in HOMES.glob("[0-9]*") if home.name.isdigit())
    return shutil.which(name, path=versions[-1][1] / "bin") if versions else shutil.which(name)


def _found(name: str) -> str:
    program = _program(name)
    if program is None:
        raise ServerFailedError(f"{name} is not installed")
    return program


def _system_user() -> pwd.struct_passwd | None:
    """Who it runs as when we are root."""
    if os.geteuid() != 0:
        return None
    known = {user.pw_name: user for user in pwd.getpwall()}
    return next(known[name] for name in SYSTEM_USERS if name in known)


def _as_user() -> list[str]:
    user = _system_user()
    return [] if user is None else [*AS_USER, f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}"]


def _signal_all(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
