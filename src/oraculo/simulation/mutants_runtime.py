"""Mutants of the runtime, the engine and the store: order of commit and message, recovery, counting, the clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from itertools import count
from typing import Any

from oraculo.adapters import clock
from oraculo.adapters.clock import MonotonicClock
from oraculo.adapters.stores import shared_sql
from oraculo.adapters.stores.sqlite import write as sqlite_write
from oraculo.core import effects
from oraculo.core.commands import Start
from oraculo.errors import StoreError
from oraculo.ports.broker import ALL_CONFIRMED, Delivery, Outgoing, PublishReport, Settlement
from oraculo.ports.dead_letters import DeadLetter
from oraculo.ports.work import Fate, Outcome, Work
from oraculo.runtime import leases
from oraculo.runtime.consumer import QueueConsumer
from oraculo.runtime.effects.notices import Notices
from oraculo.runtime.effects.postponed import Postponed
from oraculo.runtime.effects.publisher import Publisher
from oraculo.runtime.kernel import recovery
from oraculo.runtime.kernel.cache import StateCache
from oraculo.runtime.kernel.commands import CommandQueue
from oraculo.runtime.kernel.decider import CoreDecider
from oraculo.runtime.kernel.handler import Handler
from oraculo.runtime.kernel.kernel import Kernel
from oraculo.runtime.kernel.states import States
from oraculo.runtime.kernel.timers import Timers
from oraculo.runtime.kernel.transaction import Transaction
from oraculo.runtime.leases import HttpLeases
from oraculo.simulation.mutants import Mutant, patched

_BOTH = ("masked", "unmasked")
_UNMASKED = ("unmasked",)

_init, _recover, _attempt = Kernel.__init__, Kernel._recover, Publisher._attempt
_commit, _state, _decide = Handler._commit, States.state, CoreDecider.decide
_take, _to_queue, _set, _apply = QueueConsumer.take, Notices._to_queue, Timers.set, sqlite_write.apply


def _built(change: Callable[[Kernel], None]) -> AbstractContextManager[None]:
    """Every kernel is changed right after it was built."""

    def init(self: Kernel, *args: Any, **options: Any) -> None:
        _init(self, *args, **options)
        change(self)

    return patched((Kernel, "__init__", init))


def ack_before_commit() -> AbstractContextManager[None]:
    async def take(self: QueueConsumer, deliveries: Sequence[Delivery]) -> None:
        await self._settle([Settlement(delivery) for delivery in deliveries])
        await _take(self, deliveries)

    return patched((QueueConsumer, "take", take))


def ack_although_it_failed() -> AbstractContextManager[None]:
    async def take(self: QueueConsumer, deliveries: Sequence[Delivery]) -> None:
        with suppress(StoreError):
            await self._submit([self._translate(delivery.body, self.queue) for delivery in deliveries])
        await self._settle([Settlement(delivery) for delivery in deliveries])

    return patched((QueueConsumer, "take", take))


def publish_before_commit() -> AbstractContextManager[None]:
    def change(kernel: Kernel) -> None:
        handler = kernel._commits._handler
        commit = handler._commit

        async def early(transaction: Transaction) -> None:
            for done in transaction.steps:
                kernel._effects.take(done.state, done.effects)
            await asyncio.sleep(0.001)
            await commit(transaction)

        handler._commit = early  # type: ignore[method-assign]

    return _built(change)


def answer_before_commit() -> AbstractContextManager[None]:
    async def early(self: Handler, transaction: Transaction) -> None:
        for work, outcome in transaction.outcomes:
            work.settle(outcome)
        transaction.outcomes = []
        await asyncio.sleep(0.001)
        await _commit(self, transaction)

    return patched((Handler, "_commit", early))


def lost_confirm_is_done() -> AbstractContextManager[None]:
    async def attempt(self: Publisher, messages: Sequence[Outgoing]) -> tuple[PublishReport, Exception | None]:
        await _attempt(self, messages)
        return ALL_CONFIRMED, None

    return patched((Publisher, "_attempt", attempt))


def recovery_forgets_owed() -> AbstractContextManager[None]:
    return patched((recovery, "owed_effects", lambda *_args, **_options: []))


def recovery_forgets_timers() -> AbstractContextManager[None]:
    async def recover(self: Kernel) -> None:
        await _recover(self)
        loop = self._recovery._timers
        assert loop is not None
        loop.timers = Timers()

    return patched((Kernel, "_recover", recover))


def no_resend_on_volatile_broker() -> AbstractContextManager[None]:
    return patched((recovery, "owed_effects", lambda state, _forgotten=None: effects.owed_effects(state)))


def order_without_room_is_forgotten() -> AbstractContextManager[None]:
    return patched((Postponed, "add", lambda _self, _owed, _reason: None))


def no_recovery_after_store_failure() -> AbstractContextManager[None]:
    """A transaction failed and was written all the same: what it owes is never done."""

    async def forget(_self: recovery.Recovery, _uncertain: dict[int, int]) -> None:
        return

    return patched((recovery.Recovery, "resolve", forget))


def own_work_lost_with_the_store() -> AbstractContextManager[None]:
    return patched((CommandQueue, "requeue_internal", lambda _self, _works: None))


def notice_gives_up_when_store_is_away() -> AbstractContextManager[None]:
    async def read(self: Notices, run: int) -> bytes | None:
        return await self._result_of(run)

    return patched((Notices, "_read_result", read))


def stale_cache_after_failed_commit() -> AbstractContextManager[None]:
    return patched((StateCache, "drop", lambda _self, _run: None))


def no_version_check() -> AbstractContextManager[None]:
    """And the cache is stale after a failed commit, which the check would have caught."""

    def apply(connection: Any, what: Any) -> None:
        what.rows = [(sql, rows, None) for sql, rows, _expected in what.rows]
        _apply(connection, what)

    return patched((sqlite_write, "apply", apply), (StateCache, "drop", lambda _self, _run: None))


def duplicates_not_counted() -> AbstractContextManager[None]:
    def count(self: Transaction, work: Work, outcome: Outcome) -> Outcome:
        if work.queue and outcome.fate is not Fate.DUPLICATE:
            self.batch.counts[work.queue, outcome.fate.value] += 1
        return outcome

    return patched((Transaction, "count", count))


def quarantine_drops_the_bytes() -> AbstractContextManager[None]:
    def quarantine(self: Transaction, work: Work, dead: DeadLetter, run: int = 0) -> Outcome:
        self.batch.counts[dead.queue, Fate.QUARANTINED.value] += 1
        return Outcome(Fate.QUARANTINED, dead.reason, run, work.correlation_id)

    return patched((Transaction, "quarantine", quarantine))


def two_ids_for_one_notice() -> AbstractContextManager[None]:
    numbers = count()

    async def to_queue(self: Notices, message: Outgoing) -> Any:
        message.message_id += f"-{next(numbers)}"
        return await _to_queue(self, message)

    return patched((Notices, "_to_queue", to_queue))


def notice_recorded_before_sent() -> AbstractContextManager[None]:
    from oraculo.ports.notifier import Outcome as Sent
    from oraculo.ports.notifier import Receipt

    async def to_queue(self: Notices, message: Outgoing) -> Any:
        await _to_queue(self, message)
        return Receipt(Sent.DELIVERED, "hopefully")

    return patched((Notices, "_to_queue", to_queue))


def clock_follows_the_wall() -> AbstractContextManager[None]:
    def now(_self: MonotonicClock) -> datetime:
        return datetime.fromtimestamp(vars(clock)["time"].time(), UTC)

    return patched((MonotonicClock, "now", now))


def clock_forgets_the_journal() -> AbstractContextManager[None]:
    return patched((MonotonicClock, "not_before", lambda _self, _at: None))


def earlier_timer_ignored() -> AbstractContextManager[None]:
    def once(self: Timers, run: int, at: datetime | None) -> None:
        if at is None or run not in self._at:
            _set(self, run, at)

    return patched((Timers, "set", once))


def same_name_twice() -> AbstractContextManager[None]:
    return patched((CoreDecider, "_known", lambda *_: None))


def leases_never_expire() -> AbstractContextManager[None]:
    async def sweep(_self: HttpLeases) -> int:
        return 0

    return patched((HttpLeases, "sweep", sweep))


def readers_see_the_future() -> AbstractContextManager[None]:
    """A state is looked at before its commit has returned."""

    async def state(self: States, run: int) -> Any:
        cached = self.cache.get(run)
        return cached if cached is not None else await _state(self, run)

    return patched((States, "state", state))


def conflict_dropped_silently() -> AbstractContextManager[None]:
    """Another request under a name that is taken, from a queue: acknowledged, and gone."""

    def decide(self: CoreDecider, work: Work, transaction: Transaction, at: datetime | None = None) -> Outcome:
        if isinstance(work.command, Start):
            known = self._known(work, work.command, transaction)
            if known is not None and known.fate is Fate.CONFLICT:
                return transaction.count(work, known)
        return _decide(self, work, transaction, at)

    return patched((CoreDecider, "decide", decide))


def lease_of_a_finished_ticket_is_lost() -> AbstractContextManager[None]:
    """The gateway takes every message for unwanted, and acknowledges it."""

    def wants(_state: Any, _ticket: str, attempt: int) -> bool:
        return attempt > 1

    return patched((leases, "_wants", wants))


def catalogue_says_nothing_is_owed() -> AbstractContextManager[None]:
    row = shared_sql.row_of

    def forgetful(state: Any) -> list[Any]:
        values = row(state)
        values[5] = 0
        return values

    return patched((shared_sql, "row_of", forgetful))


MUTANTS = [
    Mutant("ack before commit", ack_before_commit, _BOTH, 50),
    Mutant("ack although the commit failed", ack_although_it_failed, _BOTH, 100),
    Mutant("publish before commit", publish_before_commit, _BOTH, 50),
    Mutant("answer the client before the commit", answer_before_commit, _BOTH, 100),
    Mutant("a lost confirmation is taken for done", lost_confirm_is_done, _BOTH, 100),
    Mutant("recovery forgets what is owed", recovery_forgets_owed, _UNMASKED, 100),
    Mutant("recovery forgets the timers", recovery_forgets_timers, _BOTH, 150),
    Mutant("no resend on a volatile broker", no_resend_on_volatile_broker, _UNMASKED, 100),
    Mutant("an order without room is forgotten", order_without_room_is_forgotten, _UNMASKED, 100),
    Mutant("no recovery after a store failure", no_recovery_after_store_failure, _BOTH, 600, 250),
    Mutant("own work is lost with the store", own_work_lost_with_the_store, _BOTH, 200),
    Mutant("a notice gives up when the store is away", notice_gives_up_when_store_is_away, _BOTH, 900),
    Mutant("stale cache after a failed commit", stale_cache_after_failed_commit, _BOTH, 100),
    Mutant("no version check, stale cache", no_version_check, _BOTH, 100),
    Mutant("duplicates are not counted", duplicates_not_counted, _BOTH, 50),
    Mutant("quarantine drops the bytes", quarantine_drops_the_bytes, _BOTH, 50),
    Mutant("two ids for one notice", two_ids_for_one_notice, _BOTH, 50),
    Mutant("a notice counts as sent when it was not", notice_recorded_before_sent, _BOTH, 300),
    Mutant("the clock follows the wall", clock_follows_the_wall, _BOTH, 100),
    Mutant("the clock forgets the journal", clock_forgets_the_journal, _BOTH, 150, 1),
    Mutant("an earlier timer is ignored", earlier_timer_ignored, _BOTH, 150),
    Mutant("the same name twice", same_name_twice, _BOTH, 150),
    Mutant("readers see what is not committed", readers_see_the_future, _BOTH, 150),
    Mutant("a conflicting request is dropped silently", conflict_dropped_silently, _BOTH, 100),
    Mutant("leases never expire", leases_never_expire, _UNMASKED, 150),
    Mutant("the gateway drops an order", lease_of_a_finished_ticket_is_lost, _UNMASKED, 100),
    Mutant("the catalogue says that nothing is owed", catalogue_says_nothing_is_owed, _BOTH, 50),
]
