"""Cursors of projections in SQLite. The process that runs on the database moves them all."""

from __future__ import annotations

import apsw

from oraculo.adapters.stores import shared_sql
from oraculo.adapters.stores.sqlite.connections import fetch
from oraculo.ports.cursors import Lag


def cursors(connection: apsw.Connection) -> dict[str, int]:
    return dict(fetch(connection, "SELECT name, position FROM cursors ORDER BY name"))


def claim(connection: apsw.Connection, name: str) -> int:
    """Only one process ever moves it: who runs on a file has it to itself."""
    sql = "INSERT INTO cursors VALUES (?, 0) ON CONFLICT (name) DO UPDATE SET position = position RETURNING position"
    with connection:
        ((position,),) = connection.execute(sql, (name,)).fetchall()
    return int(str(position))


def move(connection: apsw.Connection, name: str, to: int) -> None:
    with connection:
        connection.execute("UPDATE cursors SET position = max(position, ?) WHERE name = ?", (to, name))


def lag(connection: apsw.Connection, after: int, tipo: str | None = None) -> Lag:
    values = (after,) if tipo is None else (after, tipo)
    (row,) = fetch(connection, shared_sql.lag_query("?", tipo), values)
    return shared_sql.lag(after, row)
