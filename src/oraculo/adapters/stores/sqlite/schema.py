"""Numbered migrations, applied at start; a database from a newer version is refused."""

from __future__ import annotations

import apsw

from oraculo.adapters.stores.numbered import missing


def current_version(connection: apsw.Connection) -> int:
    """The number of the last migration that was applied; 0 when there is nothing of ours."""
    return int(str(connection.execute("PRAGMA user_version").fetchall()[0][0]))


def migrate(connection: apsw.Connection) -> None:
    for number, sql in missing("sqlite", current_version(connection)):
        with connection:
            connection.execute(sql)
            connection.execute(f"PRAGMA user_version={number}")
