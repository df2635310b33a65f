"""PostgreSQL store: one connection writes, a few read, one listens.

Speed comes from shape, as with SQLite: the works of many orchestrations are one transaction, and a transaction is two
exchanges with the server whatever its size.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from datetime import datetime, timedelta
from typing import Self, TypeVar

from oraculo.adapters.sealing.codec import Sealing
from oraculo.adapters.stores.numbered import SchemaState, missing, refuse_outdated, schema_state
from oraculo.adapters.stores.postgres import (
    api_keys,
    catalogue,
    cursors,
    dead_letters,
    journal,
    members,
    schema,
    singleton_roles,
    statistics,
    system_events,
    task_types,
    token_keys,
    write,
)
from oraculo.adapters.stores.postgres.connections import Pool, ReconnectingConnection, Server, once, taken_over
from oraculo.adapters.stores.postgres.destinations import PostgresDestinations
from oraculo.adapters.stores.postgres.ended_runs import PostgresEndedRuns
from oraculo.adapters.stores.postgres.listener import Listener
from oraculo.adapters.stores.postgres.parameter_schemas import PostgresParameterSchemas
from oraculo.adapters.stores.postgres.projected import PostgresProjected
from oraculo.adapters.stores.postgres.schedules import PostgresSchedules
from oraculo.adapters.stores.postgres.tenants import PostgresTenants
from oraculo.adapters.stores.postgres.transaction import Writer
from oraculo.adapters.stores.postgres.users import PostgresUsers
from oraculo.adapters.stores.postgres.workers import PostgresWorkers
from oraculo.adapters.stores.sealed_rows import UNSEALED, refresh, tenants_of
from oraculo.errors import StoreError, StoreUnavailableError
from oraculo.ports.api_keys import ApiKey, KeySession
from oraculo.ports.catalogue import Query, Summary
from oraculo.ports.cursors import Lag
from oraculo.ports.dead_letters import DeadLetter
from oraculo.ports.journal import Batch, Key, Live, LockedSnapshot, LockRequest, Recorded
from oraculo.ports.membership import Member, Progress
from oraculo.ports.statistics import Bucket, FailingQueue
from oraculo.ports.system_events import SystemEvent
from oraculo.ports.token_keys import StoredTokenKey
from oraculo.ports.unique_keys import KeyHolder

T = TypeVar("T")


class PostgresStore(
    PostgresTenants,
    PostgresUsers,
    PostgresDestinations,
    PostgresEndedRuns,
    PostgresProjected,
    PostgresParameterSchemas,
    PostgresSchedules,
):
    """`PostgresStore("postgresql://user:password@host:5432/oraculo")`, or any other URL that libpq takes.
    `may_migrate=False` refuses a database whose schema is not up to date instead of changing it. `sealing` seals
    payloads."""

    def __init__(self, url: str, *, may_migrate: bool = True, sealing: Sealing = UNSEALED) -> None:
        self.sealing = sealing
        self._may_migrate = may_migrate
        self._server = Server(url)
        self._writer = Writer(self._server, sealing, self._reload_keys)
        self._pool = self._fleet = Pool(self._server)
        self._listener = Listener(self._server)
        self.worker_leases = PostgresWorkers(self._pool)
        self._member: Member | None = None
        self._lease = timedelta()

    @property
    def sharing(self) -> Self:
        return self

    def seen_by(self, tenant: str) -> Self:
        """The same store, whose server shows nothing of other tenants to what is read and written like that."""
        store = copy(self)
        store._pool = self._fleet.seen_by(tenant)
        return store

    @property
    def shown(self) -> str:
        """Where it is, for people; never the password."""
        return self._server.shown

    async def open(self, *, create: bool = True) -> Self:
        """`create=False` takes the database as it is; one that no Oráculo has used yet is refused."""
        if create and self._may_migrate:
            await self._server.make_database()
        current = await once(schema.current_version, ReconnectingConnection(self._server))
        if not create:
            if not current:
                raise StoreUnavailableError(f"there is no Oráculo in the database {self.shown}")
        elif not self._may_migrate:
            refuse_outdated("postgres", current)
        else:
            if missing("postgres", current):
                await once(schema.migrate, self._patient())
            await self._pool.read(schema.guard)
        return self

    async def schema(self) -> SchemaState:
        """Read from the database, opened or not; nothing is changed."""
        return schema_state("postgres", await once(schema.current_version, ReconnectingConnection(self._server)))

    def _patient(self) -> ReconnectingConnection:
        """A connection that waits as long as a migration takes."""
        return ReconnectingConnection(self._server, schema.MIGRATION_SETTINGS, timeout_s=None)

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        self._server.closed = True
        await self._writer.close()
        await self._listener.close()
        await self._pool.close()

    async def durability(self) -> str:
        return await self._pool.read(schema.durability)

    # -- journal -------------------------------------------------------------------------------------------------------

    async def begin(self, request: LockRequest) -> LockedSnapshot:
        return await self._writer.begin(request, self._member)

    async def append(self, batch: Batch) -> None:
        if self.sealing.on:
            await refresh(self.sealing, self, tenants_of(batch))
        try:
            await self._writer.append(write.BatchRows(batch, self.sealing), self._member)
        except StoreUnavailableError:
            self.sealing.expire()
            raise

    async def abandon(self) -> None:
        await self._writer.abandon()

    async def locate(self, correlation_ids: Sequence[str]) -> dict[str, int]:
        return await self._pool.read(lambda c: journal.locate(c, correlation_ids))

    async def keyed(self, keys: Sequence[str]) -> dict[str, Key]:
        return await self._pool.read(lambda c: journal.keyed(c, keys))

    async def load(self, runs: Sequence[int]) -> dict[int, list[Recorded]]:
        return await self._open(lambda c: journal.load(c, runs, self.sealing))

    async def live(self) -> list[Live]:
        return await self._pool.read(journal.live)

    async def last_instant(self) -> datetime | None:
        return await self._pool.read(journal.last_instant)

    async def events(self, run: int, after: int, limit: int) -> list[Recorded]:
        return await self._open(lambda c: journal.events(c, run, after, limit, self.sealing))

    async def tail(self, after: int, limit: int, tipo: str | None = None, *, limited: bool = False) -> list[Recorded]:
        return await self._open(lambda c: journal.tail(c, after, limit, tipo, limited, self.sealing))

    async def result(self, run: int) -> bytes | None:
        return await self._open(lambda c: journal.result(c, run, self.sealing))

    async def key_holder(self, run: int) -> KeyHolder | None:
        return await self._pool.read(lambda c: journal.key_holder(c, run))

    async def prune(self, before: datetime, limit: int, read: int | None = None) -> int:
        return await journal.prune_all(self._pool, before, limit, read)

    # -- catalogue -----------------------------------------------------------------------------------------------------

    async def summary(self, correlation_id: str) -> Summary | None:
        return await self._pool.read(lambda c: catalogue.summary(c, correlation_id))

    async def find(self, query: Query) -> list[Summary]:
        return await self._pool.read(lambda c: catalogue.find(c, query))

    async def count(self, query: Query) -> int:
        return await self._pool.read(lambda c: catalogue.count(c, query))

    async def retries(self, run: int, limit: int) -> list[Summary]:
        return await self._pool.read(lambda c: catalogue.retries(c, run, limit))

    async def destinations(self, runs: Sequence[int], limit: int) -> dict[int, list[str]]:
        return await self._pool.read(lambda c: catalogue.destinations(c, runs, limit)) if runs else {}

    async def nearest_deadlines(self, limit: int, tenant: str | None = None) -> list[Summary]:
        return await self._pool.read(lambda c: catalogue.nearest_deadlines(c, limit, tenant))

    # -- statistics ----------------------------------------------------------------------------------------------------

    async def count_by_status(self, tenant: str | None = None) -> dict[str, int]:
        return await self._pool.read(lambda c: statistics.count_by_status(c, tenant))

    async def activity(self, since: datetime, step: timedelta, tenant: str | None = None) -> list[Bucket]:
        return await self._pool.read(lambda c: statistics.activity(c, since, step, tenant))

    async def failures(self, since: datetime, tenant: str | None = None) -> list[FailingQueue]:
        return await self._pool.read(lambda c: statistics.failures(c, since, tenant))

    async def counts(self) -> dict[tuple[str, str], int]:
        return await self._pool.read(statistics.counts)

    async def queues(self) -> list[str]:
        return await self._pool.read(statistics.queues)

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
        return await self._pool.read(lambda c: dead_letters.dead_letter_groups(c, tenant))

    async def remove_dead_letters(self, ids: Sequence[int], outcome: str, tenant: str | None = None) -> int:
        return await self._pool.write(lambda c: dead_letters.remove_dead_letters(c, ids, outcome, tenant))

    # -- task types ----------------------------------------------------------------------------------------------------

    async def put_task_type(self, tipo: str, body: bytes, at: datetime) -> None:
        await self._pool.write(lambda c: task_types.put_task_type(c, tipo, body, at))

    async def task_types(self) -> dict[str, bytes]:
        return await self._pool.read(task_types.task_types)

    async def remove_task_type(self, tipo: str) -> bool:
        return await self._pool.write(lambda c: task_types.remove_task_type(c, tipo))

    # -- keys ----------------------------------------------------------------------------------------------------------

    async def add_api_key(self, key: ApiKey) -> None:
        await self._pool.write(lambda c: api_keys.add_api_key(c, key))

    async def api_key(self, id: str) -> ApiKey | None:
        return await self._pool.read(lambda c: api_keys.api_key(c, id))

    async def api_keys(self) -> list[ApiKey]:
        return await self._pool.read(api_keys.api_keys)

    async def rotate_api_key(self, id: str, digest: str, old_until: datetime, expires_at: datetime | None) -> bool:
        return await self._pool.write(lambda c: api_keys.rotate_api_key(c, id, digest, old_until, expires_at))

    async def revoke_api_key(self, id: str, at: datetime) -> bool:
        return await self._pool.write(lambda c: api_keys.revoke_api_key(c, id, at))

    async def open_runs_of(self, key_id: str) -> int:
        return await self._pool.read(lambda c: api_keys.open_runs_of(c, key_id))

    async def use_api_key(self, id: str, at: datetime) -> None:
        await self._pool.write(lambda c: api_keys.use_api_key(c, id, at))

    async def add_session(self, session: KeySession, now: datetime) -> None:
        await self._pool.write(lambda c: api_keys.add_session(c, session, now))

    async def session(self, id: str) -> KeySession | None:
        return await self._pool.read(lambda c: api_keys.session(c, id))

    async def end_session(self, id: str) -> bool:
        return await self._pool.write(lambda c: api_keys.end_session(c, id))

    # -- keys of tokens ------------------------------------------------------------------------------------------------

    async def token_keys(self) -> list[StoredTokenKey]:
        return await self._pool.read(token_keys.token_keys)

    async def add_first_token_key(self, key: StoredTokenKey) -> None:
        await self._pool.write(lambda c: token_keys.add_first_token_key(c, key))

    async def succeed_token_keys(self, key: StoredTokenKey, old_until: datetime, now: datetime) -> None:
        await self._pool.write(lambda c: token_keys.succeed_token_keys(c, key, old_until, now))

    # -- system events -------------------------------------------------------------------------------------------------

    async def record_system_event(self, event: SystemEvent) -> None:
        await self._pool.write(lambda c: system_events.record_system_event(c, event))

    async def system_events(
        self, limit: int = 50, kind: str | None = None, tenant: str | None = None
    ) -> list[SystemEvent]:
        return await self._pool.read(lambda c: system_events.system_events(c, limit, kind, tenant))

    async def later_system_events(self, after: int, limit: int) -> list[SystemEvent]:
        return await self._pool.read(lambda c: system_events.later_system_events(c, after, limit))

    # -- cursors -------------------------------------------------------------------------------------------------------

    async def cursors(self) -> dict[str, int]:
        return await self._pool.read(cursors.cursors)

    async def claim_cursor(self, name: str) -> int | None:
        """Called often: a cursor that this process has already, or that another one has, costs a read only."""
        me = self._member
        position, free = await self._pool.read(lambda c: cursors.look(c, name, me))
        if position is not None or not free:
            return position
        return await self._pool.write(lambda c: cursors.claim(c, name, me))

    async def move_cursor(self, name: str, to: int) -> None:
        me = self._member
        await self._pool.write(lambda c: cursors.move(c, name, to, me))

    async def lag(self, after: int, tipo: str | None = None) -> Lag:
        return await self._pool.read(lambda c: cursors.lag(c, after, tipo))

    # -- membership ----------------------------------------------------------------------------------------------------

    async def join(self, name: str, lease: timedelta) -> Member:
        self._member = await self._pool.write(lambda c: members.join(c, name, lease))
        self._lease = lease
        return self._member

    async def renew(self) -> datetime:
        me = self._me()
        renewed = await self._pool.write(lambda c: members.renew(c, me, self._lease))
        if renewed is None:
            raise taken_over(me.name)
        return renewed.lease_until - self._lease

    async def leave(self) -> None:
        member, self._member = self._member, None
        if member is not None:
            await self._pool.write(lambda c: members.leave(c, member))

    async def members(self) -> list[Member]:
        return await self._pool.read(members.members)

    # -- takeover ------------------------------------------------------------------------------------------------------

    async def rescue(self) -> tuple[list[Member], list[int]]:
        me = self._me()
        if not await self._pool.read(lambda c: members.any_expired(c, me)):
            return [], []
        return await self._pool.write(lambda c: members.rescue(c, me))

    async def overdue(self, grace: timedelta, limit: int) -> list[int]:
        return await self._pool.read(lambda c: members.overdue(c, grace, limit))

    async def owing(self, age: timedelta, limit: int, *, unlimited: bool = False) -> list[int]:
        return await self._pool.read(lambda c: members.owing(c, age, limit, unlimited))

    # -- shared view ---------------------------------------------------------------------------------------------------

    async def open_runs(self) -> int:
        return await self._pool.read(members.open_runs)

    async def progress(self, runs: Sequence[int]) -> dict[int, Progress]:
        return await self._pool.read(lambda c: members.progress(c, runs))

    async def changed(self, patience: float, heard: int | None = None) -> int:
        return await self._listener.changed(patience, heard)

    # -- singleton roles -----------------------------------------------------------------------------------------------

    async def claim_duty(self, name: str) -> str | None:
        """Called often, as `claim_cursor` is."""
        me = self._me()
        note, free = await self._pool.read(lambda c: singleton_roles.look(c, name, me))
        if note is not None or not free:
            return note
        return await self._pool.write(lambda c: singleton_roles.claim(c, name, me))

    async def note_duty(self, name: str, note: str) -> None:
        me = self._me()
        await self._pool.write(lambda c: singleton_roles.note(c, name, note, me))

    def _me(self) -> Member:
        if self._member is None:
            raise StoreError("this process has not joined")
        return self._member
