"""System events in PostgreSQL."""

from __future__ import annotations

from typing import Any

import orjson

from oraculo.adapters.stores.instants import from_micros, to_micros
from oraculo.adapters.stores.postgres.connections import Connection, fetch
from oraculo.adapters.stores.postgres.locks import SYSTEM_EVENTS_LOCK
from oraculo.adapters.stores.shared_sql import only
from oraculo.ports.system_events import SystemEvent

_COLUMNS = "id, at, kind, body, tenant"


async def record_system_event(connection: Connection, event: SystemEvent) -> None:
    """Record under a lock: events are committed in the order of their numbers, so a reader that goes by numbers misses
    none."""
    await connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", SYSTEM_EVENTS_LOCK)
    await connection.execute(
        "INSERT INTO system_events (at, kind, body, tenant) VALUES (%s, %s, %s, %s)",
        (to_micros(event.at), event.kind, orjson.dumps(event.body).decode(), event.tenant),
    )


async def system_events(connection: Connection, limit: int, kind: str | None, tenant: str | None) -> list[SystemEvent]:
    of, values = only(tenant, "%s")
    sql = f"""
    SELECT {_COLUMNS} FROM system_events WHERE (%s::text IS NULL OR kind = %s){of} ORDER BY id DESC LIMIT %s"""
    return [_system_event(row) for row in await fetch(connection, sql, (kind, kind, *values, limit))]


async def later_system_events(connection: Connection, after: int, limit: int) -> list[SystemEvent]:
    sql = f"SELECT {_COLUMNS} FROM system_events WHERE id > %s ORDER BY id LIMIT %s"
    return [_system_event(row) for row in await fetch(connection, sql, (after, limit))]


def _system_event(row: tuple[Any, ...]) -> SystemEvent:
    id, at, kind, body, tenant = row
    return SystemEvent(kind, from_micros(at), orjson.loads(body), id, tenant)
