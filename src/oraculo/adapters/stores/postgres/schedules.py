"""Schedules in PostgreSQL; they are due by its clock."""

from __future__ import annotations

from dataclasses import replace

from oraculo.adapters.stores.instants import from_micros, from_micros_or_none
from oraculo.adapters.stores.postgres.connections import Connection, fetch
from oraculo.adapters.stores.schedule_rows import SCHEDULE_COLUMNS, schedule_of, schedule_row
from oraculo.core.tenants import tenant_of
from oraculo.ports.schedules import DueSchedules, StoredSchedule


async def save_schedule(connection: Connection, one: StoredSchedule) -> StoredSchedule | None:
    name, body, state, due_at = schedule_row(one)
    if one.version == 0:
        done = await connection.execute(
            f"INSERT INTO schedules ({SCHEDULE_COLUMNS}) VALUES (%s, %s, %s, %s, 1, %s)"
            " ON CONFLICT (nome) DO NOTHING".encode(),
            (name, body, state, due_at, tenant_of(name)),
        )
    else:
        done = await connection.execute(
            "UPDATE schedules SET body = %s, state = %s, due_at = %s, version = version + 1"
            " WHERE nome = %s AND version = %s",
            (body, state, due_at, name, one.version),
        )
    return replace(one, version=one.version + 1) if done.rowcount else None


async def schedule(connection: Connection, name: str) -> StoredSchedule | None:
    rows = await fetch(connection, f"SELECT {SCHEDULE_COLUMNS} FROM schedules WHERE nome = %s", (name,))
    return schedule_of(rows[0]) if rows else None


async def schedules(connection: Connection, tenant: str, after: str, limit: int) -> list[StoredSchedule]:
    sql = f"SELECT {SCHEDULE_COLUMNS} FROM schedules WHERE tenant = %s AND nome > %s ORDER BY nome LIMIT %s"
    return [schedule_of(row) for row in await fetch(connection, sql, (tenant, after, limit))]


async def remove_schedule(connection: Connection, name: str) -> bool:
    return (await connection.execute("DELETE FROM schedules WHERE nome = %s", (name,))).rowcount == 1


async def due_schedules(connection: Connection, limit: int) -> DueSchedules:
    sql = (
        "SELECT m.now, (SELECT min(due_at) FROM schedules WHERE due_at > m.now) FROM (SELECT oraculo_now()) AS m (now)"
    )
    ((now, following),) = await fetch(connection, sql)
    rows = f"SELECT {SCHEDULE_COLUMNS} FROM schedules WHERE due_at <= %s ORDER BY due_at LIMIT %s"
    due = tuple(schedule_of(row) for row in await fetch(connection, rows, (now, limit)))
    return DueSchedules(from_micros(now), due, from_micros_or_none(following))
