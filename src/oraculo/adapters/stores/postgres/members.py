"""Members of a shared database: leases by its clock, which member may be sending what, and taking over."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from oraculo.adapters.stores.instants import from_micros
from oraculo.adapters.stores.postgres.arrays import Numbers
from oraculo.adapters.stores.postgres.connections import Connection, fetch, taken_over
from oraculo.adapters.stores.postgres.locks import MEMBERS_LOCK
from oraculo.adapters.stores.postgres.transaction import FENCE_QUERY
from oraculo.errors import StoreError
from oraculo.ports.membership import Member, Progress

MAX_MEMBERS = 1023
_MICROSECOND = timedelta(microseconds=1)
_MEMBER = "name, slot, epoch, joined_at, lease_until"


async def join(connection: Connection, name: str, lease: timedelta) -> Member:
    """Join in the smallest free slot. The slot of a dead member is free once another member has taken over from it."""
    await connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", MEMBERS_LOCK)
    rows = await fetch(
        connection,
        f"""
        INSERT INTO members (slot, epoch, name, joined_at, lease_until, names_tenant)
        SELECT slot, nextval('epochs'), %s, now, now + %s, true
        FROM generate_series(1, {MAX_MEMBERS}) AS slot, oraculo_now() AS now
        WHERE slot NOT IN (SELECT slot FROM members) ORDER BY slot LIMIT 1
        RETURNING {_MEMBER}""",
        (name, lease // _MICROSECOND),
    )
    if not rows:
        raise StoreError(f"the database has {MAX_MEMBERS} members already")
    return _member(rows[0])


async def renew(connection: Connection, member: Member, lease: timedelta) -> Member | None:
    sql = f"""
    UPDATE members SET lease_until = oraculo_now() + %s WHERE slot = %s AND epoch = %s RETURNING {_MEMBER}"""
    rows = await fetch(connection, sql, (lease // _MICROSECOND, member.slot, member.epoch))
    return _member(rows[0]) if rows else None


async def leave(connection: Connection, member: Member) -> None:
    """Remove the member; one that owes something stays with an ended lease, so that its runs are taken over."""
    me = (member.slot, member.epoch)
    if not await fetch(connection, "SELECT 1 FROM members WHERE slot = %s AND epoch = %s FOR UPDATE", me):
        return
    owing = "SELECT 1 FROM runs WHERE owes > 0 AND %s::smallint = ANY (hands) LIMIT 1"
    if await fetch(connection, owing, (member.slot,)):
        await connection.execute("UPDATE members SET lease_until = oraculo_now() WHERE slot = %s AND epoch = %s", me)
    else:
        await connection.execute("DELETE FROM members WHERE slot = %s AND epoch = %s", me)


async def members(connection: Connection) -> list[Member]:
    return [_member(row) for row in await fetch(connection, f"SELECT {_MEMBER} FROM members ORDER BY slot")]


async def any_expired(connection: Connection, me: Member) -> bool:
    """Return whether the lease of another member has run out; without a lock, since it is called often."""
    sql = """
    SELECT EXISTS (SELECT 1 FROM members WHERE slot = %s AND epoch = %s),
           EXISTS (SELECT 1 FROM members WHERE slot <> %s AND lease_until < oraculo_now())"""
    ((joined, dead),) = await fetch(connection, sql, (me.slot, me.epoch, me.slot))
    if not joined:
        raise taken_over(me.name)
    return bool(dead)


async def rescue(connection: Connection, me: Member) -> tuple[list[Member], list[int]]:
    """Take over from members whose lease has run out. A member with a transaction under way has its row locked, and is
    left for the next time. Runs are locked in their order before they are changed, as in every transaction."""
    if not await fetch(connection, FENCE_QUERY, (me.slot, me.epoch)):
        raise taken_over(me.name)
    rows = await fetch(
        connection,
        f"SELECT {_MEMBER} FROM members WHERE slot <> %s AND lease_until < oraculo_now()"
        " ORDER BY slot FOR UPDATE SKIP LOCKED",
        (me.slot,),
    )
    dead = [_member(row) for row in rows]
    if not dead:
        return [], []
    slots = [one.slot for one in dead]
    await connection.execute("DELETE FROM members WHERE slot = ANY (%s::smallint[])", (slots,))
    owing = "SELECT run FROM runs WHERE owes > 0 AND hands && %s::smallint[] ORDER BY run FOR UPDATE"
    runs = [run for (run,) in await fetch(connection, owing, (slots,))]
    others = "SELECT hand FROM unnest(hands) AS hand WHERE hand <> ALL (%s::smallint[] || %s::smallint)"
    await connection.execute(
        f"UPDATE runs SET hands = ARRAY({others}) || %s::smallint WHERE run = ANY (%s)".encode(),
        (slots, me.slot, me.slot, Numbers(runs)),
    )
    return dead, runs


async def overdue(connection: Connection, grace: timedelta, limit: int) -> list[int]:
    sql = "SELECT run FROM runs WHERE wake_at < (SELECT oraculo_now()) - %s ORDER BY wake_at LIMIT %s"
    return [run for (run,) in await fetch(connection, sql, (grace // _MICROSECOND, limit))]


async def owing(connection: Connection, age: timedelta, limit: int, unlimited: bool) -> list[int]:
    sql = """
    SELECT run FROM runs WHERE owes > 0 AND owed_at < (SELECT oraculo_now()) - %s
    AND (NOT %s OR closed_at IS NOT NULL OR limited IS DISTINCT FROM 1) ORDER BY owed_at LIMIT %s"""
    return [run for (run,) in await fetch(connection, sql, (age // _MICROSECOND, unlimited, limit))]


async def open_runs(connection: Connection) -> int:
    ((count,),) = await fetch(connection, "SELECT count(*) FROM runs WHERE closed_at IS NULL")
    return int(count)


async def progress(connection: Connection, runs: Sequence[int]) -> dict[int, Progress]:
    sql = "SELECT run, version, closed_at IS NOT NULL FROM runs WHERE run = ANY (%s)"
    return {run: Progress(version, closed) for run, version, closed in await fetch(connection, sql, (Numbers(runs),))}


def _member(row: tuple[Any, ...]) -> Member:
    name, slot, epoch, joined_at, lease_until = row
    return Member(name, slot, epoch, from_micros(joined_at), from_micros(lease_until))
