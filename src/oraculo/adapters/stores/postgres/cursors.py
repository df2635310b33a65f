"""How far projections have read the journal. A cursor is moved by one member at a time, as long as that lives."""

from __future__ import annotations

from oraculo.adapters.stores.instants import from_micros_or_none
from oraculo.adapters.stores.postgres.connections import Connection
from oraculo.adapters.stores.postgres.read import fetch
from oraculo.errors import FencedError
from oraculo.ports.sharing import Member
from oraculo.ports.store import Lag

_ALIVE = "EXISTS (SELECT 1 FROM members WHERE members.epoch = cursors.epoch AND members.lease_until > oraculo_now())"


async def cursors(connection: Connection) -> dict[str, int]:
    rows = await fetch(connection, "SELECT name, position FROM cursors ORDER BY name")
    return {name: position for name, position in rows}


async def look(connection: Connection, name: str, me: Member | None) -> tuple[int | None, bool]:
    """Its position when it is ours; else whether it can be had."""
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


async def lag(connection: Connection, after: int) -> Lag:
    first = "SELECT at FROM journal WHERE position > %s ORDER BY position LIMIT 1"
    sql = f"SELECT (SELECT max(position) FROM journal), ({first})"
    ((last, at),) = await fetch(connection, sql, (after,))
    return Lag(max(0, (last or 0) - after), from_micros_or_none(at))


def _epoch(me: Member | None) -> int | None:
    return None if me is None else me.epoch
