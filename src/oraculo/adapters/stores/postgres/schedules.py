"""Schedules in PostgreSQL; they are due by its clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from oraculo.adapters.sealing.codec import Sealing
from oraculo.adapters.stores.instants import from_micros, from_micros_or_none
from oraculo.adapters.stores.postgres.connections import Connection, fetch
from oraculo.adapters.stores.postgres.data_keys import PostgresDataKeys
from oraculo.adapters.stores.schedule_rows import SCHEDULE_COLUMNS, schedule_of, schedule_row
from oraculo.adapters.stores.sealed_rows import refresh
from oraculo.core.tenants import tenant_of
from oraculo.ports.schedules import DueSchedules, StoredSchedule


async def _save_schedule(connection: Connection, one: StoredSchedule, sealing: Sealing) -> StoredSchedule | None:
    name, body, state, due_at = schedule_row(one, sealing)
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


async def _schedule(connection: Connection, name: str, sealing: Sealing) -> StoredSchedule | None:
    rows = await fetch(connection, f"SELECT {SCHEDULE_COLUMNS} FROM schedules WHERE nome = %s", (name,))
    return schedule_of(rows[0], sealing) if rows else None


async def _schedules(
    connection: Connection, tenant: str, after: str, limit: int, sealing: Sealing
) -> list[StoredSchedule]:
    sql = f"SELECT {SCHEDULE_COLUMNS} FROM schedules WHERE tenant = %s AND nome > %s ORDER BY nome LIMIT %s"
    return [schedule_of(row, sealing) for row in await fetch(connection, sql, (tenant, after, limit))]


async def _remove_schedule(connection: Connection, name: str) -> bool:
    return (await connection.execute("DELETE FROM schedules WHERE nome = %s", (name,))).rowcount == 1


async def _due_schedules(connection: Connection, limit: int, sealing: Sealing) -> DueSchedules:
    sql = (
        "SELECT m.now, (SELECT min(due_at) FROM schedules WHERE due_at > m.now) FROM (SELECT oraculo_now()) AS m (now)"
    )
    ((now, following),) = await fetch(connection, sql)
    rows = f"SELECT {SCHEDULE_COLUMNS} FROM schedules WHERE due_at <= %s ORDER BY due_at LIMIT %s"
    due = tuple(schedule_of(row, sealing) for row in await fetch(connection, rows, (now, limit)))
    return DueSchedules(from_micros(now), due, from_micros_or_none(following))


class PostgresSchedules(PostgresDataKeys):
    """The part of the store that keeps schedules."""

    async def save_schedule(self, schedule: StoredSchedule) -> StoredSchedule | None:
        if self.sealing.on:
            await refresh(self.sealing, self, [tenant_of(schedule.name)])
        return await self._pool.write(lambda c: _save_schedule(c, schedule, self.sealing))

    async def schedule(self, name: str) -> StoredSchedule | None:
        return await self._open(lambda c: _schedule(c, name, self.sealing))

    async def schedules(self, tenant: str, after: str, limit: int) -> list[StoredSchedule]:
        return await self._open(lambda c: _schedules(c, tenant, after, limit, self.sealing))

    async def remove_schedule(self, name: str) -> bool:
        return await self._pool.write(lambda c: _remove_schedule(c, name))

    async def due_schedules(self, now: datetime, limit: int) -> DueSchedules:
        return await self._open(lambda c: _due_schedules(c, limit, self.sealing))
