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
from oraculo.adapters.stores import catalogue, sqlite_write
from oraculo.core import effects
from oraculo.core.commands import Start
from oraculo.engines import local
from oraculo.engines.local import LocalEngine
from oraculo.errors import BrokerError, StoreError
from oraculo.ports.broker import Delivery, Outgoing, Settlement
from oraculo.runtime.cache import StateCache
from oraculo.runtime.gateway import Gateway
from oraculo.runtime.handle import Handler
from oraculo.runtime.intake import Intake
from oraculo.runtime.notices import Notices
from oraculo.runtime.timers import Timers
from oraculo.runtime.work import Fate, Outcome
from oraculo.simulation.mutants import Mutant, patched

_BOTH = ("masked", "unmasked")
_UNMASKED = ("unmasked",)

_init, _recover = LocalEngine.__init__, LocalEngine._recover
_commit, _state, _one = Handler._commit, Handler.state, Handler._one
_take, _to_queue, _set, _apply = Intake.take, Notices._to_queue, Timers.set, sqlite_write.apply


def _built(change: Callable[[LocalEngine], None]) -> AbstractContextManager[None]:
    """Every engine is changed right after it was built."""

    def init(self: LocalEngine, *args: Any, **options: Any) -> None:
        _init(self, *args, **options)
        change(self)

    return patched((LocalEngine, "__init__", init))


def ack_before_commit() -> AbstractContextManager[None]:
    async def take(self: Intake, deliveries: Sequence[Delivery]) -> None:
        await self._settle([Settlement(delivery) for delivery in deliveries])
        await _take(self, deliveries)

    return patched((Intake, "take", take))


def ack_although_it_failed() -> AbstractContextManager[None]:
    async def take(self: Intake, deliveries: Sequence[Delivery]) -> None:
        with suppress(StoreError):
            await self._submit([self._translate(delivery.body, self.queue) for delivery in deliveries])
        await self._settle([Settlement(delivery) for delivery in deliveries])

    return patched((Intake, "take", take))


def publish_before_commit() -> AbstractContextManager[None]:
    def change(engine: LocalEngine) -> None:
        commit = engine.handler._commit

        async def early(handled: Any, outcomes: Any) -> None:
            for done in handled.batch.steps:
                engine.performer.take(done.state, done.effects)
            await asyncio.sleep(0.001)
            await commit(handled, outcomes)

        engine.handler._commit = early  # type: ignore[method-assign]

    return _built(change)


def answer_before_commit() -> AbstractContextManager[None]:
    async def early(self: Handler, handled: Any, outcomes: Any) -> None:
        for work, outcome in outcomes:
            work.settle(outcome)
        await asyncio.sleep(0.001)
        await _commit(self, handled, [])

    return patched((Handler, "_commit", early))


def lost_confirm_is_done() -> AbstractContextManager[None]:
    class Trusting:
        def __init__(self, broker: Any) -> None:
            self._broker = broker
            self.scheme = broker.scheme

        async def publish(self, messages: Sequence[Outgoing]) -> None:
            with suppress(BrokerError):
                await self._broker.publish(messages)

    def change(engine: LocalEngine) -> None:
        engine.performer._broker = Trusting(engine.broker)  # type: ignore[assignment]

    return _built(change)


def recovery_forgets_owed() -> AbstractContextManager[None]:
    return patched((local, "owed_effects", lambda *_args, **_options: []))


def recovery_forgets_timers() -> AbstractContextManager[None]:
    async def recover(self: LocalEngine) -> None:
        await _recover(self)
        self.timers = Timers()

    return patched((LocalEngine, "_recover", recover))


def no_resend_on_volatile_broker() -> AbstractContextManager[None]:
    return patched((local, "owed_effects", lambda state, _forgotten=None: effects.owed_effects(state)))


def no_recovery_after_store_failure() -> AbstractContextManager[None]:
    """A transaction that failed and was written all the same: nobody does what it owes."""

    async def forget(self: LocalEngine) -> None:
        self.handler.doubtful.clear()

    return patched((LocalEngine, "_settle_doubts", forget))


def own_work_lost_with_the_store() -> AbstractContextManager[None]:
    return patched((LocalEngine, "_keep_own", lambda _self, _works: None))


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
    def counted(batch: Any, work: Any, outcome: Outcome) -> Outcome:
        if work.queue and outcome.fate is not Fate.DUPLICATE:
            batch.counts[work.queue, outcome.fate.value] += 1
        return outcome

    return patched((Handler, "_counted", staticmethod(counted)))


def quarantine_drops_the_bytes() -> AbstractContextManager[None]:
    def quarantine(_self: Handler, batch: Any, work: Any, dead: Any, run: int = 0) -> Outcome:
        batch.counts[dead.queue, Fate.QUARANTINED.value] += 1
        return Outcome(Fate.QUARANTINED, dead.reason, run, work.correlation_id)

    return patched((Handler, "_quarantine", quarantine))


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
    return patched((Handler, "_known", lambda *_: None))


def leases_never_expire() -> AbstractContextManager[None]:
    async def sweep(_self: Gateway) -> int:
        return 0

    return patched((Gateway, "sweep", sweep))


def readers_see_the_future() -> AbstractContextManager[None]:
    """Nobody waits for the commit before looking at a state."""

    async def state(self: Handler, run: int) -> Any:
        cached = self.cache.get(run)
        return cached if cached is not None else await _state(self, run)

    return patched((Handler, "state", state))


def conflict_dropped_silently() -> AbstractContextManager[None]:
    """Another request under a name that is taken, from a queue: acknowledged, and gone."""

    def one(self: Handler, work: Any, now: datetime, handled: Any, keys: Any, broken: set[int]) -> Outcome:
        if isinstance(work.command, Start):
            known = self._known(work, work.command, keys)
            if known is not None and known.fate is Fate.CONFLICT:
                return self._counted(handled.batch, work, known)
        return _one(self, work, now, handled, keys, broken)

    return patched((Handler, "_one", one))


def lease_of_a_finished_ticket_is_lost() -> AbstractContextManager[None]:
    """The gateway thinks that nobody wants any message, and acknowledges it."""

    async def wanted(_self: Gateway, _ticket: str, attempt: int) -> bool:
        return attempt > 1

    return patched((Gateway, "_wanted", wanted))


def catalogue_says_nothing_is_owed() -> AbstractContextManager[None]:
    row = catalogue.row_of

    def forgetful(state: Any) -> list[Any]:
        values = row(state)
        values[5] = 0
        return values

    return patched((catalogue, "row_of", forgetful))


MUTANTS = [
    Mutant("ack before commit", ack_before_commit, _BOTH, 50),
    Mutant("ack although the commit failed", ack_although_it_failed, _BOTH, 100),
    Mutant("publish before commit", publish_before_commit, _BOTH, 50),
    Mutant("answer the client before the commit", answer_before_commit, _BOTH, 100),
    Mutant("a lost confirmation is taken for done", lost_confirm_is_done, _BOTH, 100),
    Mutant("recovery forgets what is owed", recovery_forgets_owed, _UNMASKED, 100),
    Mutant("recovery forgets the timers", recovery_forgets_timers, _BOTH, 150),
    Mutant("no resend on a volatile broker", no_resend_on_volatile_broker, _UNMASKED, 100),
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
