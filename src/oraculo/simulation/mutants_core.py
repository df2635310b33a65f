"""Mutants of the core: rules, counts, deadlines, replay."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from heapq import heappop
from itertools import count
from typing import Any

from oraculo.core import advance, compensation, decide, endings, fan_in, matching, notices, plan, results, state, step
from oraculo.core import events as ev
from oraculo.core.commands import RecordResult
from oraculo.core.fan_in import GateCount
from oraculo.core.notice_state import NoticePhase
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Cause, Ending, FanIn, Phase, Status, UndoCause, Verdict
from oraculo.simulation.mutants import Mutant, patched

_CORE = ("core-masked", "core-unmasked")
_FLOW = ("flow-masked", "flow-unmasked")

_record, _failed, _evolve, _advance = results.record, results.failed, state.evolve, advance.advance
_to_undo, _additions, _by_majority = advance._to_undo, compensation.additions, endings._by_majority
_close, _decide, _wake = state._close, fan_in.decide, decide._wake


def _with_evolve(changed: Any) -> AbstractContextManager[None]:
    return patched((state, "evolve", changed), (step, "evolve", changed))


def no_duplicate_detection() -> AbstractContextManager[None]:
    def record(s: Orchestration, answer: RecordResult, now: datetime) -> Any:
        for ticket in s.tickets:
            ticket.answered = ticket.digest = 0
        return _record(s, answer, now)

    return patched((results, "record", record))


def late_answer_overwrites() -> AbstractContextManager[None]:
    def record(s: Orchestration, answer: RecordResult, now: datetime) -> Any:
        event, verdict = _record(s, answer, now)
        if isinstance(event, ev.LateAnswerKept) and event.ok:
            return ev.TicketConcluded(event.ticket, event.attempt, event.dados, [], event.digest), Verdict.APPLIED
        return event, verdict

    return patched((results, "record", record))


def conflicting_answer_is_dropped() -> AbstractContextManager[None]:
    """Every second answer to an attempt is called a duplicate, whatever it says."""

    def record(s: Orchestration, answer: RecordResult, now: datetime) -> Any:
        event, verdict = _record(s, answer, now)
        return (None, Verdict.DUPLICATE) if verdict is Verdict.CONFLICTING else (event, verdict)

    return patched((results, "record", record))


def attempt_not_fenced() -> AbstractContextManager[None]:
    def record(s: Orchestration, answer: RecordResult, now: datetime) -> Any:
        answer.attempt = None
        return _record(s, answer, now)

    return patched((results, "record", record))


def failure_after_success_counts() -> AbstractContextManager[None]:
    """The fence looks at the attempt only, not at whether the ticket is closed."""

    def record(s: Orchestration, answer: RecordResult, now: datetime) -> Any:
        position = matching.match(s, answer)
        if isinstance(position, int) and s.tickets[position].phase is Phase.BACKOFF:
            s.tickets[position].phase = Phase.RUNNING
        return _record(s, answer, now)

    return patched((results, "record", record))


def stale_timer_fires() -> AbstractContextManager[None]:
    def due(self: Orchestration, now: datetime) -> Iterator[int]:
        while self.timers and self.timers[0][0] <= now:
            _at, timer = heappop(self.timers)
            if timer < 0 or self.tickets[timer].phase is not Phase.CLOSED:
                yield timer

    return patched((Orchestration, "due", due))


def timeout_early() -> AbstractContextManager[None]:
    def evolve(s: Orchestration, event: ev.Event, at: datetime) -> None:
        _evolve(s, event, at)
        if isinstance(event, ev.DispatchConfirmed):
            for position, _attempt in event.tickets:
                s.tickets[position].due_at = due = at + s.plan.tasks[position].timeout * 0.99
                s.arm(position, due)

    return _with_evolve(evolve)


def retry_without_cause() -> AbstractContextManager[None]:
    def timed_out(s: Orchestration, position: int, _now: datetime) -> ev.Event:
        return ev.TicketsDispatched([position], s.tickets[position].attempt + 1)

    return patched((results, "timed_out", timed_out))


def retry_at_once() -> AbstractContextManager[None]:
    """The wait is recorded and not kept."""

    def wake(s: Orchestration, now: datetime) -> Any:
        for position, ticket in enumerate(s.tickets):
            if ticket.phase is Phase.BACKOFF and ticket.due_at is not None and ticket.due_at > now:
                ticket.due_at = now
                s.arm(position, now)
        return _wake(s, now)

    return patched((decide, "_wake", wake))


def one_attempt_too_many() -> AbstractContextManager[None]:
    def failed(s: Orchestration, position: int, cause: Cause, *rest: Any) -> ev.Event:
        event = _failed(s, position, cause, *rest)
        if isinstance(event, ev.TicketFailed) and not event.definitivo:
            retry_at = rest[1] + timedelta(seconds=1)
            return ev.AttemptFailed(position, event.attempt, cause, event.erros, retry_at, event.dados, event.digest)
        return event

    return patched((results, "failed", failed))


def definitive_failure_retried() -> AbstractContextManager[None]:
    def record(s: Orchestration, answer: RecordResult, now: datetime) -> Any:
        return _record(s, replace(answer, definitivo=False), now)

    return patched((results, "record", record))


def gate_counts_twice() -> AbstractContextManager[None]:
    def close(s: Orchestration, position: int, status: Status, at: datetime) -> None:
        _close(s, position, status, at)
        if status is Status.CONCLUIDA:
            for number in s.plan.tasks[position].feeds:
                s.gates[number].ok += 1

    return patched((state, "_close", close))


def quorum_off_by_one() -> AbstractContextManager[None]:
    def wrong(mode: FanIn, needed: int, inputs: int, counted: GateCount) -> bool | None:
        return _decide(mode, needed - 1 if mode is FanIn.QUORUM and needed > 1 else needed, inputs, counted)

    return patched((fan_in, "decide", wrong))


def all_means_one() -> AbstractContextManager[None]:
    def decide(mode: FanIn, needed: int, inputs: int, count: GateCount) -> bool | None:
        if mode is FanIn.TODAS_OK:
            return True if count.ok else None if count.closed < inputs else False
        return _decide(mode, needed, inputs, count)

    return patched((fan_in, "decide", decide))


def gate_never_fails_early() -> AbstractContextManager[None]:
    def patient(mode: FanIn, needed: int, inputs: int, counted: GateCount) -> bool | None:
        decided = _decide(mode, needed, inputs, counted)
        return None if decided is False and counted.closed < inputs else decided

    return patched((fan_in, "decide", patient))


def dispatch_before_gate() -> AbstractContextManager[None]:
    def early(s: Orchestration, event: ev.Event, now: datetime) -> list[ev.Event]:
        if isinstance(event, ev.OrchestrationStarted):
            return [ev.TicketsDispatched(list(range(len(s.tickets))), 1)]
        return _advance(s, event, now)

    return patched((step, "advance", early))


def cancel_leaves_tickets_open() -> AbstractContextManager[None]:
    def end(_s: Orchestration, status: Status, *_reason: Any, **_undo: Any) -> list[ev.Event]:
        return [ev.OrchestrationClosed(status)]

    return patched((advance, "_end", end))


def ends_too_well() -> AbstractContextManager[None]:
    return patched((endings, "_ENDINGS", dict.fromkeys(Ending, lambda _s: Status.CONCLUIDA)))


def deadline_ignored() -> AbstractContextManager[None]:
    def wake(s: Orchestration, now: datetime) -> Any:
        return ([], Verdict.IDLE) if not s.status.final and s.out_of_time(now) else _wake(s, now)

    return patched((decide, "_wake", wake))


def no_notice() -> AbstractContextManager[None]:
    def silent(s: Orchestration, event: ev.Event, now: datetime) -> list[ev.Event]:
        return [] if isinstance(event, ev.OrchestrationClosed) else _advance(s, event, now)

    return patched((step, "advance", silent))


def notice_outcome_not_matched() -> AbstractContextManager[None]:
    """The report of an earlier try is taken for the present one."""
    delivered = notices.delivered

    def taken(s: Orchestration, report: Any, now: datetime) -> Any:
        if 0 <= report.notice < len(s.notices):
            report = replace(report, attempt=max(1, s.notices[report.notice].attempt))
            s.notices[report.notice].phase = NoticePhase.OWED
        return delivered(s, report, now)

    return patched((notices, "delivered", taken))


def waits_are_drawn() -> AbstractContextManager[None]:
    """Jitter that is not a function of ticket and attempt: a replay decides otherwise."""
    numbers = count(1)
    return patched((results, "jittered", lambda *_: timedelta(milliseconds=next(numbers) % 400)))


def still_owed_after_the_answer() -> AbstractContextManager[None]:
    def close(s: Orchestration, position: int, status: Status, at: datetime) -> None:
        owed = position in s.owed
        _close(s, position, status, at)
        if owed:
            s.owed.add(position)

    return patched((state, "_close", close))


def fact_outside_the_journal() -> AbstractContextManager[None]:
    """A decision that changes the state by itself instead of through an event."""

    def confirm(s: Orchestration, tickets: list[tuple[int, int]]) -> Any:
        events, verdict = _confirm(s, tickets)
        if not events:
            s.cancel_reason = "idle"
        return events, verdict

    _confirm = decide._confirm
    return patched((decide, "_confirm", confirm))


def undone_in_order() -> AbstractContextManager[None]:
    def needed(s: Orchestration) -> list[int]:
        return sorted(_to_undo(s))

    return patched((advance, "_to_undo", needed))


def only_the_failure_is_undone() -> AbstractContextManager[None]:
    def needed(s: Orchestration) -> list[int]:
        return [p for p in _to_undo(s) if s.tickets[p].status is not Status.CONCLUIDA]

    return patched((advance, "_to_undo", needed))


def all_undone_at_once() -> AbstractContextManager[None]:
    def additions(whole: plan.Plan, undone: list[int]) -> plan.Added:
        added = _additions(whole, undone)
        for task in added.tasks:
            task.after = None
        return added

    return patched((compensation, "additions", additions))


def compensation_by_constants() -> AbstractContextManager[None]:
    """The journal says that something is undone, and leaves to the code how."""

    def started(_whole: plan.Plan, undone: list[int]) -> ev.CompensationStarted:
        return ev.CompensationStarted(undone, UndoCause.TASK_FAILED)

    return patched((compensation, "started", started))


def does_not_wait_for_a_human() -> AbstractContextManager[None]:
    def changed(s: Orchestration, event: ev.Event, now: datetime) -> list[ev.Event]:
        if isinstance(event, ev.ApprovalAsked):
            return advance._first(s, now)
        return _advance(s, event, now)

    return patched((advance, "advance", changed), (step, "advance", changed))


def what_was_undone_counts_as_done() -> AbstractContextManager[None]:
    def ending(s: Orchestration) -> Status:
        return Status.CONCLUIDA if s.undoes else _by_majority(s)

    return patched((endings, "_ENDINGS", {**endings._ENDINGS, Ending.MAJORITY: ending}))


def any_answer_counts_for_what_undoes() -> AbstractContextManager[None]:
    """One that names no ticket may be a late one of what is undone."""
    return patched((Orchestration, "asked", property(lambda s: len(s.tickets))))


MUTANTS = [
    Mutant("an unnamed answer undoes", any_answer_counts_for_what_undoes, _FLOW, 400),
    Mutant("undone in the order of doing", undone_in_order, _FLOW, 100),
    Mutant("only the failure is undone", only_the_failure_is_undone, _FLOW, 100),
    Mutant("everything is undone at once", all_undone_at_once, _FLOW, 100),
    Mutant("the journal does not say how it is undone", compensation_by_constants, _FLOW, 100),
    Mutant("no human is waited for", does_not_wait_for_a_human, _FLOW, 50),
    Mutant("what was undone counts as done", what_was_undone_counts_as_done, _FLOW, 100),
    Mutant("no duplicate detection", no_duplicate_detection, _CORE, 50),
    Mutant("a late answer overwrites", late_answer_overwrites, _CORE, 50),
    Mutant("a conflicting answer is dropped", conflicting_answer_is_dropped, _CORE, 50),
    Mutant("the attempt is not fenced", attempt_not_fenced, _CORE, 100),
    Mutant("an answer during the wait counts", failure_after_success_counts, ("core-masked",), 100),
    Mutant("a stale timer fires", stale_timer_fires, ("core-masked",), 200),
    Mutant("timeout early by 1 %", timeout_early, ("core-masked",), 100),
    Mutant("retry without a recorded cause", retry_without_cause, ("core-masked",), 50),
    Mutant("retry before its time", retry_at_once, _CORE, 100),
    Mutant("one attempt too many", one_attempt_too_many, _CORE, 50),
    Mutant("a definitive failure is retried", definitive_failure_retried, _CORE, 50),
    Mutant("a gate counts twice", gate_counts_twice, _CORE, 100),
    Mutant("quorum off by one", quorum_off_by_one, _CORE, 100),
    Mutant("todas_ok needs only one", all_means_one, _CORE, 100),
    Mutant("a gate never fails early", gate_never_fails_early, _CORE, 100),
    Mutant("dispatch before its gate", dispatch_before_gate, _CORE, 50),
    Mutant("cancel leaves tickets open", cancel_leaves_tickets_open, _CORE, 200),
    Mutant("every end is a good end", ends_too_well, _CORE, 50),
    Mutant("the deadline is ignored", deadline_ignored, ("core-masked",), 50),
    Mutant("no notice at the end", no_notice, _CORE, 50),
    Mutant("the outcome of an old notice counts", notice_outcome_not_matched, _CORE, 100),
    Mutant("waits are drawn, not hashed", waits_are_drawn, _CORE, 50),
    Mutant("still owed after the answer", still_owed_after_the_answer, _CORE, 50),
    Mutant("a fact outside the journal", fact_outside_the_journal, _CORE, 50),
]
