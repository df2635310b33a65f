"""Task types in PostgreSQL."""

from __future__ import annotations

from datetime import datetime

from oraculo.adapters.stores.instants import to_micros
from oraculo.adapters.stores.postgres.connections import Connection, fetch
from oraculo.core.tenants import tenant_of


async def put_task_type(connection: Connection, tipo: str, body: bytes, at: datetime) -> None:
    await connection.execute(
        "INSERT INTO task_types (tipo, body, at, tenant) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (tipo) DO UPDATE SET body = excluded.body, at = excluded.at",
        (tipo, body.decode(), to_micros(at), tenant_of(tipo)),
    )


async def task_types(connection: Connection) -> dict[str, bytes]:
    rows = await fetch(connection, "SELECT tipo, body FROM task_types ORDER BY tipo")
    return {tipo: body.encode() for tipo, body in rows}


async def remove_task_type(connection: Connection, tipo: str) -> bool:
    return (await connection.execute("DELETE FROM task_types WHERE tipo = %s", (tipo,))).rowcount == 1
