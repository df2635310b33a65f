"""The two halves of a transaction, each one exchange with the server: lock and learn, then write and commit.

Whoever begins holds the writer's connection until he ends. What is locked, and in which order: the own membership
(nobody may take over meanwhile), names and keys, then runs. So members never wait for each other in a circle.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from oraculo.adapters.stores.instants import from_micros
from oraculo.adapters.stores.postgres import locks
from oraculo.adapters.stores.postgres.arrays import Numbers, Texts, storable
from oraculo.adapters.stores.postgres.connections import WRITER, Line, Server, fenced, lost
from oraculo.adapters.stores.postgres.pipeline import Pipeline, Statement
from oraculo.adapters.stores.postgres.read import recorded
from oraculo.adapters.stores.postgres.write import Written
from oraculo.errors import StoreUnavailableError
from oraculo.ports.sharing import Member
from oraculo.ports.store import Asked, Found, Key

FENCE = "SELECT 1 FROM members WHERE slot = %s AND epoch = %s FOR KEY SHARE"
_LOCK = "SELECT pg_advisory_xact_lock(x) FROM unnest(%s) AS x"
_KEYS = "SELECT key, fingerprint, run FROM idempotency_keys WHERE key = ANY (%s)"
_RUNS = """
SELECT run, correlation_id FROM runs WHERE run = ANY (ARRAY(
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


class Writer:
    def __init__(self, server: Server) -> None:
        self._line = Line(server, WRITER)
        self._pipeline: Pipeline | None = None
        self._turn = asyncio.Lock()
        self._beginner: asyncio.Task[Any] | None = None  # who holds the turn, between the two halves

    async def close(self) -> None:
        await self._line.drop()

    async def begin(self, asked: Asked, member: Member | None) -> Found:
        """Nothing is written yet: once more on a new connection when the one at hand turns out to be dead."""
        await self._turn.acquire()
        used_before = self._line.connected
        try:
            try:
                found = await self._first_half(asked, member)
            except StoreUnavailableError as error:
                if not used_before or not lost(error):
                    raise
                found = await self._first_half(asked, member)
        except BaseException:
            self._turn.release()
            raise
        self._beginner = asyncio.current_task()
        return found

    async def _first_half(self, asked: Asked, member: Member | None) -> Found:
        async with self._exchange() as pipeline:
            return await _begin(pipeline, asked, member)

    async def append(self, written: Written, member: Member | None) -> None:
        if not self._begun():
            await self.begin(written.asked(), member)
        try:
            async with self._exchange() as pipeline:
                if pipeline.connection.info.transaction_status is not TransactionStatus.INTRANS:
                    raise StoreUnavailableError("the connection broke between the two halves of a transaction")
                await pipeline.run([*written.statements(member.slot if member else 0), ("COMMIT", ())])
        finally:
            self._end()

    async def abandon(self) -> None:
        if self._begun():
            try:
                async with self._exchange() as pipeline:
                    await pipeline.run([("ROLLBACK", ())])
            finally:
                self._end()

    @asynccontextmanager
    async def _exchange(self) -> AsyncIterator[Pipeline]:
        async with self._line.exchange() as connection:
            if self._pipeline is None or self._pipeline.connection is not connection:
                self._pipeline = Pipeline(connection)
            try:
                yield self._pipeline
            except psycopg.Error:
                await self._line.drop()
                raise

    def _begun(self) -> bool:
        """By the one who asks. A task that has ended began for somebody who waited for it."""
        return self._beginner is not None and (self._beginner is asyncio.current_task() or self._beginner.done())

    def _end(self) -> None:
        self._beginner = None
        self._turn.release()


async def _begin(pipeline: Pipeline, asked: Asked, member: Member | None) -> Found:
    known = dict(sorted(asked.known.items()))
    names = [name for name in asked.names if storable(name)]
    keys = [key for key in asked.keys if storable(key)]
    runs, versions, named, keyed = Numbers(known), Numbers(known.values()), Texts(names), Texts(keys)
    wanted: dict[str, Statement] = {"begin": ("BEGIN", ())}
    if member is not None:
        wanted["fence"] = (FENCE, (member.slot, member.epoch))
    if names or keys:
        wanted["lock"] = (_LOCK, (Numbers(locks.numbers(names, keys)),))
    if keys:
        wanted["keys"] = (_KEYS, (keyed,))
    if known or names or keys:
        wanted["runs"] = (_RUNS, (runs, named, keyed))
        wanted["news"] = (_NEWS, (runs, versions, named, keyed))
    wanted["clock"] = (_CLOCK, ())
    rows = dict(zip(wanted, await pipeline.run(list(wanted.values())), strict=True))
    if member is not None and not rows["fence"]:
        raise fenced(member.name)
    found = Found(from_micros(rows["clock"][0][0]), keys={row[0]: Key(*row) for row in rows.get("keys", [])})
    there = {run: name for run, name in rows.get("runs", [])}
    found.runs = {name: run for run, name in there.items() if name in set(names)}
    for row in rows.get("news", []):
        found.news.setdefault(row[0], []).append(recorded(row))
    found.gone = [run for run in {*known, *(key.run for key in found.keys.values())} if run not in there]
    return found
