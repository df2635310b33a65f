"""Objectives and alerts in PostgreSQL."""

from __future__ import annotations

from typing import Any

from oraculo.adapters.stores.postgres.connections import Connection, Pool, fetch
from oraculo.adapters.stores.sla_rows import ALERT_COLUMNS, SLO_COLUMNS, alert_of, slo_of, slo_row
from oraculo.ports.sla import StoredSlo, ToldAlert


async def _put_slo(connection: Connection, slo: StoredSlo) -> bool:
    sql = f"""
    INSERT INTO slos ({SLO_COLUMNS}) VALUES (%s, %s, %s, %s)
    ON CONFLICT (nome) DO UPDATE SET corpo = excluded.corpo, ator = excluded.ator, alterado_em = excluded.alterado_em
    RETURNING xmax = 0"""
    return bool((await fetch(connection, sql, slo_row(slo)))[0][0])


async def _slos(connection: Connection) -> list[StoredSlo]:
    return [slo_of(row) for row in await fetch(connection, f"SELECT {SLO_COLUMNS} FROM slos ORDER BY nome")]


async def _remove_slo(connection: Connection, name: str) -> bool:
    return (await connection.execute("DELETE FROM slos WHERE nome = %s", (name,))).rowcount == 1


async def _alerts(
    connection: Connection, tenant: str, limit: int, before: int | None, run: int | None
) -> list[ToldAlert]:
    where, values = "tenant = %s", [tenant]
    more: list[Any] = []
    if run is not None:
        where, more = f"{where} AND run = %s", [run]
    elif before is not None:
        where, more = f"{where} AND seq < %s", [before]
    sql = f"SELECT {ALERT_COLUMNS} FROM sla_alerts WHERE {where} ORDER BY seq DESC LIMIT %s"
    return [alert_of(row) for row in await fetch(connection, sql, (*values, *more, limit))]


async def _later(connection: Connection, after: int, limit: int) -> list[ToldAlert]:
    sql = f"SELECT {ALERT_COLUMNS} FROM sla_alerts WHERE seq > %s ORDER BY seq LIMIT %s"
    return [alert_of(row) for row in await fetch(connection, sql, (after, limit))]


class PostgresSla:
    """The part of the store that keeps objectives and alerts."""

    _pool: Pool

    async def put_slo(self, slo: StoredSlo) -> bool:
        return await self._pool.write(lambda c: _put_slo(c, slo))

    async def slos(self) -> list[StoredSlo]:
        return await self._pool.read(_slos)

    async def remove_slo(self, name: str) -> bool:
        return await self._pool.write(lambda c: _remove_slo(c, name))

    async def sla_alerts(
        self, tenant: str, limit: int, before: int | None = None, run: int | None = None
    ) -> list[ToldAlert]:
        return await self._pool.read(lambda c: _alerts(c, tenant, limit, before, run))

    async def later_sla_alerts(self, after: int, limit: int) -> list[ToldAlert]:
        return await self._pool.read(lambda c: _later(c, after, limit))
