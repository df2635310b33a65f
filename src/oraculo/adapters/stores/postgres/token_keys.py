"""Keys of tokens in PostgreSQL."""

from __future__ import annotations

from datetime import datetime

from oraculo.adapters.stores.instants import to_micros
from oraculo.adapters.stores.postgres.connections import Connection, fetch
from oraculo.adapters.stores.token_key_rows import TOKEN_KEY_COLUMNS, token_key_of, token_key_row
from oraculo.ports.token_keys import StoredTokenKey

_INSERT = f"INSERT INTO token_keys ({TOKEN_KEY_COLUMNS})"
_ONE_AT_A_TIME = "LOCK TABLE token_keys IN SHARE ROW EXCLUSIVE MODE"


async def token_keys(connection: Connection) -> list[StoredTokenKey]:
    rows = await fetch(connection, f"SELECT {TOKEN_KEY_COLUMNS} FROM token_keys ORDER BY signs_from DESC, kid")
    return [token_key_of(row) for row in rows]


async def add_first_token_key(connection: Connection, key: StoredTokenKey) -> None:
    await connection.execute(_ONE_AT_A_TIME)
    unless = "WHERE NOT EXISTS (SELECT 1 FROM token_keys WHERE good_until IS NULL)"
    await connection.execute(
        f"{_INSERT} SELECT %s, %s::bytea, %s::bigint, %s::bigint, %s::bigint {unless}".encode(), token_key_row(key)
    )


async def succeed_token_keys(connection: Connection, key: StoredTokenKey, old_until: datetime, now: datetime) -> None:
    until = to_micros(old_until)
    await connection.execute(_ONE_AT_A_TIME)
    await connection.execute("DELETE FROM token_keys WHERE good_until <= %s", (to_micros(now),))
    await connection.execute(
        "UPDATE token_keys SET good_until = %s WHERE good_until IS NULL OR good_until > %s", (until, until)
    )
    await connection.execute(f"{_INSERT} VALUES (%s, %s, %s, %s, %s)".encode(), token_key_row(key))
