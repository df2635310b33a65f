"""Keys of tenants in PostgreSQL, and what is done with rows when one is new or forgotten."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from typing import TypeVar

from oraculo.adapters.sealing.codec import Sealing
from oraculo.adapters.stores import resealing
from oraculo.adapters.stores.instants import to_micros
from oraculo.adapters.stores.postgres.connections import Connection, Pool, fetch
from oraculo.adapters.stores.sealed_rows import DATA_KEY_COLUMNS, UNSEALED, data_key_of, data_key_row, opened, refresh
from oraculo.ports.data_keys import ForgottenKeys, StoredDataKey

T = TypeVar("T")

_LIVE = "SELECT count(*) FROM runs WHERE tenant = %s AND (closed_at IS NULL OR owes > 0 OR wake_at IS NOT NULL)"


async def data_keys(connection: Connection) -> list[StoredDataKey]:
    rows = await fetch(connection, f"SELECT {DATA_KEY_COLUMNS} FROM data_keys ORDER BY tenant, generation")
    return [data_key_of(row) for row in rows]


async def _add(connection: Connection, key: StoredDataKey) -> bool:
    done = await connection.execute(
        f"INSERT INTO data_keys ({DATA_KEY_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s)"
        " ON CONFLICT DO NOTHING".encode(),
        data_key_row(key),
    )
    return done.rowcount == 1


async def _rewrap(connection: Connection, key: StoredDataKey) -> bool:
    done = await connection.execute(
        "UPDATE data_keys SET wrapped = %s, master = %s WHERE id = %s AND wrapped IS NOT NULL",
        (key.wrapped, key.master, key.id),
    )
    return done.rowcount == 1


async def _forget(connection: Connection, tenant: str, at: datetime) -> ForgottenKeys:
    """The keys come first: transactions that seal with them hold them, and what those wrote is counted then."""
    await connection.execute("SELECT 1 FROM data_keys WHERE tenant = %s ORDER BY id FOR UPDATE", (tenant,))
    ((live,),) = await fetch(connection, _LIVE, (tenant,))
    if live:
        return ForgottenKeys(0, int(live), 0)
    done = await connection.execute(
        "UPDATE data_keys SET wrapped = NULL, forgotten_at = %s WHERE tenant = %s AND wrapped IS NOT NULL",
        (to_micros(at), tenant),
    )
    keys = done.rowcount
    schedules = (await connection.execute("DELETE FROM schedules WHERE tenant = %s", (tenant,))).rowcount
    await connection.execute(
        "UPDATE idempotency_keys SET fingerprint = '' WHERE run IN (SELECT run FROM runs WHERE tenant = %s)", (tenant,)
    )
    await connection.execute("DELETE FROM unique_keys WHERE run IN (SELECT run FROM runs WHERE tenant = %s)", (tenant,))
    await connection.execute("UPDATE runs SET fingerprint = '' WHERE tenant = %s", (tenant,))
    return ForgottenKeys(keys, 0, schedules)


async def _reseal_page(
    connection: Connection, table: resealing.SealedTable, tenant: str, after: int | str, sealing: Sealing
) -> tuple[int, int | str | None]:
    """How many rows of one page were sealed, and the key of its last row; None after the last page."""
    values = (tenant, resealing.newest_beginning(sealing, tenant), after, resealing.RESEAL_PAGE_ROWS)
    rows = await fetch(connection, resealing.selection(table, "%s", " FOR UPDATE"), values)
    sealed = [found for row in rows if (found := resealing.resealed(table, row, tenant, sealing)) is not None]
    async with connection.cursor() as cursor:
        await cursor.executemany(resealing.update(table, "%s").encode(), sealed)
    return len(sealed), rows[-1][0] if len(rows) == resealing.RESEAL_PAGE_ROWS else None


async def _vacuum(connection: Connection) -> None:
    await connection.execute("VACUUM data_keys")


class PostgresDataKeys:
    """The part of the store that keeps keys of tenants, and seals with them."""

    _pool: Pool  # that of a tenant, where the store is seen by one
    _fleet: Pool
    sealing: Sealing = UNSEALED

    async def data_keys(self) -> list[StoredDataKey]:
        return await self._fleet.read(data_keys)

    async def add_data_key(self, key: StoredDataKey) -> bool:
        return await self._fleet.write(lambda c: _add(c, key))

    async def rewrap_data_key(self, key: StoredDataKey) -> bool:
        done = await self._fleet.write(lambda c: _rewrap(c, key))
        await self._fleet.read(_vacuum)
        return done

    async def forget_data_keys(self, tenant: str, at: datetime) -> ForgottenKeys:
        """The row as it was goes too, once no transaction can see it."""
        found = await self._fleet.write(lambda c: _forget(c, tenant, at))
        await self._fleet.read(_vacuum)
        self.sealing.expire()
        return found

    async def reseal(self, tenant: str) -> int:
        await refresh(self.sealing, self, [tenant])
        total = 0
        for table in resealing.TABLES:
            after: int | str | None = table.first
            while after is not None:
                page = partial(_reseal_page, table=table, tenant=tenant, after=after, sealing=self.sealing)
                count, after = await self._fleet.write(page)
                total += count
        return total

    async def _reload_keys(self) -> None:
        self.sealing.take(await self.data_keys())

    async def _open(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Read what may be sealed."""
        return await opened(self.sealing, self, lambda: self._pool.read(work))
