"""Objectives and alerts in SQLite."""

from __future__ import annotations

import apsw

from oraculo.adapters.stores.sla_rows import ALERT_COLUMNS, SLO_COLUMNS, alert_of, slo_of, slo_row
from oraculo.adapters.stores.sqlite.connections import Connections, fetch
from oraculo.ports.sla import StoredSlo, ToldAlert


def _put_slo(connection: apsw.Connection, slo: StoredSlo) -> bool:
    with connection:
        known = fetch(connection, "SELECT 1 FROM slos WHERE nome = ?", (slo.name,))
        connection.execute(f"INSERT OR REPLACE INTO slos ({SLO_COLUMNS}) VALUES (?, ?, ?, ?)", slo_row(slo))
    return not known


def _remove_slo(connection: apsw.Connection, name: str) -> bool:
    with connection:
        connection.execute("DELETE FROM slos WHERE nome = ?", (name,))
    return connection.changes() == 1


def _slos(connection: apsw.Connection) -> list[StoredSlo]:
    return [slo_of(row) for row in fetch(connection, f"SELECT {SLO_COLUMNS} FROM slos ORDER BY nome")]


def _alerts(
    connection: apsw.Connection, tenant: str, limit: int, before: int | None, run: int | None
) -> list[ToldAlert]:
    where = "tenant = ?1 AND (?2 IS NULL OR seq < ?2)" if run is None else "tenant = ?1 AND run = ?4"
    sql = f"SELECT {ALERT_COLUMNS} FROM sla_alerts WHERE {where} ORDER BY seq DESC LIMIT ?3"
    values = (tenant, before, limit) if run is None else (tenant, before, limit, run)
    return [alert_of(row) for row in fetch(connection, sql, values)]


def _later(connection: apsw.Connection, after: int, limit: int) -> list[ToldAlert]:
    sql = f"SELECT {ALERT_COLUMNS} FROM sla_alerts WHERE seq > ? ORDER BY seq LIMIT ?"
    return [alert_of(row) for row in fetch(connection, sql, (after, limit))]


class SqliteSla:
    """The part of the store that keeps objectives and alerts."""

    connections: Connections

    async def put_slo(self, slo: StoredSlo) -> bool:
        return await self.connections.write(lambda c: _put_slo(c, slo))

    async def slos(self) -> list[StoredSlo]:
        return await self.connections.read(_slos)

    async def remove_slo(self, name: str) -> bool:
        return await self.connections.write(lambda c: _remove_slo(c, name))

    async def sla_alerts(
        self, tenant: str, limit: int, before: int | None = None, run: int | None = None
    ) -> list[ToldAlert]:
        return await self.connections.read(lambda c: _alerts(c, tenant, limit, before, run))

    async def later_sla_alerts(self, after: int, limit: int) -> list[ToldAlert]:
        return await self.connections.read(lambda c: _later(c, after, limit))
