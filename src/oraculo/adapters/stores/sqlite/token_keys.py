"""Keys of tokens in SQLite."""

from __future__ import annotations

from datetime import datetime

import apsw

from oraculo.adapters.stores.instants import to_micros
from oraculo.adapters.stores.sqlite.connections import fetch
from oraculo.adapters.stores.token_key_rows import TOKEN_KEY_COLUMNS, token_key_of, token_key_row
from oraculo.ports.token_keys import StoredTokenKey

_INSERT = f"INSERT INTO token_keys ({TOKEN_KEY_COLUMNS})"


def token_keys(connection: apsw.Connection) -> list[StoredTokenKey]:
    rows = fetch(connection, f"SELECT {TOKEN_KEY_COLUMNS} FROM token_keys ORDER BY signs_from DESC, kid")
    return [token_key_of(row) for row in rows]


def add_first_token_key(connection: apsw.Connection, key: StoredTokenKey) -> None:
    unless = "WHERE NOT EXISTS (SELECT 1 FROM token_keys WHERE good_until IS NULL)"
    with connection:
        connection.execute(f"{_INSERT} SELECT ?, ?, ?, ?, ? {unless}", token_key_row(key))


def succeed_token_keys(connection: apsw.Connection, key: StoredTokenKey, old_until: datetime, now: datetime) -> None:
    until = to_micros(old_until)
    with connection:
        connection.execute("DELETE FROM token_keys WHERE good_until <= ?", (to_micros(now),))
        connection.execute(
            "UPDATE token_keys SET good_until = ? WHERE good_until IS NULL OR good_until > ?", (until, until)
        )
        connection.execute(f"{_INSERT} VALUES (?, ?, ?, ?, ?)", token_key_row(key))
