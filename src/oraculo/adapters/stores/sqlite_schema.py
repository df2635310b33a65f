"""Numbered migrations, applied at start; a database from a newer version is refused."""

from __future__ import annotations

import apsw

from oraculo.adapters.stores.numbered import missing


def migrate(connection: apsw.Connection) -> None:
    current = int(str(connection.execute("PRAGMA user_version").fetchall()[0][0]))
    for number, sql in missing("sqlite", current):
        with connection:
            connection.execute(sql)
            connection.execute(f"PRAGMA user_version={number}")
