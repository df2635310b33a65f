"""Numbered migrations, applied at start; a database from a newer version is refused."""

from __future__ import annotations

from importlib import resources

import apsw

from oraculo.errors import StoreTooNewError


def migrations(flavour: str) -> list[tuple[int, str]]:
    """(number, SQL) of every migration for one kind of database, in order."""
    folder = resources.files("oraculo.adapters.stores") / "migrations"
    found = [
        (int(entry.name[:4]), entry.read_text(encoding="utf-8"))
        for entry in folder.iterdir()
        if entry.name.endswith(f"_{flavour}.sql")
    ]
    return sorted(found)


def migrate(connection: apsw.Connection) -> None:
    known = migrations("sqlite")
    newest = known[-1][0]
    current = int(str(connection.execute("PRAGMA user_version").fetchall()[0][0]))
    if current > newest:
        raise StoreTooNewError(
            f"the database has schema {current}, this Oráculo knows up to {newest}: use the newer version that wrote it"
        )
    for number, sql in known:
        if number > current:
            with connection:
                connection.execute(sql)
                connection.execute(f"PRAGMA user_version={number}")
