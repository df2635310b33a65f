"""The journal of one orchestration straight from the store, read-only, so that a running server is not disturbed."""

from __future__ import annotations

from pathlib import Path

import apsw

from oraculo.adapters.stores import sqlite_read
from oraculo.bootstrap import store_of
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.texts import t
from oraculo.errors import StoreUnavailableError, UnknownIdError
from oraculo.ports.store import Recorded


def existing(url: str) -> str:
    """The path of the database that `url` names; it must be there, since nothing here should make a new one."""
    path = store_of(url).path
    if path == ":memory:" or not Path(path).is_file():
        raise CommandError(t("no-store", path=path), Exit.NOT_FOUND)
    return path


def read_only(path: str) -> apsw.Connection:
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(5000)
    return connection


def recorded(url: str, correlation_id: str) -> list[Recorded]:
    path = existing(url)
    try:
        connection = read_only(path)
        try:
            run = sqlite_read.locate(connection, [correlation_id]).get(correlation_id)
            steps = [] if run is None else sqlite_read.load(connection, [run]).get(run, [])
        finally:
            connection.close()
    except apsw.Error as error:
        raise StoreUnavailableError(f"cannot read the database {path!r}: {error}") from error
    if not steps:
        raise UnknownIdError("orchestration", correlation_id)
    return steps
