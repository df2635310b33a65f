"""Cursors of projections in PostgreSQL. One member at a time moves a cursor, as long as it lives."""

from __future__ import annotations

from oraculo.adapters.stores import shared_sql
from oraculo.adapters.stores.postgres.connections import Connection, fetch
from oraculo.errors import FencedError
from oraculo.ports.cursors import Lag
from oraculo.ports.membership import Member

_ALIVE = "EXISTS (SELECT 1 FROM members WHERE members.epoch = cursors.epoch AND members.lease_until > oraculo_now())"


async def cursors(connection: Connection) -> dict[str, int]:
    rows = await fetch(connection, "SELECT name, position FROM cursors ORDER BY name")
    return {name: position for name, position in rows}


async def look(connection: Connection, name: str, me: Member | None) -> tuple[int | None, bool]:
    """Return the position when this member has the cursor; else None, and whether the cursor is free."""
    sql = f"SELECT position, epoch IS NOT DISTINCT FROM %s::bigint, {_ALIVE} FROM cursors WHERE name = %s"
    rows = await fetch(connection, sql, (_epoch(me), name))
    if not rows:
        return None, True
    ((position, ours, alive),) = rows
    return (position, True) if ours else (None, not alive)


async def claim(connection: Connection, name: str, me: Member | None) -> int | None:
    sql = f"""
    INSERT INTO cursors (name, position, epoch) VALUES (%s, 0, %s)
    ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch
    WHERE cursors.epoch IS NOT DISTINCT FROM excluded.epoch OR NOT {_ALIVE}
    RETURNING position"""
    rows = await fetch(connection, sql, (name, _epoch(me)))
    return int(rows[0][0]) if rows else None


async def move(connection: Connection, name: str, to: int, me: Member | None) -> None:
    sql = """
    UPDATE cursors SET position = greatest(position, %s) WHERE name = %s AND epoch IS NOT DISTINCT FROM %s::bigint"""
    if (await connection.execute(sql, (to, name, _epoch(me)))).rowcount != 1:
        raise FencedError(f"another process moves the cursor {name!r} now")


async def lag(connection: Connection, after: int, tipo: str | None = None) -> Lag:
    values = (after,) if tipo is None else (after, tipo)
    (row,) = await fetch(connection, shared_sql.lag_query("%s", tipo), values)
    return shared_sql.lag(after, row)


def _epoch(me: Member | None) -> int | None:
    return None if me is None else me.epoch
