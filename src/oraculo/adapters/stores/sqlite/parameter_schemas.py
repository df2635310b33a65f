"""Schemas of parameters in SQLite."""

from __future__ import annotations

from datetime import datetime

import apsw

from oraculo.adapters.stores.instants import to_micros
from oraculo.adapters.stores.sqlite.connections import fetch


def put_parameter_schema(connection: apsw.Connection, queue: str, body: bytes, at: datetime) -> None:
    with connection:
        connection.execute(
            "INSERT INTO parameter_schemas (queue, body, at) VALUES (?, ?, ?)"
            " ON CONFLICT (queue) DO UPDATE SET body = excluded.body, at = excluded.at",
            (queue, body.decode(), to_micros(at)),
        )


def parameter_schemas(connection: apsw.Connection) -> dict[str, bytes]:
    rows = fetch(connection, "SELECT queue, body FROM parameter_schemas ORDER BY queue")
    return {queue: body.encode() for queue, body in rows}


def remove_parameter_schema(connection: apsw.Connection, queue: str) -> bool:
    with connection:
        connection.execute("DELETE FROM parameter_schemas WHERE queue = ?", (queue,))
    return connection.changes() == 1
