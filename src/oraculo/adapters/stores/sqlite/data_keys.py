"""Keys of tenants in SQLite, and what is done with rows when one is new or forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TypeVar

import apsw

from oraculo.adapters.sealing.codec import Sealing
from oraculo.adapters.stores import resealing
from oraculo.adapters.stores.instants import to_micros
from oraculo.adapters.stores.sealed_rows import DATA_KEY_COLUMNS, UNSEALED, data_key_of, data_key_row, opened, refresh
from oraculo.adapters.stores.sqlite.connections import Connections, fetch
from oraculo.ports.data_keys import ForgottenKeys, StoredDataKey

T = TypeVar("T")

_LIVE = "SELECT count(*) FROM runs WHERE tenant = ? AND (closed_at IS NULL OR owes > 0 OR wake_at IS NOT NULL)"


def data_keys(connection: apsw.Connection) -> list[StoredDataKey]:
    return [
        data_key_of(row)
        for row in fetch(connection, f"SELECT {DATA_KEY_COLUMNS} FROM data_keys ORDER BY tenant, generation")
    ]


def _add(connection: apsw.Connection, key: StoredDataKey) -> bool:
    with connection:
        connection.execute(
            f"INSERT INTO data_keys ({DATA_KEY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            data_key_row(key),
        )
    return connection.changes() == 1


def _rewrap(connection: apsw.Connection, key: StoredDataKey) -> bool:
    connection.execute("PRAGMA secure_delete = ON").fetchall()
    with connection:
        connection.execute(
            "UPDATE data_keys SET wrapped = ?, master = ? WHERE id = ? AND wrapped IS NOT NULL",
            (key.wrapped, key.master, key.id),
        )
        changed = connection.changes()
    _leave_nothing_in_the_log(connection)
    return changed == 1


def _forget(connection: apsw.Connection, tenant: str, at: datetime) -> ForgottenKeys:
    """What is overwritten is not left in free pages, nor in the write-ahead log."""
    connection.execute("PRAGMA secure_delete = ON").fetchall()
    with _at_once(connection):
        live = int(fetch(connection, _LIVE, (tenant,))[0][0])
        if live:  # nothing was changed
            return ForgottenKeys(0, live, 0)
        connection.execute(
            "UPDATE data_keys SET wrapped = NULL, forgotten_at = ? WHERE tenant = ? AND wrapped IS NOT NULL",
            (to_micros(at), tenant),
        )
        keys = connection.changes()
        connection.execute("DELETE FROM schedules WHERE tenant = ?", (tenant,))
        schedules = connection.changes()
        connection.execute(
            "UPDATE idempotency_keys SET fingerprint = '' WHERE run IN (SELECT run FROM runs WHERE tenant = ?)",
            (tenant,),
        )
        connection.execute("DELETE FROM unique_keys WHERE run IN (SELECT run FROM runs WHERE tenant = ?)", (tenant,))
        connection.execute("UPDATE runs SET fingerprint = '' WHERE tenant = ?", (tenant,))
    _leave_nothing_in_the_log(connection)
    return ForgottenKeys(keys, 0, schedules)


@contextmanager
def _at_once(connection: apsw.Connection) -> Iterator[None]:
    """A transaction that others do not write beside: it reads first, and an engine may be running."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _leave_nothing_in_the_log(connection: apsw.Connection) -> None:
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _reseal_page(
    connection: apsw.Connection, table: resealing.SealedTable, tenant: str, after: int | str, sealing: Sealing
) -> tuple[int, int | str | None]:
    """How many rows of one page were sealed, and the key of its last row; None after the last page."""
    values = (tenant, resealing.newest_beginning(sealing, tenant), after, resealing.RESEAL_PAGE_ROWS)
    connection.execute("PRAGMA secure_delete = ON").fetchall()
    with _at_once(connection):
        rows = fetch(connection, resealing.selection(table, "?"), values)
        sealed = [found for row in rows if (found := resealing.resealed(table, row, tenant, sealing)) is not None]
        connection.executemany(resealing.update(table, "?"), sealed)
    if len(rows) < resealing.RESEAL_PAGE_ROWS:
        _leave_nothing_in_the_log(connection)
        return len(sealed), None
    return len(sealed), rows[-1][0]


class SqliteDataKeys:
    """The part of the store that keeps keys of tenants, and seals with them."""

    connections: Connections
    sealing: Sealing = UNSEALED

    async def data_keys(self) -> list[StoredDataKey]:
        return await self.connections.read(data_keys)

    async def add_data_key(self, key: StoredDataKey) -> bool:
        return await self.connections.write(lambda c: _add(c, key))

    async def rewrap_data_key(self, key: StoredDataKey) -> bool:
        return await self.connections.write(lambda c: _rewrap(c, key))

    async def forget_data_keys(self, tenant: str, at: datetime) -> ForgottenKeys:
        found = await self.connections.write(lambda c: _forget(c, tenant, at))
        self.sealing.expire()
        return found

    async def reseal(self, tenant: str) -> int:
        await refresh(self.sealing, self, [tenant])
        total = 0
        for table in resealing.TABLES:
            after: int | str | None = table.first
            while after is not None:
                count, after = await self.connections.write(
                    lambda c, table=table, last=after: _reseal_page(c, table, tenant, last, self.sealing)  # type: ignore[misc]
                )
                total += count
        return total

    async def _open(self, work: Callable[[apsw.Connection], T]) -> T:
        """Read what may be sealed."""
        return await opened(self.sealing, self, lambda: self.connections.read(work))
