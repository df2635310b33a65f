"""Local users in PostgreSQL."""

from __future__ import annotations

from datetime import datetime

from oraculo.adapters.stores.instants import from_micros, to_micros
from oraculo.adapters.stores.postgres.connections import Connection, Pool, fetch
from oraculo.adapters.stores.user_rows import USER_COLUMNS, put_sql, user_of, user_row
from oraculo.ports.users import LocalUser


async def _user(connection: Connection, name: str) -> LocalUser | None:
    rows = await fetch(connection, f"SELECT {USER_COLUMNS} FROM users WHERE name = %s", (name,))
    return user_of(rows[0]) if rows else None


async def _users(connection: Connection) -> list[LocalUser]:
    return [user_of(row) for row in await fetch(connection, f"SELECT {USER_COLUMNS} FROM users ORDER BY name")]


async def _open_sessions(connection: Connection, now: datetime, limit: int) -> list[tuple[str, datetime]]:
    sql = "SELECT key_id, expires_at FROM sessions WHERE expires_at > %s ORDER BY expires_at DESC LIMIT %s"
    return [(owner, from_micros(until)) for owner, until in await fetch(connection, sql, (to_micros(now), limit))]


async def _put(connection: Connection, user: LocalUser, ends_sessions_of: str | None) -> None:
    await connection.execute(put_sql("%s").encode(), user_row(user))
    await connection.execute("DELETE FROM sessions WHERE key_id = %s", (ends_sessions_of,))


async def _remove(connection: Connection, name: str, ends_sessions_of: str) -> bool:
    await connection.execute("DELETE FROM sessions WHERE key_id = %s", (ends_sessions_of,))
    return (await connection.execute("DELETE FROM users WHERE name = %s", (name,))).rowcount == 1


class PostgresUsers:
    """The part of the store that keeps users."""

    _pool: Pool

    async def user(self, name: str) -> LocalUser | None:
        return await self._pool.read(lambda c: _user(c, name))

    async def users(self) -> list[LocalUser]:
        return await self._pool.read(_users)

    async def open_sessions(self, now: datetime, limit: int) -> list[tuple[str, datetime]]:
        return await self._pool.read(lambda c: _open_sessions(c, now, limit))

    async def put_user(self, user: LocalUser, *, ends_sessions_of: str | None = None) -> None:
        await self._pool.write(lambda c: _put(c, user, ends_sessions_of))

    async def remove_user(self, name: str, ends_sessions_of: str) -> bool:
        return await self._pool.write(lambda c: _remove(c, name, ends_sessions_of))
