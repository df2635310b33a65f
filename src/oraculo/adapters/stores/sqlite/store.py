"""SQLite store: WAL, synchronous=FULL, one writer thread, group commit.

Speed comes from shape. A batch is a handful of statements, whatever its size: the rows travel as one JSON text and
`json_each` unpacks them inside SQLite, so the interpreter lock is released for the whole statement and the commit runs
beside the event loop instead of in its way. Reads use connections of their own and never wait for the writer.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Self

from oraculo.adapters.sealing.codec import Sealing
from oraculo.adapters.stores.numbered import SchemaState, schema_state
from oraculo.adapters.stores.sealed_rows import UNSEALED, refresh, tenants_of
from oraculo.adapters.stores.sqlite import (
    api_keys,
    catalogue,
    cursors,
    dead_letters,
    journal,
    parameter_schemas,
    schedules,
    statistics,
    system_events,
    task_types,
    token_keys,
    write,
)
from oraculo.adapters.stores.sqlite.connections import MEMORY, Connections, fetch
from oraculo.adapters.stores.sqlite.data_keys import SqliteDataKeys
from oraculo.adapters.stores.sqlite.destinations import SqliteDestinations
from oraculo.adapters.stores.sqlite.ended_runs import SqliteEndedRuns
from oraculo.adapters.stores.sqlite.locks import lock
from oraculo.adapters.stores.sqlite.projected import SqliteProjected
from oraculo.adapters.stores.sqlite.tenants import SqliteTenants
from oraculo.adapters.stores.sqlite.users import SqliteUsers
from oraculo.adapters.stores.sqlite.workers import SqliteWorkers
from oraculo.core.tenants import tenant_of
from oraculo.errors import StoreUnavailableError
from oraculo.ports.api_keys import ApiKey, KeySession
from oraculo.ports.catalogue import Query, Summary
from oraculo.ports.cursors import Lag
from oraculo.ports.dead_letters import DeadLetter
from oraculo.ports.journal import Batch, Key, Live, LockedSnapshot, LockRequest, Recorded
from oraculo.ports.schedules import DueSchedules, StoredSchedule
from oraculo.ports.statistics import Bucket, FailingQueue
from oraculo.ports.system_events import SystemEvent
from oraculo.ports.token_keys import StoredTokenKey
from oraculo.ports.unique_keys import KeyHolder


class SqliteStore(SqliteTenants, SqliteUsers, SqliteDestinations, SqliteEndedRuns, SqliteProjected, SqliteDataKeys):
    """`SqliteStore("oraculo.db")`; `:memory:` lives as long as the object. `threads=False` runs everything in the
    caller's thread, which is what a deterministic simulation wants. `exclusive=True` is for a process that runs an
    engine on it: a second one is refused while the first lives, so that what an engine has in memory stays true.
    `may_migrate=False` refuses a database whose schema is not up to date instead of changing it. `sealing` seals
    payloads."""

    def __init__(
        self,
        path: str,
        *,
        threads: bool = True,
        exclusive: bool = False,
        may_migrate: bool = True,
        sealing: Sealing = UNSEALED,
    ) -> None:
        self.sealing = sealing
        self.path = path
        self.connections = Connections(path, threads=threads, may_migrate=may_migrate)
        self.worker_leases = SqliteWorkers(self.connections)
        self._exclusive = exclusive and path != MEMORY
        self._lock: int | None = None

    @property
    def sharing(self) -> None:
        """One process has the database to itself."""

    def seen_by(self, tenant: str) -> Self:
        """The same store: SQLite holds nothing back."""
        return self

    async def open(self) -> Self:
        if self._exclusive:
            self._lock = lock(f"{self.path}.lock")
        try:
            await self.connections.open()
        except BaseException:
            self._unlock()
            raise
        return self

    async def schema(self) -> SchemaState:
        """Read from the file, opened or not; nothing is changed, and a file that is not there is not made."""
        return schema_state("sqlite", await asyncio.to_thread(self.connections.version))

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self.connections.close()
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    async def durability(self) -> str:
        if self.path == MEMORY:
            return "best-effort"
        level = await self.connections.write(lambda c: int(fetch(c, "PRAGMA synchronous")[0][0]))
        return "power-safe" if level >= 2 else "crash-safe"

    # -- journal -------------------------------------------------------------------------------------------------------

    async def begin(self, request: LockRequest) -> LockedSnapshot:
        if not (request.names or request.keys or request.unique or 0 in request.known.values()):
            return LockedSnapshot()
        return await self._open(lambda c: journal.snapshot(c, request, self.sealing))

    async def append(self, batch: Batch) -> None:
        if self.sealing.on:
            await refresh(self.sealing, self, tenants_of(batch))
        statements = write.statements(batch, self.sealing)
        try:
            await self.connections.write(lambda c: write.apply(c, statements))
        except StoreUnavailableError:
            self.sealing.expire()
            raise

    async def abandon(self) -> None:
        pass

    async def locate(self, correlation_ids: Sequence[str]) -> dict[str, int]:
        return await self.connections.read(lambda c: journal.locate(c, correlation_ids))

    async def keyed(self, keys: Sequence[str]) -> dict[str, Key]:
        return await self.connections.read(lambda c: journal.keyed(c, keys))

    async def key_holder(self, run: int) -> KeyHolder | None:
        return await self.connections.read(lambda c: journal.key_holder(c, run))

    async def load(self, runs: Sequence[int]) -> dict[int, list[Recorded]]:
        return await self._open(lambda c: journal.load(c, runs, self.sealing))

    async def live(self) -> list[Live]:
        return await self.connections.read(journal.live)

    async def last_instant(self) -> datetime | None:
        return await self.connections.read(journal.last_instant)

    async def events(self, run: int, after: int, limit: int) -> list[Recorded]:
        return await self._open(lambda c: journal.events(c, run, after, limit, self.sealing))

    async def tail(self, after: int, limit: int, tipo: str | None = None, *, limited: bool = False) -> list[Recorded]:
        return await self._open(lambda c: journal.tail(c, after, limit, tipo, limited, self.sealing))

    async def result(self, run: int) -> bytes | None:
        return await self._open(lambda c: journal.result(c, run, self.sealing))

    async def prune(self, before: datetime, limit: int, read: int | None = None) -> int:
        return await self.connections.write(lambda c: journal.prune(c, before, limit, read))

    # -- catalogue -----------------------------------------------------------------------------------------------------

    async def summary(self, correlation_id: str) -> Summary | None:
        return await self.connections.read(lambda c: catalogue.summary(c, correlation_id))

    async def find(self, query: Query) -> list[Summary]:
        return await self.connections.read(lambda c: catalogue.find(c, query))

    async def count(self, query: Query) -> int:
        return await self.connections.read(lambda c: catalogue.count(c, query))

    async def retries(self, run: int, limit: int) -> list[Summary]:
        return await self.connections.read(lambda c: catalogue.retries(c, run, limit))

    async def destinations(self, runs: Sequence[int], limit: int) -> dict[int, list[str]]:
        return await self.connections.read(lambda c: catalogue.destinations(c, runs, limit)) if runs else {}

    async def nearest_deadlines(self, limit: int, tenant: str | None = None) -> list[Summary]:
        return await self.connections.read(lambda c: catalogue.nearest_deadlines(c, limit, tenant))

    # -- statistics ----------------------------------------------------------------------------------------------------

    async def count_by_status(self, tenant: str | None = None) -> dict[str, int]:
        return await self.connections.read(lambda c: statistics.count_by_status(c, tenant))

    async def activity(self, since: datetime, step: timedelta, tenant: str | None = None) -> list[Bucket]:
        return await self.connections.read(lambda c: statistics.activity(c, since, step, tenant))

    async def failures(self, since: datetime, tenant: str | None = None) -> list[FailingQueue]:
        return await self.connections.read(lambda c: statistics.failures(c, since, tenant))

    async def counts(self) -> dict[tuple[str, str], int]:
        return await self.connections.read(statistics.counts)

    async def queues(self) -> list[str]:
        return await self.connections.read(statistics.queues)

    # -- dead letters --------------------------------------------------------------------------------------------------

    async def dead_letters(
        self,
        *,
        before: int | None = None,
        limit: int = 50,
        queue: str | None = None,
        reason: str | None = None,
        bodies: bool = True,
        tenant: str | None = None,
    ) -> list[DeadLetter]:
        return await self._open(
            lambda c: dead_letters.dead_letters(c, before, limit, queue, reason, bodies, tenant, self.sealing)
        )

    async def dead_letter(self, id: int, tenant: str | None = None) -> DeadLetter | None:
        return await self._open(lambda c: dead_letters.dead_letter(c, id, tenant, self.sealing))

    async def dead_letter_groups(self, tenant: str | None = None) -> list[tuple[str, str, int]]:
        return await self.connections.read(lambda c: dead_letters.dead_letter_groups(c, tenant))

    async def remove_dead_letters(self, ids: Sequence[int], outcome: str, tenant: str | None = None) -> int:
        return await self.connections.write(lambda c: dead_letters.remove_dead_letters(c, ids, outcome, tenant))

    # -- task types ----------------------------------------------------------------------------------------------------

    async def put_task_type(self, tipo: str, body: bytes, at: datetime) -> None:
        await self.connections.write(lambda c: task_types.put_task_type(c, tipo, body, at))

    async def task_types(self) -> dict[str, bytes]:
        return await self.connections.read(task_types.task_types)

    async def remove_task_type(self, tipo: str) -> bool:
        return await self.connections.write(lambda c: task_types.remove_task_type(c, tipo))

    # -- schemas of parameters -----------------------------------------------------------------------------------------

    async def put_parameter_schema(self, queue: str, body: bytes, at: datetime) -> None:
        await self.connections.write(lambda c: parameter_schemas.put_parameter_schema(c, queue, body, at))

    async def parameter_schemas(self) -> dict[str, bytes]:
        return await self.connections.read(parameter_schemas.parameter_schemas)

    async def remove_parameter_schema(self, queue: str) -> bool:
        return await self.connections.write(lambda c: parameter_schemas.remove_parameter_schema(c, queue))

    # -- schedules -----------------------------------------------------------------------------------------------------

    async def save_schedule(self, schedule: StoredSchedule) -> StoredSchedule | None:
        if self.sealing.on:
            await refresh(self.sealing, self, [tenant_of(schedule.name)])
        return await self.connections.write(lambda c: schedules.save_schedule(c, schedule, self.sealing))

    async def schedule(self, name: str) -> StoredSchedule | None:
        return await self._open(lambda c: schedules.schedule(c, name, self.sealing))

    async def schedules(self, tenant: str, after: str, limit: int) -> list[StoredSchedule]:
        return await self._open(lambda c: schedules.schedules(c, tenant, after, limit, self.sealing))

    async def remove_schedule(self, name: str) -> bool:
        return await self.connections.write(lambda c: schedules.remove_schedule(c, name))

    async def due_schedules(self, now: datetime, limit: int) -> DueSchedules:
        return await self._open(lambda c: schedules.due_schedules(c, now, limit, self.sealing))

    # -- keys ----------------------------------------------------------------------------------------------------------

    async def add_api_key(self, key: ApiKey) -> None:
        await self.connections.write(lambda c: api_keys.add_api_key(c, key))

    async def api_key(self, id: str) -> ApiKey | None:
        return await self.connections.read(lambda c: api_keys.api_key(c, id))

    async def api_keys(self) -> list[ApiKey]:
        return await self.connections.read(api_keys.api_keys)

    async def rotate_api_key(self, id: str, digest: str, old_until: datetime, expires_at: datetime | None) -> bool:
        return await self.connections.write(lambda c: api_keys.rotate_api_key(c, id, digest, old_until, expires_at))

    async def revoke_api_key(self, id: str, at: datetime) -> bool:
        return await self.connections.write(lambda c: api_keys.revoke_api_key(c, id, at))

    async def open_runs_of(self, key_id: str) -> int:
        return await self.connections.read(lambda c: api_keys.open_runs_of(c, key_id))

    async def use_api_key(self, id: str, at: datetime) -> None:
        await self.connections.write(lambda c: api_keys.use_api_key(c, id, at))

    async def add_session(self, session: KeySession, now: datetime) -> None:
        await self.connections.write(lambda c: api_keys.add_session(c, session, now))

    async def session(self, id: str) -> KeySession | None:
        return await self.connections.read(lambda c: api_keys.session(c, id))

    async def end_session(self, id: str) -> bool:
        return await self.connections.write(lambda c: api_keys.end_session(c, id))

    # -- keys of tokens ------------------------------------------------------------------------------------------------

    async def token_keys(self) -> list[StoredTokenKey]:
        return await self.connections.read(token_keys.token_keys)

    async def add_first_token_key(self, key: StoredTokenKey) -> None:
        await self.connections.write(lambda c: token_keys.add_first_token_key(c, key))

    async def succeed_token_keys(self, key: StoredTokenKey, old_until: datetime, now: datetime) -> None:
        await self.connections.write(lambda c: token_keys.succeed_token_keys(c, key, old_until, now))

    # -- system events -------------------------------------------------------------------------------------------------

    async def record_system_event(self, event: SystemEvent) -> None:
        await self.connections.write(lambda c: system_events.record_system_event(c, event))

    async def system_events(
        self, limit: int = 50, kind: str | None = None, tenant: str | None = None
    ) -> list[SystemEvent]:
        return await self.connections.read(lambda c: system_events.system_events(c, limit, kind, tenant))

    async def later_system_events(self, after: int, limit: int) -> list[SystemEvent]:
        return await self.connections.read(lambda c: system_events.later_system_events(c, after, limit))

    # -- cursors -------------------------------------------------------------------------------------------------------

    async def cursors(self) -> dict[str, int]:
        return await self.connections.read(cursors.cursors)

    async def claim_cursor(self, name: str) -> int | None:
        known = (await self.connections.read(cursors.cursors)).get(name)
        return await self.connections.write(lambda c: cursors.claim(c, name)) if known is None else known

    async def move_cursor(self, name: str, to: int) -> None:
        await self.connections.write(lambda c: cursors.move(c, name, to))

    async def lag(self, after: int, tipo: str | None = None) -> Lag:
        return await self.connections.read(lambda c: cursors.lag(c, after, tipo))
