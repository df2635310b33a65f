"""Numbered migrations, all in one transaction, one process at a time; a newer database is refused."""

from __future__ import annotations

from oraculo.adapters.stores.numbered import missing
from oraculo.adapters.stores.postgres import row_security
from oraculo.adapters.stores.postgres.connections import Connection, fetch
from oraculo.adapters.stores.postgres.locks import MIGRATION_LOCK
from oraculo.adapters.stores.postgres.own_database import OURS_IS_THERE
from oraculo.errors import StoreUnavailableError

_VERSION_TABLE = "CREATE TABLE schema_version (version integer NOT NULL)"
MIGRATION_SETTINGS = {
    "statement_timeout": "0",
    "lock_timeout": "10min",
}  # large tables take long; others may migrate just now
_VERSION_TABLE_EXISTS = "SELECT 1 FROM pg_class WHERE relname = 'schema_version' AND pg_table_is_visible(oid)"


async def current_version(connection: Connection) -> int:
    """The number of the last migration that was applied; 0 when there is nothing of ours. A database of another
    program that has a table of the same name, as Temporal has, is refused."""
    if await (await connection.execute(_VERSION_TABLE_EXISTS)).fetchone() is None:
        return 0
    if await (await connection.execute(OURS_IS_THERE)).fetchone() is None:
        raise StoreUnavailableError(
            f"the database {connection.info.dbname!r} is another program's, Temporal's it seems: give Oráculo one of"
            " its own (ORACULO_STORE, or POSTGRES_DATABASE)"
        )
    row = await (await connection.execute("SELECT max(version) FROM schema_version")).fetchone()
    return int(row[0] or 0) if row else 0


async def migrate(connection: Connection) -> None:
    if not missing("postgres", await current_version(connection)):
        return
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", MIGRATION_LOCK)
        await connection.execute("SET LOCAL lock_timeout = '10s'")  # a table that is in use holds up its other users
        current = await current_version(connection)
        if current == 0:
            await connection.execute(_VERSION_TABLE)
        for number, sql in missing("postgres", current):
            await connection.execute(sql.encode())
            await connection.execute("INSERT INTO schema_version VALUES (%s)", (number,))
        await _guard(connection)


async def guard(connection: Connection) -> None:
    """Switch row-level security on, where it is not and no process of an older version is running."""
    if await row_security.is_on(connection):
        return
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", MIGRATION_LOCK)
        await connection.execute("SET LOCAL lock_timeout = '10s'")
        await _guard(connection)


async def _guard(connection: Connection) -> None:
    if not await row_security.older_run(connection):
        await row_security.switch_on(connection)


async def durability(connection: Connection) -> str:
    """How much a commit survives. Without synchronous_commit even a crash of the server loses confirmed transactions;
    without fsync, a power cut does."""
    sql = "SELECT current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes')"
    ((commit, fsync, pages),) = await fetch(connection, sql)
    if commit == "off":
        return "best-effort"
    return "power-safe" if fsync == "on" and pages == "on" else "crash-safe"
