"""Keys of the API and their sessions in PostgreSQL."""

from __future__ import annotations

from datetime import datetime

from oraculo.adapters.stores.instants import to_micros
from oraculo.adapters.stores.key_rows import KEY_COLUMNS, SESSION_COLUMNS, key_of, key_row, session_of, session_row
from oraculo.adapters.stores.postgres.connections import Connection, fetch
from oraculo.ports.api_keys import ApiKey, KeySession


async def add_api_key(connection: Connection, key: ApiKey) -> None:
    row = key_row(key)
    marks = ", ".join(["%s"] * len(row))
    await connection.execute(f"INSERT INTO api_keys ({KEY_COLUMNS}) VALUES ({marks})".encode(), row)


async def api_key(connection: Connection, id: str) -> ApiKey | None:
    rows = await fetch(connection, f"SELECT {KEY_COLUMNS} FROM api_keys WHERE id = %s", (id,))
    return key_of(rows[0]) if rows else None


async def api_keys(connection: Connection) -> list[ApiKey]:
    rows = await fetch(connection, f"SELECT {KEY_COLUMNS} FROM api_keys ORDER BY created_at DESC, id")
    return [key_of(row) for row in rows]


async def rotate_api_key(
    connection: Connection, id: str, digest: str, old_until: datetime, expires_at: datetime | None
) -> bool:
    done = await connection.execute(
        "UPDATE api_keys SET old_digest = digest, digest = %s, old_until = %s, expires_at = %s"
        " WHERE id = %s AND revoked_at IS NULL",
        (digest, to_micros(old_until), None if expires_at is None else to_micros(expires_at), id),
    )
    return done.rowcount == 1


async def revoke_api_key(connection: Connection, id: str, at: datetime) -> bool:
    await connection.execute("DELETE FROM sessions WHERE key_id = %s", (id,))
    done = await connection.execute(
        "UPDATE api_keys SET revoked_at = %s WHERE id = %s AND revoked_at IS NULL", (to_micros(at), id)
    )
    return done.rowcount == 1


async def open_runs_of(connection: Connection, key_id: str) -> int:
    sql = "SELECT count(*) FROM runs WHERE owner = %s AND owner IS NOT NULL AND closed_at IS NULL"
    return int((await fetch(connection, sql, (key_id,)))[0][0])


async def use_api_key(connection: Connection, id: str, at: datetime) -> None:
    await connection.execute("UPDATE api_keys SET used_at = %s WHERE id = %s", (to_micros(at), id))


async def add_session(connection: Connection, session: KeySession, now: datetime) -> None:
    await connection.execute("DELETE FROM sessions WHERE expires_at <= %s", (to_micros(now),))
    await connection.execute(
        f"INSERT INTO sessions ({SESSION_COLUMNS}) VALUES (%s, %s, %s, %s)".encode(), session_row(session)
    )


async def session(connection: Connection, id: str) -> KeySession | None:
    rows = await fetch(connection, f"SELECT {SESSION_COLUMNS} FROM sessions WHERE id = %s", (id,))
    return session_of(rows[0]) if rows else None


async def end_session(connection: Connection, id: str) -> bool:
    return (await connection.execute("DELETE FROM sessions WHERE id = %s", (id,))).rowcount == 1
