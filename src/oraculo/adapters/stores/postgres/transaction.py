"""The two halves of a transaction, each one exchange with the server: lock and read, then write and commit.

A caller that begins holds the writer's connection until it ends the transaction. What is locked, and in which order:
the own membership (so that no other member takes over meanwhile), names and keys, then runs. So members never wait for
each other in a circle.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from oraculo.adapters.sealing.codec import Sealing
from oraculo.adapters.stores.instants import from_micros
from oraculo.adapters.stores.postgres.arrays import Numbers, Texts, storable
from oraculo.adapters.stores.postgres.connections import (
    WRITER_SETTINGS,
    ReconnectingConnection,
    Server,
    is_connection_loss,
    taken_over,
)
from oraculo.adapters.stores.postgres.locks import lock_numbers
from oraculo.adapters.stores.postgres.pipeline import Pipeline, Rows, Statement
from oraculo.adapters.stores.postgres.write import BatchRows
from oraculo.adapters.stores.sealed_rows import UNSEALED, by_run, recorded
from oraculo.adapters.stores.unique_key_rows import NEWEST, READ, holder_of
from oraculo.errors import StoreUnavailableError
from oraculo.ports.data_keys import UnknownDataKeyError
from oraculo.ports.journal import Key, LockedSnapshot, LockRequest
from oraculo.ports.membership import Member

FENCE_QUERY = "SELECT 1 FROM members WHERE slot = %s AND epoch = %s FOR KEY SHARE"
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
  GROUP BY run) AS request
JOIN journal AS j ON j.run = request.run AND j.first > request.version
ORDER BY j.run, j.first"""
_HOLDERS = f"{READ} WHERE run = ANY (ARRAY(SELECT ({NEWEST}) FROM unnest(%s) AS k (value)))"
_CLOCK = "SELECT oraculo_now()"


class Writer:
    """The connection that writes orchestrations: one transaction at a time, in the order of `begin`."""

    def __init__(
        self, server: Server, sealing: Sealing = UNSEALED, reload_keys: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self._sealing = sealing
        self._reload_keys = reload_keys
        self._own = ReconnectingConnection(server, WRITER_SETTINGS)
        self._pipeline: Pipeline | None = None
        self._turn = asyncio.Lock()
        self._beginner: asyncio.Task[Any] | None = None  # the task that began the open transaction

    async def close(self) -> None:
        await self._own.drop()

    async def begin(self, request: LockRequest, member: Member | None) -> LockedSnapshot:
        """Wait for the turn, begin a transaction, lock and read. Since nothing is written yet, it is done once more on
        a new connection when the present one turns out to be dead."""
        await self._turn.acquire()
        used_before = self._own.connected
        try:
            try:
                snapshot = await self._lock(request, member)
            except StoreUnavailableError as error:
                if not used_before or not is_connection_loss(error):
                    raise
                snapshot = await self._lock(request, member)
        except BaseException:
            self._turn.release()
            raise
        self._beginner = asyncio.current_task()
        return snapshot

    async def _lock(self, request: LockRequest, member: Member | None) -> LockedSnapshot:
        statements = _statements(request, member)
        async with self._exchange() as pipeline:
            found = dict(zip(statements, await pipeline.run(list(statements.values())), strict=True))
            if member is not None and not found["fence"]:
                raise taken_over(member.name)
            try:
                return _snapshot(request, found, self._sealing)
            except UnknownDataKeyError:
                if self._reload_keys is None:
                    raise
                await self._reload_keys()
                return _snapshot(request, found, self._sealing)

    async def append(self, rows: BatchRows, member: Member | None) -> None:
        """Write and commit; in the transaction that the caller began, or in one of its own."""
        if not self._begun_by_caller():
            await self.begin(rows.lock_request(), member)
        try:
            async with self._exchange() as pipeline:
                if pipeline.connection.info.transaction_status is not TransactionStatus.INTRANS:
                    raise StoreUnavailableError("the connection broke between the two halves of a transaction")
                await pipeline.run([*rows.statements(member.slot if member else 0), ("COMMIT", ())])
        finally:
            self._end()

    async def abandon(self) -> None:
        """Roll back the transaction that the caller began, if there is one."""
        if self._begun_by_caller():
            try:
                async with self._exchange() as pipeline:
                    await pipeline.run([("ROLLBACK", ())])
            finally:
                self._end()

    @asynccontextmanager
    async def _exchange(self) -> AsyncIterator[Pipeline]:
        async with self._own.exchange() as connection:
            if self._pipeline is None or self._pipeline.connection is not connection:
                self._pipeline = Pipeline(connection)
            try:
                yield self._pipeline
            except psycopg.Error:
                await self._own.drop()
                raise

    def _begun_by_caller(self) -> bool:
        """True if the open transaction is the caller's: this task began it, or a task that has ended did, as when a
        call is wrapped in a task of its own. False while the transaction of another task is open, or none is; then the
        caller has to begin one, and waits for its turn."""
        return self._beginner is not None and (self._beginner is asyncio.current_task() or self._beginner.done())

    def _end(self) -> None:
        self._beginner = None
        self._turn.release()


def _statements(request: LockRequest, member: Member | None) -> dict[str, Statement]:
    """The statements that lock and read what is requested, by what their rows are."""
    known = dict(sorted(request.known.items()))
    names = [name for name in request.names if storable(name)]
    keys = [key for key in request.keys if storable(key)]
    runs, versions, named, keyed = Numbers(known), Numbers(known.values()), Texts(names), Texts(keys)
    wanted: dict[str, Statement] = {"begin": ("BEGIN", ())}
    if member is not None:
        wanted["fence"] = (FENCE_QUERY, (member.slot, member.epoch))
    unique = request.unique
    if names or keys or unique:
        wanted["lock"] = (_LOCK, (Numbers(lock_numbers(names, keys, unique)),))
    if unique:
        wanted["holders"] = (_HOLDERS, (Texts(unique),))
    if keys:
        wanted["keys"] = (_KEYS, (keyed,))
    if known or names or keys:
        wanted["runs"] = (_RUNS, (runs, named, keyed))
        wanted["news"] = (_NEWS, (runs, versions, named, keyed))
    wanted["clock"] = (_CLOCK, ())
    return wanted


def _snapshot(request: LockRequest, rows: dict[str, Rows], sealing: Sealing) -> LockedSnapshot:
    """Put together what the statements found."""
    ((clock,),) = rows["clock"]
    snapshot = LockedSnapshot(from_micros(clock), keys={row[0]: Key(*row) for row in rows.get("keys", ())})
    snapshot.holders = {one.key: one for one in map(holder_of, rows.get("holders", ()))}
    names = set(request.names)
    there = {run: name for run, name in rows.get("runs", ())}
    snapshot.runs = {name: run for run, name in there.items() if name in names}
    snapshot.news = by_run(recorded(row, sealing) for row in rows.get("news", ()))
    wanted = {*request.known, *(key.run for key in snapshot.keys.values())}
    snapshot.gone = [run for run in wanted if run not in there]
    return snapshot
