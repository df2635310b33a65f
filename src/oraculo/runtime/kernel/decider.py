"""What one piece of work does to a transaction. The core decides; here its command finds the state it is for.

An engine that decides elsewhere (Temporal) gives the commit loop a decider of its own, which may use this one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

import structlog

from oraculo.core import children
from oraculo.core.commands import Command, Grow, Judge, RecordResult, Resolve, Start
from oraculo.core.state import Orchestration
from oraculo.core.step import step
from oraculo.core.tenants import local_name
from oraculo.errors import OraculoError
from oraculo.ports.dead_letters import DeadLetter
from oraculo.ports.journal import LockRequest
from oraculo.ports.work import FATE_OF, EngineCommand, EvaluatedTasks, Fate, Outcome, Work
from oraculo.runtime.kernel.cache import StateCache
from oraculo.runtime.kernel.transaction import BROKEN, Transaction, unique_key

log = structlog.get_logger("oraculo.handle")


Evaluate = Callable[[Orchestration], Sequence[Resolve | Grow]]
Known = Callable[[Orchestration], Sequence[Judge]]
VERDICTS_MAX_ROUNDS = 4  # of verdicts that are known, in one step: a plan, its tickets, and what those lead to


class Decider(Protocol):
    """Turns work into steps. Called for one piece at a time, between the reads of a transaction and its commit."""

    def locks(self, works: Sequence[Work]) -> LockRequest:
        """Name what the transaction has to read, and hold, before `decide` is called."""
        ...

    def decide(self, work: Work, transaction: Transaction) -> Outcome:
        """Add to the transaction what this work causes. Never raises on what the world sends."""
        ...


class CommitGuard(Protocol):
    """Has the last word before a commit: an engine that has to tell another service first."""

    async def refused(self, transaction: Transaction) -> dict[int, OraculoError]:
        """Return the runs that must not be committed now, and why; their callers are told to try again."""
        ...


class CoreDecider:
    """Steps the core with the command, on the state in memory that `locks` brought up to date. `evaluate` gives what
    expressions that the state asks for are; without it they stay owed, as what needs too long does. `known` gives the
    verdicts of policies that need not be asked for."""

    def __init__(self, cache: StateCache, evaluate: Evaluate | None = None, known: Known | None = None) -> None:
        self._cache = cache
        self._evaluate = evaluate
        self._known_verdicts = known

    def locks(self, works: Sequence[Work]) -> LockRequest:
        cache = self._cache
        known: dict[int, int] = {}
        names: set[str] = set()
        keys: set[str] = set()
        unique: set[str] = set()
        for work in works:
            if work.key is not None:
                keys.add(work.key.key)
            if isinstance(work.command, Start) and work.command.plan.unique is not None:
                unique.add(unique_key(work.correlation_id, work.command.plan.unique))
            if work.fresh:
                continue
            parent = work.command.plan.parent if isinstance(work.command, Start) else None
            if parent is not None:  # a child begins while its parent wants it, and not a moment later
                state = cache.get(parent.run)
                known[parent.run] = 0 if state is None else state.version
            run = work.run or cache.run_of(work.correlation_id)
            if run:
                state = cache.get(run)
                known[run] = 0 if state is None else state.version
            elif work.correlation_id:
                names.add(work.correlation_id)
        return LockRequest(known, sorted(names), sorted(keys), sorted(unique))

    def decide(self, work: Work, transaction: Transaction, at: datetime | None = None) -> Outcome:
        """As the protocol says. `at`: the instant of the step, when it is not that of the transaction."""
        if work.dead is not None:
            return transaction.quarantine(work, work.dead)
        command = work.command
        if command is None:
            return Outcome(Fate.IDLE)
        if isinstance(command, Start):
            return self._start(work, command, transaction)
        if isinstance(command, EngineCommand):
            raise TypeError(f"{type(command).__name__} is not for the core")
        run = work.run or self._cache.run_of(work.correlation_id) or 0
        state = self._cache.get(run)
        if state is None:
            return self._unknown(work, transaction)
        if run in transaction.broken:
            return Outcome(Fate.IDLE, BROKEN, run)
        if isinstance(command, EvaluatedTasks):
            outcome = Outcome(Fate.IDLE, "", run)
            for one in command.commands:
                outcome = self._step(state, one, work, transaction, at or transaction.at)
                if run in transaction.broken:
                    break
            return outcome
        return self._step(state, command, work, transaction, at or transaction.at)

    def _start(self, work: Work, command: Start, transaction: Transaction) -> Outcome:
        parent = command.plan.parent
        if parent is not None and not children.is_wanted(self._cache.get(parent.run), parent):
            return Outcome(Fate.IDLE, "parent_ended", 0, command.correlation_id)
        known = self._known(work, command, transaction)
        if known is None:
            return self._merged(work, command, transaction) or self._begin(work, command, transaction)
        if known.fate is Fate.CONFLICT and work.queue:
            detail = f"the {known.reason} was already used with a different body"
            return transaction.quarantine(work, _dead(work, "conflict", detail), known.run)
        return transaction.count(work, known)

    def _begin(self, work: Work, command: Start, transaction: Transaction) -> Outcome:
        """Start it; a retry takes over what it reuses in the same transaction, so that it is never seen without."""
        outcome = self._step(None, command, work, transaction, transaction.at)
        state = self._cache.get(command.run)
        for one in work.reuse if state is not None else ():
            self._step(state, one, work, transaction, transaction.at)
        return outcome

    def _known(self, work: Work, command: Start, transaction: Transaction) -> Outcome | None:
        """The orchestration that this request already started, or the conflict with another; None when it is new."""
        if work.key is not None and work.key.key in transaction.keys:
            used = transaction.keys[work.key.key]
            state = self._cache.get(used.run)
            if used.fingerprint != work.key.fingerprint:
                return Outcome(Fate.CONFLICT, "Idempotency-Key", used.run)
            return Outcome(Fate.DUPLICATE, "", used.run, state.correlation_id if state else "")
        run = self._cache.run_of(command.correlation_id)
        state = self._cache.get(run) if run is not None else None
        if state is None:
            taken = transaction.erased.get(command.correlation_id)
            return None if taken is None else Outcome(Fate.CONFLICT, "correlation_id", taken, command.correlation_id)
        if state.fingerprint != command.fingerprint:
            return Outcome(Fate.CONFLICT, "correlation_id", state.run, state.correlation_id)
        return Outcome(Fate.DUPLICATE, "", state.run, state.correlation_id)

    def _merged(self, work: Work, command: Start, transaction: Transaction) -> Outcome | None:
        """Merge a request that exists once into the run that holds its key; None when it begins a run. Retries begin
        one in any case."""
        unique = command.plan.unique
        if unique is None or command.origin is not None:
            return None
        holder = transaction.holders.get(unique_key(command.correlation_id, unique))
        if holder is None:
            return None
        state = self._cache.get(holder.run)
        is_open = holder.open and (state is None or state.closed_at is None)
        if not unique.merges(holder.since, is_open, transaction.at):
            return None
        return transaction.merge(work, command, holder)

    @staticmethod
    def _unknown(work: Work, transaction: Transaction) -> Outcome:
        """There is no such orchestration: an answer is kept as a dead letter, any other command is told so."""
        if not isinstance(work.command, RecordResult):
            return Outcome(Fate.UNKNOWN)
        detail = f"no orchestration has the correlation_id {local_name(work.correlation_id)!r}"
        return transaction.quarantine(work, _dead(work, "unknown_correlation", detail))

    def _step(
        self, state: Orchestration | None, command: Command, work: Work, transaction: Transaction, at: datetime
    ) -> Outcome:
        was_closed = state is not None and state.closed_at is not None
        try:
            done = step(state, command, at)
        except Exception as error:
            run = command.run if isinstance(command, Start) else state.run if state else 0
            log.exception("step failed", correlation_id=work.correlation_id, command=type(command).__name__)
            transaction.broken.add(run)
            return transaction.quarantine(work, _dead(work, "handler_error", f"{type(error).__name__}: {error}"))
        state = done.state
        if done.events:
            if done.first == 1:
                self._cache.put(state)
                if work.key is not None:
                    transaction.add_key(work.key)
                transaction.hold(state)
            transaction.add(done, was_closed)
            if state.asks_anything and self._evaluate is not None:
                self._resolve(state, self._evaluate, transaction, at)
            if state.policy is not None and self._known_verdicts is not None:
                self._judge(state, self._known_verdicts, transaction, at)
        if done.verdict.refused:
            reason = done.verdict.value
            return transaction.quarantine(work, _dead(work, reason, explain(reason)), state.run)
        outcome = Outcome(FATE_OF[done.verdict], done.verdict.value, state.run, state.correlation_id)
        return transaction.count(work, outcome)

    @staticmethod
    def _resolve(state: Orchestration, evaluate: Evaluate, transaction: Transaction, at: datetime) -> None:
        """Further steps of the same transaction: what expressions give may ask for more."""
        while state.asks_anything and (commands := evaluate(state)):
            moved = False
            for command in commands:
                done = step(state, command, at)
                if done.events:
                    transaction.add(done, False)
                    moved = True
            if not moved:
                return

    def _judge(self, state: Orchestration, known: Known, transaction: Transaction, at: datetime) -> None:
        """Further steps of the same transaction: what policies allow may start what asks again."""
        for _ in range(VERDICTS_MAX_ROUNDS):
            verdicts = known(state)
            for command in verdicts:
                done = step(state, command, at)
                if done.events:
                    transaction.add(done, False)
            if verdicts and state.asks_anything and self._evaluate is not None:
                self._resolve(state, self._evaluate, transaction, at)
            if not verdicts:
                return


def _dead(work: Work, reason: str, detail: str) -> DeadLetter:
    return DeadLetter(work.queue, reason, detail, work.body, work.correlation_id or None)


def explain(reason: str) -> str:
    """Return the sentence for a verdict of the core that refuses an answer."""
    return {
        "ambiguous": "more than one ticket could have given this answer; echo ticket_id to tell them apart",
        "unknown_ticket": "the orchestration has no ticket that this answer could belong to",
        "wrong_attempt": "the answer is for an attempt that was never made",
        "run_ended": "the orchestration has ended, and its result is final: start it anew",
        "already_decided": "the end of this ticket was counted already, or it did not fail: start the run anew",
        "too_many_answers": "the ticket holds as many answers that disagree as it may, and this is another one",
    }[reason]
