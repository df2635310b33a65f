"""Keys of the API and their sessions in SQLite."""

from __future__ import annotations

from datetime import datetime

import apsw

from oraculo.adapters.stores.instants import to_micros
from oraculo.adapters.stores.key_rows import KEY_COLUMNS, SESSION_COLUMNS, key_of, key_row, session_of, session_row
from oraculo.adapters.stores.sqlite.connections import fetch
from oraculo.ports.api_keys import ApiKey, KeySession


def add_api_key(connection: apsw.Connection, key: ApiKey) -> None:
    row = key_row(key)
    with connection:
        connection.execute(f"INSERT INTO api_keys ({KEY_COLUMNS}) VALUES ({', '.join('?' * len(row))})", row)


def api_key(connection: apsw.Connection, id: str) -> ApiKey | None:
    rows = fetch(connection, f"SELECT {KEY_COLUMNS} FROM api_keys WHERE id = ?", (id,))
    return key_of(rows[0]) if rows else None


def api_keys(connection: apsw.Connection) -> list[ApiKey]:
    rows = fetch(connection, f"SELECT {KEY_COLUMNS} FROM api_keys ORDER BY created_at DESC, id")
    return [key_of(row) for row in rows]


def rotate_api_key(
    connection: apsw.Connection, id: str, digest: str, old_until: datetime, expires_at: datetime | None
) -> bool:
    with connection:
        connection.execute(
            "UPDATE api_keys SET old_digest = digest, digest = ?, old_until = ?, expires_at = ?"
            " WHERE id = ? AND revoked_at IS NULL",
            (digest, to_micros(old_until), None if expires_at is None else to_micros(expires_at), id),
        )
    return connection.changes() == 1


def revoke_api_key(connection: apsw.Connection, id: str, at: datetime) -> bool:
    with connection:
        connection.execute("DELETE FROM sessions WHERE key_id = ?", (id,))
        connection.execute(
            "UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", (to_micros(at), id)
        )
    return connection.changes() == 1


def open_runs_of(connection: apsw.Connection, key_id: str) -> int:
    sql = "SELECT count(*) FROM runs WHERE owner = ? AND owner IS NOT NULL AND closed_at IS NULL"
    return int(fetch(connection, sql, (key_id,))[0][0])


def use_api_key(connection: apsw.Connection, id: str, at: datetime) -> None:
    with connection:
        connection.execute("UPDATE api_keys SET used_at = ? WHERE id = ?", (to_micros(at), id))


def add_session(connection: apsw.Connection, session: KeySession, now: datetime) -> None:
    with connection:
        connection.execute("DELETE FROM sessions WHERE expires_at <= ?", (to_micros(now),))
        connection.execute(f"INSERT INTO sessions ({SESSION_COLUMNS}) VALUES (?, ?, ?, ?)", session_row(session))


def session(connection: apsw.Connection, id: str) -> KeySession | None:
    rows = fetch(connection, f"SELECT {SESSION_COLUMNS} FROM sessions WHERE id = ?", (id,))
    return session_of(rows[0]) if rows else None


def end_session(connection: apsw.Connection, id: str) -> bool:
    with connection:
        connection.execute("DELETE FROM sessions WHERE id = ?", (id,))
    return connection.changes() == 1
