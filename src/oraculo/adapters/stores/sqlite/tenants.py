"""Tenants in SQLite."""

from __future__ import annotations

from datetime import datetime

import apsw

from oraculo.adapters.stores import tenant_rows
from oraculo.adapters.stores.instants import to_micros
from oraculo.adapters.stores.sqlite.connections import Connections, fetch
from oraculo.ports.tenants import StoredTenant


def _tenants(connection: apsw.Connection) -> list[StoredTenant]:
    rows = fetch(connection, f"SELECT {tenant_rows.TENANT_COLUMNS} FROM tenants ORDER BY name")
    return [tenant_rows.tenant_of_row(row) for row in rows]


def _add_tenant(connection: apsw.Connection, name: str, at: datetime) -> None:
    with connection:
        connection.execute(
            "INSERT INTO tenants (name, created_at) VALUES (?, ?) ON CONFLICT (name) DO NOTHING", (name, to_micros(at))
        )


def _put_tenant(connection: apsw.Connection, tenant: StoredTenant) -> None:
    with connection:
        connection.execute(tenant_rows.put_sql("?"), tenant_rows.tenant_row(tenant))


def _remove_tenant(connection: apsw.Connection, name: str) -> bool:
    with connection:
        connection.execute("DELETE FROM tenants WHERE name = ?", (name,))
    return connection.changes() == 1


def _open_runs_in(connection: apsw.Connection, tenant: str, limit: int) -> int:
    return int(fetch(connection, tenant_rows.open_sql("?"), (tenant, *tenant_rows.OPEN_STATUSES, limit))[0][0])


def _dead_letters_in(connection: apsw.Connection, tenant: str, limit: int) -> int:
    return int(fetch(connection, tenant_rows.dead_letters_sql("?"), (tenant, limit))[0][0])


class SqliteTenants:
    """The part of the store that keeps tenants."""

    connections: Connections

    async def tenants(self) -> list[StoredTenant]:
        return await self.connections.read(_tenants)

    async def add_tenant(self, name: str, at: datetime) -> None:
        await self.connections.write(lambda c: _add_tenant(c, name, at))

    async def put_tenant(self, tenant: StoredTenant) -> None:
        await self.connections.write(lambda c: _put_tenant(c, tenant))

    async def remove_tenant(self, name: str) -> bool:
        return await self.connections.write(lambda c: _remove_tenant(c, name))

    async def open_runs_in(self, tenant: str, limit: int) -> int:
        return await self.connections.read(lambda c: _open_runs_in(c, tenant, limit))

    async def dead_letters_in(self, tenant: str, limit: int) -> int:
        return await self.connections.read(lambda c: _dead_letters_in(c, tenant, limit))
