"""PostgreSQL store: one connection writes, a few read, one listens.

Speed comes from shape, as with SQLite: the works of many orchestrations are one transaction, and a transaction is two
exchanges with the server whatever its size.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Self

from oraculo.adapters.stores.postgres import cursors, duties, find, members, read, write
from oraculo.adapters.stores.postgres.connections import Line, Pool, Server, fenced
from oraculo.adapters.stores.postgres.listener import Listener
from oraculo.adapters.stores.postgres.schema import current_version, migrate
from oraculo.adapters.stores.postgres.transaction import Writer
from oraculo.errors import StoreError, StoreUnavailableError
from oraculo.ports.sharing import Member, Progress
from oraculo.ports.store import (
    Asked,
    Batch,
    Bucket,
    DeadLetter,
    FailingQueue,
    Found,
    Key,
    Lag,
    Live,
    Query,
    Recorded,
    Summary,
    SystemEvent,
)

PRUNE_AT_ONCE = 500


class PostgresStore:
    """`PostgresStore("postgresql://user:password@host:5432/oraculo")`, or any other URL that libpq takes."""

    shared = True

    def __init__(self, url: str) -> None:
        self._server = Server(url)
        self._writer = Writer(self._server)
        self._pool = Pool(self._server)
        self._listener = Listener(self._server)
        self._member: Member | None = None
        self._lease = timedelta()

    @property
    def shown(self) -> str:
        """Where it is, for people; never the password."""
        return self._server.shown

    async def open(self, *, create: bool = True) -> Self:
        """`create=False` takes the database as it is; one that no Oráculo has used yet is refused."""
        line = Line(self._server)
        try:
            async with line.exchange() as connection:
                if create:
                    await migrate(connection)
                elif not await current_version(connection):
                    raise StoreUnavailableError(f"there is no Oráculo in the database {self.shown}")
        finally:
            await line.drop()
        return self

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        self._server.closed = True
        await self._writer.close()
        await self._listener.close()
        await self._pool.close()

    # -- the journal -------------------------------------------------------------------------------------------------

    async def begin(self, asked: Asked) -> Found:
        return await self._writer.begin(asked, self._member)

    async def append(self, batch: Batch) -> None:
        await self._writer.append(write.Written(batch), self._member)

    async def abandon(self) -> None:
        await self._writer.abandon()

    # -- reads -------------------------------------------------------------------------------------------------------

    async def locate(self, correlation_ids: Sequence[str]) -> dict[str, int]:
        return await self._pool.read(lambda c: read.locate(c, correlation_ids))

    async def keyed(self, keys: Sequence[str]) -> dict[str, Key]:
        return await self._pool.read(lambda c: read.keyed(c, keys))

    async def load(self, runs: Sequence[int]) -> dict[int, list[Recorded]]:
        return await self._pool.read(lambda c: read.load(c, runs))

    async def live(self) -> list[Live]:
        return await self._pool.read(read.live)

    async def last_instant(self) -> datetime | None:
        return await self._pool.read(read.last_instant)

    async def summary(self, correlation_id: str) -> Summary | None:
        return await self._pool.read(lambda c: find.summary(c, correlation_id))

    async def find(self, query: Query) -> list[Summary]:
        return await self._pool.read(lambda c: find.find(c, query))

    async def count(self, query: Query) -> int:
        return await self._pool.read(lambda c: find.count(c, query))

    async def activity(self, since: datetime, step: timedelta) -> list[Bucket]:
        return await self._pool.read(lambda c: find.activity(c, since, step))

    async def failures(self, since: datetime) -> list[FailingQueue]:
        return await self._pool.read(lambda c: find.failures(c, since))

    async def nearest_deadlines(self, limit: int) -> list[Summary]:
        return await self._pool.read(lambda c: find.nearest_deadlines(c, limit))

    async def events(self, run: int, after: int, limit: int) -> list[Recorded]:
        return await self._pool.read(lambda c: read.events(c, run, after, limit))

    async def tail(self, after: int, limit: int, tipo: str | None = None) -> list[Recorded]:
        return await self._pool.read(lambda c: read.tail(c, after, limit, tipo))

    async def result(self, run: int) -> bytes | None:
        return await self._pool.read(lambda c: read.result(c, run))

    async def count_by_status(self) -> dict[str, int]:
        return await self._pool.read(read.count_by_status)

    async def counts(self) -> dict[tuple[str, str], int]:
        return await self._pool.read(read.counts)

    async def dead_letters(
        self, *, before: int | None = None, limit: int = 50, queue: str | None = None, reason: str | None = None
    ) -> list[DeadLetter]:
        return await self._pool.read(lambda c: read.dead_letters(c, before, limit, queue, reason))

    async def dead_letter(self, id: int) -> DeadLetter | None:
        return await self._pool.read(lambda c: read.dead_letter(c, id))

    async def dead_letter_groups(self) -> list[tuple[str, str, int]]:
        return await self._pool.read(read.dead_letter_groups)

    async def system_events(self, limit: int = 50, kind: str | None = None) -> list[SystemEvent]:
        return await self._pool.read(lambda c: read.system_events(c, limit, kind))

    async def later_system_events(self, after: int, limit: int) -> list[SystemEvent]:
        return await self._pool.read(lambda c: read.later_system_events(c, after, limit))

    async def queues(self) -> list[str]:
        return await self._pool.read(read.queues)

    async def task_types(self) -> dict[str, bytes]:
        return await self._pool.read(read.task_types)

    async def durability(self) -> str:
        return await self._pool.read(read.durability)

    # -- other writes ------------------------------------------------------------------------------------------------

    async def remove_dead_letters(self, ids: Sequence[int], outcome: str) -> int:
        return await self._pool.write(lambda c: write.remove_dead_letters(c, ids, outcome))

    async def record_system_event(self, event: SystemEvent) -> None:
        await self._pool.write(lambda c: write.record_system_event(c, event))

    async def put_task_type(self, tipo: str, body: bytes, at: datetime) -> None:
        await self._pool.write(lambda c: write.put_task_type(c, tipo, body, at))

    async def remove_task_type(self, tipo: str) -> bool:
        return await self._pool.write(lambda c: write.remove_task_type(c, tipo))

    async def prune(self, before: datetime, limit: int, read: int | None = None) -> int:
        total = 0
        while total < limit:
            wanted = min(PRUNE_AT_ONCE, limit - total)
            removed = await self._pool.write(partial(write.prune, before=before, limit=wanted, read=read))
            total += removed
            if removed < wanted:
                break
        return total

    # -- projections -------------------------------------------------------------------------------------------------

    async def cursors(self) -> dict[str, int]:
        return await self._pool.read(cursors.cursors)

    async def claim_cursor(self, name: str) -> int | None:
        """Asked often: a cursor that is ours already, or somebody else's, is only looked at."""
        me = self._member
        position, free = await self._pool.read(lambda c: cursors.look(c, name, me))
        if position is not None or not free:
            return position
        return await self._pool.write(lambda c: cursors.claim(c, name, me))

    async def move_cursor(self, name: str, to: int) -> None:
        me = self._member
        await self._pool.write(lambda c: cursors.move(c, name, to, me))

    async def lag(self, after: int) -> Lag:
        return await self._pool.read(lambda c: cursors.lag(c, after))

    # -- sharing -----------------------------------------------------------------------------------------------------

    async def join(self, name: str, lease: timedelta) -> Member:
        self._member = await self._pool.write(lambda c: members.join(c, name, lease))
        self._lease = lease
        return self._member

    async def renew(self) -> datetime:
        me = self._me()
        renewed = await self._pool.write(lambda c: members.renew(c, me, self._lease))
        if renewed is None:
            raise fenced(me.name)
        return renewed.lease_until - self._lease

    async def leave(self) -> None:
        member, self._member = self._member, None
        if member is not None:
            await self._pool.write(lambda c: members.leave(c, member))

    async def members(self) -> list[Member]:
        return await self._pool.read(members.members)

    async def rescue(self) -> tuple[list[Member], list[int]]:
        me = self._me()
        if not await self._pool.read(lambda c: members.anybody_dead(c, me)):
            return [], []
        return await self._pool.write(lambda c: members.rescue(c, me))

    async def overdue(self, grace: timedelta, limit: int) -> list[int]:
        return await self._pool.read(lambda c: members.overdue(c, grace, limit))

    async def owing(self, age: timedelta, limit: int, but: str | None = None) -> list[int]:
        return await self._pool.read(lambda c: members.owing(c, age, limit, but))

    async def open_runs(self) -> int:
        return await self._pool.read(members.open_runs)

    async def progress(self, runs: Sequence[int]) -> dict[int, Progress]:
        return await self._pool.read(lambda c: members.progress(c, runs))

    async def changed(self, patience: float, heard: int | None = None) -> int:
        return await self._listener.changed(patience, heard)

    async def claim_duty(self, name: str) -> str | None:
        """Asked often, as a cursor is."""
        me = self._me()
        note, free = await self._pool.read(lambda c: duties.look(c, name, me))
        if note is not None or not free:
            return note
        return await self._pool.write(lambda c: duties.claim(c, name, me))

    async def note_duty(self, name: str, note: str) -> None:
        me = self._me()
        await self._pool.write(lambda c: duties.note(c, name, note, me))

    def _me(self) -> Member:
        if self._member is None:
            raise StoreError("this process has not joined")
        return self._member
