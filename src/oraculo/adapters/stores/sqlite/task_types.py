"""Task types in SQLite."""

from __future__ import annotations

from datetime import datetime

import apsw

from oraculo.adapters.stores.instants import to_micros
from oraculo.adapters.stores.sqlite.connections import fetch
from oraculo.core.tenants import tenant_of


def put_task_type(connection: apsw.Connection, tipo: str, body: bytes, at: datetime) -> None:
    with connection:
        connection.execute(
            "INSERT INTO task_types (tipo, body, at, tenant) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (tipo) DO UPDATE SET body = excluded.body, at = excluded.at",
            (tipo, body.decode(), to_micros(at), tenant_of(tipo)),
        )


def task_types(connection: apsw.Connection) -> dict[str, bytes]:
    rows = fetch(connection, "SELECT tipo, body FROM task_types ORDER BY tipo")
    return {tipo: body.encode() for tipo, body in rows}


def remove_task_type(connection: apsw.Connection, tipo: str) -> bool:
    with connection:
        connection.execute("DELETE FROM task_types WHERE tipo = ?", (tipo,))
    return connection.changes() == 1
