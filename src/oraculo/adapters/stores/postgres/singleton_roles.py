"""Roles that one member at a time has, as long as it lives; it leaves a note for the next one."""

from __future__ import annotations

from oraculo.adapters.stores.postgres.connections import Connection, fetch
from oraculo.errors import FencedError
from oraculo.ports.membership import Member

_ALIVE = "EXISTS (SELECT 1 FROM members WHERE members.epoch = duties.epoch AND members.lease_until > oraculo_now())"


async def look(connection: Connection, name: str, me: Member) -> tuple[str | None, bool]:
    """Return the note when this member has the role; else None, and whether the role is free."""
    rows = await fetch(connection, f"SELECT epoch, note, {_ALIVE} FROM duties WHERE name = %s", (name,))
    if not rows:
        return None, True
    ((epoch, note, alive),) = rows
    return (note, True) if epoch == me.epoch else (None, not alive)


async def claim(connection: Connection, name: str, me: Member) -> str | None:
    sql = f"""
    INSERT INTO duties (name, epoch) VALUES (%s, %s)
    ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch WHERE NOT {_ALIVE} RETURNING note"""
    rows = await fetch(connection, sql, (name, me.epoch))
    return str(rows[0][0]) if rows else None


async def note(connection: Connection, name: str, text: str, me: Member) -> None:
    sql = "UPDATE duties SET note = %s WHERE name = %s AND epoch = %s"
    if (await connection.execute(sql, (text, name, me.epoch))).rowcount != 1:
        raise FencedError(f"{name!r} is the duty of another process now")
