"""What `doctor` finds about this machine and its store."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import apsw

from oraculo import __version__
from oraculo.adapters.brokers.registry import scheme_of
from oraculo.adapters.stores.numbered import migrations
from oraculo.adapters.stores.sqlite import cursors, dead_letters, journal, statistics
from oraculo.bootstrap.adapters import sqlite_path
from oraculo.cli.inputs import now
from oraculo.cli.journal import projection_types, read_only
from oraculo.ports.cursors import Lag
from oraculo.runtime.project import journal_cursors
from oraculo.settings.settings import Settings

BYTES_PER_MIB = 1024 * 1024
SQLITE_MIN_VERSION = (3, 51, 3)  # earlier ones can corrupt a database that two connections write (the WAL-reset bug)
OPEN_FILES_MIN = 1024
PROJECTION_LAG_MAX_S = 300.0  # seconds that a projection may be behind


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    level: str  # ok, warning or broken
    detail: str
    fix: str = ""

    def document(self) -> dict[str, Any]:
        return asdict(self)


def fine(name: str, detail: str) -> Finding:
    return Finding(name, "ok", detail)


def warning(name: str, detail: str, fix: str) -> Finding:
    return Finding(name, "warning", detail, fix)


def broken(name: str, detail: str, fix: str) -> Finding:
    return Finding(name, "broken", detail, fix)


def machine() -> Iterator[Finding]:
    yield fine("oraculo", __version__)
    yield fine("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    version = apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")) < SQLITE_MIN_VERSION:
        least = ".".join(map(str, SQLITE_MIN_VERSION))
        yield broken("sqlite", f"{version}; {least} or newer is needed", "pip install --upgrade apsw")
    else:
        yield fine("sqlite", version)
    yield from _files()
    year = now().year
    if not 2025 <= year <= 2100:
        yield broken("clock", f"it is {year} here", "set the clock of this machine")


def _files() -> Iterator[Finding]:
    try:
        import resource
    except ImportError:  # Windows
        return
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < OPEN_FILES_MIN:
        yield warning("open files", f"at most {soft}", f"ulimit -n {OPEN_FILES_MIN}: every connection is a file")


def store(known: Settings) -> Iterator[Finding]:
    if scheme_of(known.store) != "sqlite":
        from oraculo.cli.findings_postgres import examine

        yield from examine(known.store)
        return
    path = sqlite_path(known.store)
    if path == ":memory:":
        yield warning("store", "in memory: everything is forgotten at the end", "ORACULO_STORE=sqlite:///oraculo.db")
        return
    yield from _place(Path(path))
    if Path(path).is_file():
        yield from _database(path)


def _place(path: Path) -> Iterator[Finding]:
    folder = path.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    writable = os.access(folder, os.W_OK | os.X_OK) and (not path.exists() or os.access(path, os.W_OK))
    if path.exists() and not path.is_file():
        yield broken("store", f"{path} is not a file", "let ORACULO_STORE name a file: sqlite:///oraculo.db")
    elif not writable:
        yield broken("store", f"{path} cannot be written", f"give this user the right to write to {folder}")
    elif not path.exists():
        yield fine("store", f"{path.absolute()} will be made at the first start")
    else:
        yield fine("store", f"{path.absolute()}, {path.stat().st_size / BYTES_PER_MIB:.1f} MiB")
    if path.is_file() and (mode := path.stat().st_mode & 0o777) & 0o077:
        yield warning("store", f"other users may use {path} (mode {mode:03o})", f"chmod go-rwx {path}*")
    free = shutil.disk_usage(folder).free // BYTES_PER_MIB
    if free < 50:
        yield broken("disk", f"{free} MiB free", "free some space; when it is full nothing is accepted any more")
    elif free < 1024:
        yield warning("disk", f"{free} MiB free", "free some space, or: oraculo prune --older-than 30d")
    else:
        yield fine("disk", f"{free // 1024} GiB free")


def _database(path: str) -> Iterator[Finding]:
    try:
        connection = read_only(path)
        try:
            yield from _schema(connection)
            yield from _content(connection)
        finally:
            connection.close()
    except apsw.Error as error:
        yield broken("database", f"{path}: {error}", "restore it from a copy, or name another with ORACULO_STORE")


def _schema(connection: apsw.Connection) -> Iterator[Finding]:
    newest = migrations("sqlite")[-1][0]
    current = int(str(connection.execute("PRAGMA user_version").fetchall()[0][0]))
    if current > newest:
        yield broken("schema", f"{current}; this version knows up to {newest}", "use the newer Oráculo that wrote it")
    elif current < newest:
        yield fine("schema", f"{current}; the next start brings it to {newest}")
    else:
        yield fine("schema", str(current))


def _content(connection: apsw.Connection) -> Iterator[Finding]:
    verdict = str(connection.execute("PRAGMA quick_check(1)").fetchall()[0][0])
    if verdict != "ok":
        yield broken("integrity", verdict, "stop the server and restore the database from a copy")
        return
    mode = str(connection.execute("PRAGMA journal_mode").fetchall()[0][0])
    if mode == "wal":
        yield fine("integrity", "ok; power-safe (WAL, synchronous=FULL)")
    else:
        yield fine("integrity", f"ok; journal_mode is {mode}, the next start makes it WAL")
    if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'journal'").fetchall():
        return
    last = journal.last_instant(connection)
    if last is not None and (ahead := (last - now()).total_seconds()) > 5:
        yield warning("clock", f"{ahead:.0f} s behind the newest record", "set the clock; until then time stands still")
    counts = statistics.count_by_status(connection)
    if counts:
        yield fine("orchestrations", ", ".join(f"{count} {status}" for status, count in sorted(counts.items())))
    dead = sum(count for _, _, count in dead_letters.dead_letter_groups(connection))
    if dead:
        yield warning("dead letters", f"{dead}", "look at them with: oraculo dlq ls")
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'cursors'").fetchall():
        known, types = journal_cursors(cursors.cursors(connection)), projection_types()
        yield from projections({name: cursors.lag(connection, at, types.get(name)) for name, at in known})


def projections(lags: Mapping[str, Lag]) -> Iterator[Finding]:
    """How far each is behind the journal."""
    for name, lag in lags.items():
        age = 0.0 if lag.since is None else (now() - lag.since).total_seconds()
        if age > PROJECTION_LAG_MAX_S:
            text = f"{name}: {lag.steps} steps behind, the oldest for {age:.0f} s"
            yield warning("projection", text, "see that its server can be reached; nothing is lost until then")
        else:
            yield fine("projection", f"{name}: {f'{lag.steps} steps behind' if lag.steps else 'up to date'}")
