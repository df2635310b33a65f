"""Schedules in SQLite."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import apsw

from oraculo.adapters.sealing.codec import Sealing
from oraculo.adapters.stores.instants import from_micros_or_none, to_micros
from oraculo.adapters.stores.schedule_rows import SCHEDULE_COLUMNS, schedule_of, schedule_row
from oraculo.adapters.stores.sqlite.connections import fetch
from oraculo.core.tenants import tenant_of
from oraculo.ports.schedules import DueSchedules, StoredSchedule


def save_schedule(connection: apsw.Connection, one: StoredSchedule, sealing: Sealing) -> StoredSchedule | None:
    name, body, state, due_at = schedule_row(one, sealing)
    with connection:
        if one.version == 0:
            connection.execute(
                f"INSERT INTO schedules ({SCHEDULE_COLUMNS}) VALUES (?, ?, ?, ?, 1, ?) ON CONFLICT (nome) DO NOTHING",
                (name, body, state, due_at, tenant_of(name)),
            )
        else:
            connection.execute(
                "UPDATE schedules SET body = ?, state = ?, due_at = ?, version = version + 1"
                " WHERE nome = ? AND version = ?",
                (body, state, due_at, name, one.version),
            )
        changed = connection.changes()
    return replace(one, version=one.version + 1) if changed else None


def schedule(connection: apsw.Connection, name: str, sealing: Sealing) -> StoredSchedule | None:
    rows = fetch(connection, f"SELECT {SCHEDULE_COLUMNS} FROM schedules WHERE nome = ?", (name,))
    return schedule_of(rows[0], sealing) if rows else None


def schedules(
    connection: apsw.Connection, tenant: str, after: str, limit: int, sealing: Sealing
) -> list[StoredSchedule]:
    sql = f"SELECT {SCHEDULE_COLUMNS} FROM schedules WHERE tenant = ? AND nome > ? ORDER BY nome LIMIT ?"
    return [schedule_of(row, sealing) for row in fetch(connection, sql, (tenant, after, limit))]


def remove_schedule(connection: apsw.Connection, name: str) -> bool:
    with connection:
        connection.execute("DELETE FROM schedules WHERE nome = ?", (name,))
    return connection.changes() == 1


def due_schedules(connection: apsw.Connection, now: datetime, limit: int, sealing: Sealing) -> DueSchedules:
    at = to_micros(now)
    sql = f"SELECT {SCHEDULE_COLUMNS} FROM schedules WHERE due_at <= ? ORDER BY due_at LIMIT ?"
    due = tuple(schedule_of(row, sealing) for row in fetch(connection, sql, (at, limit)))
    ((following,),) = fetch(connection, "SELECT min(due_at) FROM schedules WHERE due_at > ?", (at,))
    return DueSchedules(now, due, from_micros_or_none(following))
