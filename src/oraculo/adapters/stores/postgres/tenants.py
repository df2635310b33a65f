"""Tenants in PostgreSQL."""

from __future__ import annotations

from datetime import datetime

from oraculo.adapters.stores import tenant_rows
from oraculo.adapters.stores.instants import to_micros
from oraculo.adapters.stores.postgres.connections import Connection, Pool, fetch
from oraculo.ports.tenants import StoredTenant


async def _tenants(connection: Connection) -> list[StoredTenant]:
    rows = await fetch(connection, f"SELECT {tenant_rows.TENANT_COLUMNS} FROM tenants ORDER BY name")
    return [tenant_rows.tenant_of_row(row) for row in rows]


async def _add_tenant(connection: Connection, name: str, at: datetime) -> None:
    await connection.execute(
        "INSERT INTO tenants (name, created_at) VALUES (%s, %s) ON CONFLICT (name) DO NOTHING", (name, to_micros(at))
    )


async def _put_tenant(connection: Connection, tenant: StoredTenant) -> None:
    await connection.execute(tenant_rows.put_sql("%s").encode(), tenant_rows.tenant_row(tenant))


async def _remove_tenant(connection: Connection, name: str) -> bool:
    return (await connection.execute("DELETE FROM tenants WHERE name = %s", (name,))).rowcount == 1


async def _open_runs_in(connection: Connection, tenant: str, limit: int) -> int:
    values = (tenant, *tenant_rows.OPEN_STATUSES, limit)
    ((number,),) = await fetch(connection, tenant_rows.open_sql("%s"), values)
    return int(number)


async def _dead_letters_in(connection: Connection, tenant: str, limit: int) -> int:
    ((number,),) = await fetch(connection, tenant_rows.dead_letters_sql("%s"), (tenant, limit))
    return int(number)


class PostgresTenants:
    """The part of the store that keeps tenants."""

    _pool: Pool

    async def tenants(self) -> list[StoredTenant]:
        return await self._pool.read(_tenants)

    async def add_tenant(self, name: str, at: datetime) -> None:
        await self._pool.write(lambda c: _add_tenant(c, name, at))

    async def put_tenant(self, tenant: StoredTenant) -> None:
        await self._pool.write(lambda c: _put_tenant(c, tenant))

    async def remove_tenant(self, name: str) -> bool:
        return await self._pool.write(lambda c: _remove_tenant(c, name))

    async def open_runs_in(self, tenant: str, limit: int) -> int:
        return await self._pool.read(lambda c: _open_runs_in(c, tenant, limit))

    async def dead_letters_in(self, tenant: str, limit: int) -> int:
        return await self._pool.read(lambda c: _dead_letters_in(c, tenant, limit))
