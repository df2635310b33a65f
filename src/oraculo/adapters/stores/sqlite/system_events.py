"""System events in SQLite."""

from __future__ import annotations

from typing import Any

import apsw
import orjson

from oraculo.adapters.stores.instants import from_micros, to_micros
from oraculo.adapters.stores.shared_sql import only
from oraculo.adapters.stores.sqlite.connections import fetch
from oraculo.ports.system_events import SystemEvent

_COLUMNS = "id, at, kind, body, tenant"


def record_system_event(connection: apsw.Connection, event: SystemEvent) -> None:
    with connection:
        connection.execute(
            "INSERT INTO system_events (at, kind, body, tenant) VALUES (?, ?, ?, ?)",
            (to_micros(event.at), event.kind, orjson.dumps(event.body).decode(), event.tenant),
        )


def system_events(connection: apsw.Connection, limit: int, kind: str | None, tenant: str | None) -> list[SystemEvent]:
    of, values = only(tenant, "?")
    sql = f"SELECT {_COLUMNS} FROM system_events WHERE (? IS NULL OR kind = ?){of} ORDER BY id DESC LIMIT ?"
    return [_system_event(row) for row in fetch(connection, sql, (kind, kind, *values, limit))]


def later_system_events(connection: apsw.Connection, after: int, limit: int) -> list[SystemEvent]:
    sql = f"SELECT {_COLUMNS} FROM system_events WHERE id > ? ORDER BY id LIMIT ?"
    return [_system_event(row) for row in fetch(connection, sql, (after, limit))]


def _system_event(row: tuple[Any, ...]) -> SystemEvent:
    id, at, kind, body, tenant = row
    return SystemEvent(kind, from_micros(at), orjson.loads(body), id, tenant)
