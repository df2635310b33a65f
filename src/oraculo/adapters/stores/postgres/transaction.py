"""The two halves of a transaction, each one exchange with the server: lock and learn, then write and commit.

Whoever begins holds the writer's connection until he ends. What is locked, and in which order: the own membership
(nobody may take over meanwhile), names and keys, then runs. So members never wait for each other in a circle.
"""

from __future__ import annotations

import asyncio
from typing import Any

from psycopg import AsyncCursor

from oraculo.adapters.stores.instants import from_micros
from oraculo.adapters.stores.postgres import locks
from oraculo.adapters.stores.postgres.arrays import Numbers, Texts, storable
from oraculo.adapters.stores.postgres.connections import WRITER, Connection, Line, Server, fenced
from oraculo.adapters.stores.postgres.read import recorded
from oraculo.adapters.stores.postgres.write import Written
from oraculo.ports.sharing import Member
from oraculo.ports.store import Asked, Found, Key

FENCE = "SELECT 1 FROM members WHERE slot = %s AND epoch = %s FOR KEY SHARE"
_LOCK = "SELECT pg_advisory_xact_lock(x) FROM unnest(%s) AS x"
_KEYS = "SELECT key, fingerprint, run FROM idempotency_keys WHERE key = ANY (%s)"
_RUNS = """
SELECT run, correlation_id, version FROM runs WHERE run = ANY (ARRAY(
  SELECT unnest(%s) UNION SELECT run FROM runs WHERE correlation_id = ANY (%s)
  UNION SELECT run FROM idempotency_keys WHERE key = ANY (%s)))
ORDER BY run FOR UPDATE"""
_NEWS = """
SELECT j.run, j.first, j.at, j.format, j.events, j.position
FROM (
  SELECT run, max(version) AS version FROM (
    SELECT * FROM unnest(%s, %s) AS known (run, version)
    UNION ALL SELECT run, 0 FROM runs WHERE correlation_id = ANY (%s)
    UNION ALL SELECT run, 0 FROM idempotency_keys WHERE key = ANY (%s)) AS any_of_them
  GROUP BY run) AS asked
JOIN journal AS j ON j.run = asked.run AND j.first > asked.version
ORDER BY j.run, j.first"""
_CLOCK = "SELECT oraculo_now()"

Cursor = AsyncCursor[tuple[Any, ...]]


class Writer:
    def __init__(self, server: Server) -> None:
        self._line = Line(server, WRITER, prepare=0)
        self._turn = asyncio.Lock()
        self._beginner: asyncio.Task[Any] | None = None  # who holds the turn, between the two halves

    async def close(self) -> None:
        await self._line.drop()

    async def begin(self, asked: Asked, member: Member | None) -> Found:
        await self._turn.acquire()
        try:
            async with self._line.exchange() as connection:
                found = await _begin(connection, asked, member)
        except BaseException:
            self._turn.release()
            raise
        self._beginner = asyncio.current_task()
        return found

    async def append(self, written: Written, member: Member | None) -> None:
        if not self._begun():
            await self.begin(written.asked(), member)
        try:
            async with self._line.exchange() as connection, connection.pipeline():
                for sql, values in written.statements(member.slot if member else 0):
                    await connection.execute(sql.encode(), values)
                await connection.execute("COMMIT")
        finally:
            self._end()

    async def abandon(self) -> None:
        """Nothing was written, so that committing it undoes it; psycopg would forget its statements at a ROLLBACK."""
        if self._begun():
            try:
                async with self._line.exchange() as connection:
                    await connection.execute("COMMIT")
            finally:
                self._end()

    def _begun(self) -> bool:
        """By the one who asks. A task that has ended began for somebody who waited for it."""
        return self._beginner is not None and (self._beginner is asyncio.current_task() or self._beginner.done())

    def _end(self) -> None:
        self._beginner = None
        self._turn.release()


async def _begin(connection: Connection, asked: Asked, member: Member | None) -> Found:
    known = {run: version for run, version in sorted(asked.known.items())}
    names = [name for name in asked.names if storable(name)]
    keys = [key for key in asked.keys if storable(key)]
    fence = used = runs = news = None
    async with connection.pipeline():
        await connection.execute("BEGIN")
        if member is not None:
            fence = await connection.execute(FENCE, (member.slot, member.epoch))
        if names or keys:
            await connection.execute(_LOCK, (Numbers(locks.numbers(names, keys)),))
        if keys:
            used = await connection.execute(_KEYS, (Texts(keys),))
        if known or names or keys:
            runs = await connection.execute(_RUNS, (Numbers(known), Texts(names), Texts(keys)))
            values = (Numbers(known), Numbers(known.values()), Texts(names), Texts(keys))
            news = await connection.execute(_NEWS, values)
        clock = await connection.execute(_CLOCK)
    if member is not None and not await _rows(fence):
        raise fenced(member.name)
    ((now,),) = await _rows(clock)
    found = Found(from_micros(now), keys={row[0]: Key(*row) for row in await _rows(used)})
    there: set[int] = set()
    wanted = set(names)
    for run, name, _ in await _rows(runs):
        there.add(run)
        if name in wanted:
            found.runs[name] = run
    for row in await _rows(news):
        found.news.setdefault(row[0], []).append(recorded(row))
    found.gone = [run for run in {*known, *(key.run for key in found.keys.values())} if run not in there]
    return found


async def _rows(cursor: Cursor | None) -> list[tuple[Any, ...]]:
    return [] if cursor is None else await cursor.fetchall()
