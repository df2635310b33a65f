"""A model of the database that several processes share: members and leases, locks from `begin` to `append`, fencing,
who may be sending what. The tables themselves are SQLite's, in memory.

It is written from ports/membership.py and docs/adr/0014, and passes the same contract suite as PostgreSQL.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Hashable, Sequence
from datetime import datetime, timedelta
from typing import Any

from oraculo.adapters.stores.instants import to_micros
from oraculo.adapters.stores.sqlite.connections import fetch, json_list
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.errors import FencedError, StoreError, StoreUnavailableError
from oraculo.ports.journal import Batch, LockedSnapshot, LockRequest, Recorded
from oraculo.ports.membership import Member, Progress

IDLE_IN_TRANSACTION_S = 5.0  # after which the server ends a transaction that nobody goes on with
LOCK_TIMEOUT_S = 10.0
_TICK = timedelta(microseconds=1)


class ModelTransaction:
    """What one process has locked. `is_over`: the server has ended it."""

    def __init__(self) -> None:
        self.locks: set[Hashable] = set()
        self.is_over = False


class SharedDatabase:
    """The server: one for all processes of a world. `now` is its clock."""

    def __init__(self, store: SqliteStore, now: Callable[[], datetime]) -> None:
        self.store = store
        self.now = now
        self.members: dict[int, Member] = {}  # by slot
        self.hands: dict[int, set[int]] = {}  # run → slots of members that may be sending what it owes
        self.owed_since: dict[int, datetime] = {}
        self.claims: dict[str, tuple[int, str]] = {}  # duty or cursor → epoch of who has it, and the note
        self.writes = 0
        self.transactions: dict[int, ModelTransaction] = {}  # by epoch; nobody takes over from a member meanwhile
        self.epochs = 0
        self._held: dict[Hashable, ModelTransaction] = {}
        self._waiting: deque[asyncio.Future[None]] = deque()

    def connect(self) -> ModelSharedStore:
        return ModelSharedStore(self)

    async def lock(self, transaction: ModelTransaction, wanted: Collection[Hashable]) -> None:
        """Take all of them at once, or wait until they are free: no circle can form."""
        async with asyncio.timeout(LOCK_TIMEOUT_S):
            while any(self._held.get(one, transaction) is not transaction for one in wanted):
                await self.changed()
        for one in wanted:
            self._held[one] = transaction
        transaction.locks.update(wanted)

    def free(self, transaction: ModelTransaction) -> None:
        transaction.is_over = True
        for one in transaction.locks:
            self._held.pop(one, None)
        transaction.locks.clear()
        self.tell()

    async def changed(self) -> None:
        """Wait until something was written, or locks were let go."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        await waiter

    def tell(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)

    def is_alive(self, epoch: int) -> bool:
        return any(one.epoch == epoch and one.lease_until > self.now() for one in self.members.values())

    def owes(self, runs: Sequence[int] | None = None) -> dict[int, int]:
        """Run → how much it owes, of those that owe anything."""
        only = "" if runs is None else " AND run IN (SELECT value FROM json_each(?))"
        values = () if runs is None else (json_list(runs),)
        return dict(self.ask(f"SELECT run, owes FROM runs WHERE owes > 0{only}", values))

    def ask(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        return self.store.connections.run_inline(lambda connection: fetch(connection, sql, values))


class ModelSharedStore:
    """The SharedStore port for one process. What has nothing to do with sharing goes to the tables as it is."""

    def __init__(self, database: SharedDatabase) -> None:
        self._database = database
        self._member: Member | None = None
        self._lease = timedelta()
        self._transaction: ModelTransaction | None = None
        self._heard: int | None = None  # of what was written
        self._turn = asyncio.Lock()

    def seen_by(self, tenant: str) -> ModelSharedStore:
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database.store, name)

    @property
    def sharing(self) -> ModelSharedStore:
        return self

    def end(self) -> None:
        """The connection breaks, as when its process dies."""
        self._finish()

    # -- transactions ------------------------------------------------------------------------------------------------

    async def begin(self, request: LockRequest) -> LockedSnapshot:
        await self._turn.acquire()
        database, transaction = self._database, ModelTransaction()
        self._transaction = transaction
        try:
            me = self._fence()
            if me is not None:
                database.transactions[me.epoch] = transaction
            wanted: set[Hashable] = {
                *(("name", name) for name in request.names),
                *(("key", key) for key in request.keys),
                *(("unique", key) for key in request.unique),
            }
            await database.lock(transaction, wanted)
            snapshot = await database.store.begin(LockRequest({}, request.names, request.keys, request.unique))
            runs = {*request.known, *snapshot.runs.values(), *(key.run for key in snapshot.keys.values())}
            await database.lock(transaction, [("run", run) for run in sorted(runs)])
            await self._read(request, snapshot, runs)
        except BaseException as error:
            self._finish()
            if isinstance(error, TimeoutError):
                raise StoreUnavailableError("the database refused: lock timeout") from None
            raise
        asyncio.get_running_loop().call_later(IDLE_IN_TRANSACTION_S, self._expire, transaction)
        return snapshot

    async def _read(self, request: LockRequest, snapshot: LockedSnapshot, runs: Collection[int]) -> None:
        """What others wrote beyond the versions that are known here, under the locks."""
        loaded = await self._database.store.load(sorted(runs))
        snapshot.at = self._database.now()
        snapshot.news = {}
        for run, steps in loaded.items():
            news = [one for one in steps if _last(one) > request.known.get(run, 0)]
            if news:
                snapshot.news[run] = news
        snapshot.gone = [run for run in runs if run not in loaded]

    async def append(self, batch: Batch) -> None:
        if self._transaction is None:
            await self.begin(_locks_of(batch))
        database, transaction = self._database, self._transaction
        assert transaction is not None
        try:
            if transaction.is_over:
                raise StoreUnavailableError("the connection broke between the two halves of a transaction")
            before = database.owes([done.state.run for done in batch.steps])
            await database.store.append(batch)
            self._note_debts({done.state.run: done.state.owes for done in batch.steps}, before)
            database.writes += 1
        finally:
            self._finish()

    async def abandon(self) -> None:
        self._finish()

    def _note_debts(self, owes: dict[int, int], before: dict[int, int]) -> None:
        database, slot = self._database, self._member.slot if self._member else 0
        for run, much in owes.items():
            if not much:
                database.hands.pop(run, None)
                database.owed_since.pop(run, None)
            elif run not in before:
                database.hands[run], database.owed_since[run] = {slot}, database.now()
            else:
                database.hands.setdefault(run, set()).add(slot)

    def _expire(self, transaction: ModelTransaction) -> None:
        """End a transaction that a frozen process left open; it finds out when it goes on."""
        if not transaction.is_over:
            self._let_go(transaction)

    def _finish(self) -> None:
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            self._let_go(transaction)
            self._turn.release()

    def _let_go(self, transaction: ModelTransaction) -> None:
        held = self._database.transactions
        for epoch in [epoch for epoch, one in held.items() if one is transaction]:
            del held[epoch]
        self._database.free(transaction)

    # -- membership --------------------------------------------------------------------------------------------------

    async def join(self, name: str, lease: timedelta) -> Member:
        database, now = self._database, self._database.now()
        slot = next(slot for slot in range(1, 1024) if slot not in database.members)
        database.epochs += 1
        self._lease = lease
        self._member = Member(name, slot, database.epochs, now, now + lease)
        database.members[slot] = self._member
        return self._member

    async def renew(self) -> datetime:
        me, now = self._joined(), self._database.now()
        self._fence()
        self._database.members[me.slot] = self._member = Member(
            me.name, me.slot, me.epoch, me.joined_at, now + self._lease
        )
        return now

    async def leave(self) -> None:
        database, member = self._database, self._member
        self._member = None
        if member is None or not self._is_there(member):
            return
        owing = database.owes()
        if any(member.slot in slots and run in owing for run, slots in database.hands.items()):
            gone = database.now() - _TICK
            database.members[member.slot] = Member(member.name, member.slot, member.epoch, member.joined_at, gone)
        else:
            del database.members[member.slot]

    async def members(self) -> list[Member]:
        return [self._database.members[slot] for slot in sorted(self._database.members)]

    def _joined(self) -> Member:
        if self._member is None:
            raise StoreError("this process has not joined")
        return self._member

    def _is_there(self, member: Member) -> bool:
        known = self._database.members.get(member.slot)
        return known is not None and known.epoch == member.epoch

    def _fence(self) -> Member | None:
        """Refuse a member that another one has taken over from."""
        if self._member is not None and not self._is_there(self._member):
            raise FencedError(f"the lease of {self._member.name!r} ran out, and another process took over")
        return self._member

    # -- takeover ----------------------------------------------------------------------------------------------------

    async def rescue(self) -> tuple[list[Member], list[int]]:
        me, database = self._joined(), self._database
        self._fence()
        dead = [
            one
            for slot, one in sorted(database.members.items())
            if slot != me.slot and one.lease_until < database.now() and one.epoch not in database.transactions
        ]
        slots = {one.slot for one in dead}
        for slot in slots:
            del database.members[slot]
        owing = database.owes() if dead else {}
        runs = [run for run in sorted(owing) if database.hands.get(run, set()) & slots]
        for run in runs:
            database.hands[run] = (database.hands[run] - slots) | {me.slot}
        return dead, runs

    async def overdue(self, grace: timedelta, limit: int) -> list[int]:
        sql = "SELECT run FROM runs WHERE wake_at < ? ORDER BY wake_at LIMIT ?"
        return [run for (run,) in self._database.ask(sql, (to_micros(self._database.now() - grace), limit))]

    async def owing(self, age: timedelta, limit: int, *, unlimited: bool = False) -> list[int]:
        database, owing = self._database, self._database.owes()
        spared = database.ask("SELECT run FROM runs WHERE limited = 1 AND closed_at IS NULL", ())
        others = {run for (run,) in spared} if unlimited else set()
        old = [run for run, since in database.owed_since.items() if since < database.now() - age]
        return sorted((run for run in old if run in owing and run not in others), key=database.owed_since.__getitem__)[
            :limit
        ]

    # -- shared view and roles ---------------------------------------------------------------------------------------

    async def open_runs(self) -> int:
        return int(self._database.ask("SELECT count(*) FROM runs WHERE closed_at IS NULL")[0][0])

    async def progress(self, runs: Sequence[int]) -> dict[int, Progress]:
        sql = "SELECT run, version, closed_at IS NOT NULL FROM runs WHERE run IN (SELECT value FROM json_each(?))"
        found = self._database.ask(sql, (json_list(runs),))
        return {run: Progress(version, bool(closed)) for run, version, closed in found}

    async def changed(self, patience: float, heard: int | None = None) -> int:
        database = self._database
        since = self._heard if heard is None else heard  # None: it only begins to listen
        try:
            async with asyncio.timeout(patience):
                while database.writes == since:
                    await database.changed()
        except TimeoutError:
            pass
        self._heard = database.writes
        return self._heard

    async def claim_duty(self, name: str) -> str | None:
        me = self._joined()
        epoch, note = self._database.claims.get(name, (0, ""))
        if epoch != me.epoch and self._database.is_alive(epoch):
            return None
        self._database.claims[name] = (me.epoch, note)
        return note

    async def note_duty(self, name: str, note: str) -> None:
        me = self._joined()
        if self._database.claims.get(name, (0, ""))[0] != me.epoch:
            raise FencedError(f"{name!r} is the duty of another process now")
        self._database.claims[name] = (me.epoch, note)

    async def claim_cursor(self, name: str) -> int | None:
        if await self.claim_duty(f"cursor {name}") is None:
            return None
        return await self._database.store.claim_cursor(name)

    async def move_cursor(self, name: str, to: int) -> None:
        await self.note_duty(f"cursor {name}", "")
        await self._database.store.move_cursor(name, to)


def _last(recorded: Recorded) -> int:
    return recorded.first + len(recorded.events) - 1


def _locks_of(batch: Batch) -> LockRequest:
    """The locks of a batch for which no transaction was begun."""
    names = [done.state.correlation_id for done in batch.steps if done.first == 1]
    return LockRequest({done.state.run: 0 for done in batch.steps}, names, [key.key for key in batch.keys])
