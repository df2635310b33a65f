"""Local users in SQLite."""

from __future__ import annotations

from datetime import datetime

import apsw

from oraculo.adapters.stores.instants import from_micros, to_micros
from oraculo.adapters.stores.sqlite.connections import Connections, fetch
from oraculo.adapters.stores.user_rows import USER_COLUMNS, put_sql, user_of, user_row
from oraculo.ports.users import LocalUser


def _user(connection: apsw.Connection, name: str) -> LocalUser | None:
    rows = fetch(connection, f"SELECT {USER_COLUMNS} FROM users WHERE name = ?", (name,))
    return user_of(rows[0]) if rows else None


def _users(connection: apsw.Connection) -> list[LocalUser]:
    return [user_of(row) for row in fetch(connection, f"SELECT {USER_COLUMNS} FROM users ORDER BY name")]


def _open_sessions(connection: apsw.Connection, now: datetime, limit: int) -> list[tuple[str, datetime]]:
    sql = "SELECT key_id, expires_at FROM sessions WHERE expires_at > ? ORDER BY expires_at DESC LIMIT ?"
    return [(owner, from_micros(until)) for owner, until in fetch(connection, sql, (to_micros(now), limit))]


def _put(connection: apsw.Connection, user: LocalUser, ends_sessions_of: str | None) -> None:
    with connection:
        connection.execute(put_sql("?"), user_row(user))
        connection.execute("DELETE FROM sessions WHERE key_id = ?", (ends_sessions_of,))


def _remove(connection: apsw.Connection, name: str, ends_sessions_of: str) -> bool:
    with connection:
        connection.execute("DELETE FROM sessions WHERE key_id = ?", (ends_sessions_of,))
        connection.execute("DELETE FROM users WHERE name = ?", (name,))
    return connection.changes() == 1


class SqliteUsers:
    """The part of the store that keeps users."""

    connections: Connections

    async def user(self, name: str) -> LocalUser | None:
        return await self.connections.read(lambda c: _user(c, name))

    async def users(self) -> list[LocalUser]:
        return await self.connections.read(_users)

    async def open_sessions(self, now: datetime, limit: int) -> list[tuple[str, datetime]]:
        return await self.connections.read(lambda c: _open_sessions(c, now, limit))

    async def put_user(self, user: LocalUser, *, ends_sessions_of: str | None = None) -> None:
        await self.connections.write(lambda c: _put(c, user, ends_sessions_of))

    async def remove_user(self, name: str, ends_sessions_of: str) -> bool:
        return await self.connections.write(lambda c: _remove(c, name, ends_sessions_of))
