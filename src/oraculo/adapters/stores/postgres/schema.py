"""Numbered migrations, all in one transaction, one process at a time; a newer database is refused."""

from __future__ import annotations

from oraculo.adapters.stores.numbered import missing
from oraculo.adapters.stores.postgres.connections import Connection
from oraculo.adapters.stores.postgres.locks import MIGRATION

_TABLE = "CREATE TABLE schema_version (version integer NOT NULL)"
_THERE = "SELECT 1 FROM pg_class WHERE relname = 'schema_version' AND pg_table_is_visible(oid)"


async def current_version(connection: Connection) -> int:
    """0 when there is nothing of ours."""
    if await (await connection.execute(_THERE)).fetchone() is None:
        return 0
    row = await (await connection.execute("SELECT max(version) FROM schema_version")).fetchone()
    return int(row[0] or 0) if row else 0


async def migrate(connection: Connection) -> None:
    if not missing("postgres", await current_version(connection)):
        return
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", MIGRATION)
        current = await current_version(connection)
        if current == 0:
            await connection.execute(_TABLE)
        for number, sql in missing("postgres", current):
            await connection.execute(sql.encode())
            await connection.execute("INSERT INTO schema_version VALUES (%s)", (number,))
