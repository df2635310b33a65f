"""Servers for tests: one that all tests of a run share, or one of a test's own that it may kill.

A run is one pytest command with all its workers. Its folder holds what they have in common: the URL of each shared
server, the process groups of all that run (tools/servers/reaper.py ends them), and who used what (the table at its
end). A server that is not installed skips the tests that ask for it; ORACULO_REQUIRE_SERVICES makes them fail instead:
`1` for every server, or names separated by commas.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pytest
import tools.servers.reaper
import tools.servers.report
from tools.servers.reaper import forget, reap, record
from tools.servers.report import CLASSES as CLASSES
from tools.servers.server import Server, ServerFailedError

RUN = "ORACULO_TEST_RUN"  # the folder of the run
REQUIRE = "ORACULO_REQUIRE_SERVICES"
ROOT = Path(__file__).parents[1]

_folder: Path | None = None
_alive: int | None = None
_shared: dict[str, Server] = {}  # those that this process started
_urls: dict[str, str] = {}


def shared(name: str) -> str:
    """The URL of a running server that other tests use too: use queue names of your own, and never stop it."""
    if not imitated(name):
        use(name)
    if name not in _urls:
        _urls[name] = _find_or_start(name)
    return _urls[name]


def redis_database() -> str:
    """The URL of a database of the shared Redis that no other test has: the queues of two orchestrators have the same
    names, and each would take the answers for the other."""
    url = shared("redis")
    taken = run_folder() / "redis.databases"
    with _locked("redis.databases"), open(taken, "a+b") as numbers:
        numbers.write(b".")
        number = numbers.tell()
    return re.sub(r"/\d*$", "", url) + f"/{number}"


@functools.cache
def imitated(name: str) -> bool:
    """The real one cannot be had here and need not be, and something that speaks its protocol stands in for it."""
    if not _missing(name) or _required(name) or name not in tools.servers.report.STAND_INS:
        return False
    return tools.servers.report.class_of(name, stand_in=True).missing() is None


def own(name: str, folder: Path) -> Server:
    """A server that is not started yet and that only this test knows. Use it as a context manager."""
    use(name)
    server = class_of(name)(folder / name)
    if name == "redis":  # with `everysec` and a busy disk, a kill can cost what was confirmed: docs/brokers/redis.md
        server.config["appendfsync"] = "always"  # type: ignore[attr-defined]
    return server


@functools.cache
def class_of(name: str) -> type[Server]:
    """The class of that server, which counts its starts and ends with the run. `use` says whether it is installed."""
    kind = tools.servers.report.class_of(name, stand_in=imitated(name))
    return type(kind.__name__, (_OfThisRun, kind), {"__module__": kind.__module__})


def use(name: str) -> None:
    """The test that runs needs this server."""
    reason = _missing(name)
    _note(name, "missing" if reason else "used", reason)
    if reason and _required(name):
        pytest.fail(f"{name} is not installed: {reason}", pytrace=False)
    if reason:
        pytest.skip(f"{name} is not installed: {reason}")


def remark(name: str, text: str) -> None:
    """A figure about this server that the run shows at its end."""
    _note(name, "remark", text)


def _required(name: str) -> bool:
    names = os.environ.get(REQUIRE, "").split(",")
    return name in names or "1" in names


# -- the run -----------------------------------------------------------------------------------------------------------


def begin() -> None:
    """This process is the one that all others of the run come from."""
    global _folder, _alive
    _folder = Path(tempfile.mkdtemp(prefix="oraculo-servers-"))
    (_folder / "processes").mkdir()
    _alive = os.open(_folder / "alive", os.O_CREAT | os.O_RDWR)
    fcntl.flock(_alive, fcntl.LOCK_EX)
    os.environ[RUN] = str(_folder)


def end() -> None:
    """All servers of the run are gone when this returns."""
    global _alive
    for server in _shared.values():
        server.kill()
    reap(run_folder())
    if _alive is not None:
        os.close(_alive)
        _alive = None


def leave() -> None:
    """A worker ends; what it started stays for the others, until the run ends."""
    for server in _shared.values():
        if server._process is not None:
            server._process.returncode = 0  # else Python complains that it still runs


@dataclass(slots=True)
class Use:
    """What a run did with one server."""

    shared: int = 0
    own: int = 0
    tests: set[str] = field(default_factory=set)
    missing: str = ""
    remarks: list[str] = field(default_factory=list)


def uses() -> dict[str, Use]:
    found: dict[str, Use] = {}
    notes = run_folder() / "notes"
    for line in notes.read_text().splitlines() if notes.exists() else ():
        name, what, test, text = json.loads(line)
        one = found.setdefault(name, Use())
        if what == "shared":
            one.shared += 1
        elif what == "own":
            one.own += 1
        elif what == "remark":
            one.remarks.append(text)
        else:
            one.tests.add(test)
            one.missing = text or one.missing
    return found


def run_folder() -> Path:
    """Of the run: what its processes tell each other."""
    global _folder
    if _folder is None and RUN in os.environ:
        _folder = Path(os.environ[RUN])
    elif _folder is None:  # not under pytest
        begin()
        atexit.register(end)
    assert _folder is not None
    return _folder


@functools.cache
def _missing(name: str) -> str:
    return tools.servers.report.look(name).missing


def _note(name: str, what: str, text: str = "") -> None:
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
    with open(run_folder() / "notes", "ab", buffering=0) as notes:
        notes.write(json.dumps([name, what, test, text]).encode() + b"\n")


@contextlib.contextmanager
def _locked(name: str) -> Iterator[None]:
    with open(run_folder() / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _find_or_start(name: str) -> str:
    url, failed = run_folder() / f"{name}.url", run_folder() / f"{name}.failed"
    with _locked(name):
        if failed.exists():
            raise ServerFailedError(failed.read_text())
        if not url.exists():
            server = class_of(name)(run_folder() / f"{name}-{os.getpid()}")
            _shared[name] = server
            try:
                server.start()
            except ServerFailedError as error:
                failed.write_text(str(error))
                raise
            url.write_text(server.url)
        return url.read_text()


class _OfThisRun(Server):
    """It is recorded while it runs, so that it ends with the run whatever happens to this process."""

    def start(self) -> Self:
        _note(self.name, "shared" if _shared.get(self.name) is self else "own")
        _start_reaper()
        return super().start()

    def answers(self) -> bool:
        """`start` asks as soon as there is a process."""
        if self.pid is not None:
            try:
                record(run_folder(), self.pid)
            except OSError as error:  # the run has ended
                self.kill()
                raise ServerFailedError(f"{self.name}: the run is over") from error
        return super().answers()

    def stop(self, patience: float = 30.0) -> None:
        with self._forgotten():
            super().stop(patience)

    def kill(self) -> None:
        with self._forgotten():
            super().kill()

    @contextlib.contextmanager
    def _forgotten(self) -> Iterator[None]:
        pid = self.pid
        yield
        if pid is not None:
            forget(run_folder(), pid)


def _start_reaper() -> None:
    """One for the run, at the first server."""
    with contextlib.suppress(FileExistsError):
        (run_folder() / "reaper").touch(exist_ok=False)
        subprocess.run(
            [sys.executable, "-I", tools.servers.reaper.__file__, str(run_folder())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
