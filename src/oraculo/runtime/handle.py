"""Many pieces of work → steps → one transaction → outcomes.

The states in memory run ahead of the disk only between the step and the commit; nothing is told to anybody, and nothing
is sent, before the commit returned. When the commit fails, the states that ran ahead are dropped and nobody is told
anything but the failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

import structlog

from oraculo.core.commands import RecordResult, Start
from oraculo.core.state import Orchestration, fold
from oraculo.core.step import Step, step
from oraculo.core.verdict import document
from oraculo.errors import StoreUnavailableError
from oraculo.ports.clock import Clock
from oraculo.ports.sharing import sharing
from oraculo.ports.store import Asked, Batch, DeadLetter, Found, Key, Recorded, Store
from oraculo.runtime import crash
from oraculo.runtime.cache import StateCache
from oraculo.runtime.work import FATE_OF, Closed, Fate, Outcome, Work
from oraculo.wire import strict_json

log = structlog.get_logger("oraculo.handle")

BROKEN = "broken"  # another message of the same orchestration made its step fail
BROKEN_TOO = "another message of the same orchestration could not be handled; try again"


class Handled:
    """What one transaction did: its steps in order, and the orchestrations that ended in it."""

    __slots__ = ("batch", "broken", "closed")

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.broken: set[int] = set()  # orchestrations that took no part, because a step of theirs failed
        self.closed: list[Closed] = []


class Handler:
    def __init__(self, store: Store, clock: Clock, cache: StateCache | None = None) -> None:
        self.store = store
        self.clock = clock
        self._sharing = sharing(store)
        self._follow = getattr(clock, "follow", None)
        self.cache = cache or StateCache()
        self._settled = asyncio.Event()
        self._settled.set()
        # Orchestrations of a transaction that failed → their version before it. It may have been written all the same.
        self.doubtful: dict[int, int] = {}
        self._visitors: list[int] = []  # orchestrations that were loaded since `release`

    async def handle(self, works: Sequence[Work]) -> Handled:
        """All of it durable, or StoreUnavailableError and nothing changed. Outcomes are told before it returns."""
        try:
            found = await self._load(works)
        except BaseException as error:
            for work in works:
                work.fail(error)
            raise
        handled = Handled(Batch(found.at or self.clock.now()))
        outcomes: list[tuple[Work, Outcome]] = []
        broken = handled.broken
        try:
            for work in works:
                outcomes.append((work, self._one(work, handled.batch.at, handled, found.keys, broken)))
            if broken:
                outcomes = self._without(broken, handled, outcomes, StoreUnavailableError(BROKEN_TOO))
            outcomes = await self._before_commit(handled, outcomes)
        except BaseException:
            await self.store.abandon()
            raise
        await self._commit(handled, outcomes)
        return handled

    async def state(self, run: int) -> Orchestration | None:
        """The committed state of an orchestration. Read it at once: it may be the live one, and go on changing."""
        seen = (await self._sharing.progress([run])).get(run) if self._sharing is not None else None
        while not self._settled.is_set():  # once is not enough: the next transaction may have begun meanwhile
            await self._settled.wait()
        state = self.cache.get(run)
        if state is None or (seen is not None and state.version < seen.version):
            recorded = (await self.store.load([run])).get(run)
            state = catch_up(None, recorded) if recorded else None
        return state

    def still_owed(self, run: int, tickets: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
        """Those of these (position, attempt) that are not known to be owed no longer. What is in memory may be older
        than what others have committed: it knows nothing of attempts and tickets that came after it."""
        state = self.cache.get(run) if self._settled.is_set() else None
        if state is None:
            return tickets
        known, owed = state.tickets, state.owed
        return [
            (position, attempt)
            for position, attempt in tickets
            if position in owed or position >= len(known) or known[position].attempt < attempt
        ]

    # -- load --------------------------------------------------------------------------------------------------------

    async def _load(self, works: Sequence[Work]) -> Found:
        """Bring every orchestration that the work names into the cache, as it is in the store now."""
        asked = self._asked(works)
        found = await self.store.begin(asked)
        if found.at is not None and self._follow is not None:
            self._follow(found.at)
        for run in found.gone:
            self.cache.drop(run)
        for run, recorded in found.news.items():
            state = self.cache.get(run)
            self.cache.put(catch_up(state, recorded))
            self._visitors.append(run)
        return found

    def _asked(self, works: Sequence[Work]) -> Asked:
        cache = self.cache
        known: dict[int, int] = {}
        names: set[str] = set()
        keys: set[str] = set()
        for work in works:
            if work.key is not None:
                keys.add(work.key.key)
            if work.fresh:
                continue
            run = work.run or cache.run_of(work.correlation_id)
            if run:
                state = cache.get(run)
                known[run] = 0 if state is None else state.version
            elif work.correlation_id:
                names.add(work.correlation_id)
        return Asked(known, sorted(names), sorted(keys))

    # -- step --------------------------------------------------------------------------------------------------------

    def _one(self, work: Work, now: datetime, handled: Handled, keys: dict[str, Key], broken: set[int]) -> Outcome:
        batch = handled.batch
        command = work.command
        if work.dead is not None:
            return self._quarantine(batch, work, work.dead)
        if command is None:
            return Outcome(Fate.IDLE)
        if isinstance(command, Start):
            known = self._known(work, command, keys)
            if known is not None and known.fate is Fate.CONFLICT and work.queue:
                detail = f"the {known.reason} was already used with a different body"
                return self._quarantine(batch, work, _dead(work, "conflict", detail), known.run)
            if known is not None:
                return self._counted(batch, work, known)
            state = None
        else:
            run = work.run or self.cache.run_of(work.correlation_id) or 0
            state = self.cache.get(run)
            if state is None:
                if isinstance(command, RecordResult):
                    detail = f"no orchestration has the correlation_id {work.correlation_id!r}"
                    return self._quarantine(batch, work, _dead(work, "unknown_correlation", detail))
                return Outcome(Fate.UNKNOWN)
            if run in broken:
                return Outcome(Fate.IDLE, BROKEN, run)
        was_closed = state is not None and state.closed_at is not None
        try:
            done = step(state, command, now)
        except Exception as error:
            run = command.run if isinstance(command, Start) else state.run if state else 0
            log.exception("step failed", correlation_id=work.correlation_id, command=type(command).__name__)
            broken.add(run)
            return self._quarantine(batch, work, _dead(work, "handler_error", f"{type(error).__name__}: {error}"))
        state = done.state
        if done.events:
            batch.steps.append(done)
            if done.first == 1:
                self.cache.put(state)
                if work.key is not None:
                    batch.keys.append(work.key)
                    keys[work.key.key] = work.key
            if state.closed_at is not None and not was_closed:
                result = strict_json.dumps(document(state, now))
                batch.results[state.run] = result
                handled.closed.append(Closed(state, result))
        if done.verdict.refused:
            reason = done.verdict.value
            return self._quarantine(batch, work, _dead(work, reason, explain(reason)), state.run)
        outcome = Outcome(FATE_OF[done.verdict], done.verdict.value, state.run, state.correlation_id)
        return self._counted(batch, work, outcome)

    def _known(self, work: Work, command: Start, keys: dict[str, Key]) -> Outcome | None:
        """The orchestration that this request already started, or the conflict with another; None when it is new."""
        if work.key is not None and work.key.key in keys:
            used = keys[work.key.key]
            state = self.cache.get(used.run)
            if used.fingerprint != work.key.fingerprint:
                return Outcome(Fate.CONFLICT, "Idempotency-Key", used.run)
            return Outcome(Fate.DUPLICATE, "", used.run, state.correlation_id if state else "")
        run = self.cache.run_of(command.correlation_id)
        state = self.cache.get(run) if run is not None else None
        if state is None:
            return None
        if state.fingerprint != command.fingerprint:
            return Outcome(Fate.CONFLICT, "correlation_id", state.run, state.correlation_id)
        return Outcome(Fate.DUPLICATE, "", state.run, state.correlation_id)

    @staticmethod
    def _counted(batch: Batch, work: Work, outcome: Outcome) -> Outcome:
        if work.queue:
            batch.counts[work.source, outcome.fate] += 1
        return outcome

    def _quarantine(self, batch: Batch, work: Work, dead: DeadLetter, run: int = 0) -> Outcome:
        """Keep the bytes and the reason. A command that did not come as a message has nothing to keep."""
        if work.queue:
            batch.dead.append(dead)
            batch.counts[work.source, Fate.QUARANTINED] += 1
        return Outcome(Fate.QUARANTINED, dead.reason, run, work.correlation_id)

    async def _before_commit(
        self, _handled: Handled, outcomes: list[tuple[Work, Outcome]]
    ) -> list[tuple[Work, Outcome]]:
        """A last chance for engines that have somebody else to ask; what is left out here is not written."""
        return outcomes

    def _without(
        self, broken: set[int], handled: Handled, outcomes: list[tuple[Work, Outcome]], error: StoreUnavailableError
    ) -> list[tuple[Work, Outcome]]:
        """Orchestrations that take no part in this transaction, and why; the rest goes on."""
        batch = handled.batch
        batch.steps = [done for done in batch.steps if done.state.run not in broken]
        handled.closed = [closed for closed in handled.closed if closed.state.run not in broken]
        batch.keys = [key for key in batch.keys if key.run not in broken]
        for run in broken:
            batch.results.pop(run, None)
            self.cache.drop(run)
        kept = []
        for work, outcome in outcomes:
            if outcome.run in broken and outcome.fate is not Fate.QUARANTINED:
                work.refuse(error)
                if work.queue and outcome.reason != BROKEN:
                    batch.counts[work.source, outcome.fate.value] -= 1  # it will come again
            else:
                kept.append((work, outcome))
        return kept

    # -- commit ------------------------------------------------------------------------------------------------------

    async def _commit(self, handled: Handled, outcomes: list[tuple[Work, Outcome]]) -> None:
        batch = handled.batch
        if not batch:
            await self.store.abandon()
        else:
            self._settled.clear()
            crash.point("before_commit")
            if handled.closed:
                crash.point("before_close")
            try:
                await self.store.append(batch)
            except BaseException as error:
                for done in batch.steps:
                    self.doubtful.setdefault(done.state.run, done.first - 1)
                    self.cache.drop(done.state.run)
                for work, _ in outcomes:
                    work.fail(error)
                raise
            finally:
                self._settled.set()
            crash.point("after_commit")
        for work, outcome in outcomes:
            work.settle(outcome)

    def release(self, steps: Sequence[Step]) -> None:
        """After the effects are on their way: forget what is finished with the world, and stay within bounds."""
        for done in steps:
            self._forget_finished(done.state)
        for run in self._visitors:  # loaded for a duplicate, a late answer, a question
            visitor = self.cache.get(run)
            if visitor is not None:
                self._forget_finished(visitor)
        self._visitors.clear()
        self.cache.trim()

    def _forget_finished(self, state: Orchestration) -> None:
        if state.closed_at is not None and not state.owes and state.wake_at() is None:
            self.cache.drop(state.run)


def catch_up(state: Orchestration | None, recorded: Sequence[Recorded]) -> Orchestration:
    """The state with the steps that it does not know yet."""
    version = 0 if state is None else state.version
    return fold(((one.at, one.events) for one in recorded if one.first > version), state)


def _dead(work: Work, reason: str, detail: str) -> DeadLetter:
    return DeadLetter(work.queue, reason, detail, work.body, work.correlation_id or None)


def explain(reason: str) -> str:
    return {
        "ambiguous": "more than one open ticket could have given this answer; echo ticket_id to tell them apart",
        "unknown_ticket": "the orchestration has no ticket that this answer could belong to",
        "wrong_attempt": "the answer is for an attempt that was never made",
    }[reason]
