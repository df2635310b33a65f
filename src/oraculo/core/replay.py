"""Recorded steps put to use again: the state they make, and the commands that made them.

A journal is a list of commands too, because the first event of every step mirrors its command (core/events.py). Putting
those commands through `step` again, each at its recorded instant, must give the recorded events.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol

from oraculo.core import events as ev
from oraculo.core.commands import (
    AllocateTicket,
    Approve,
    Cancel,
    Command,
    ConfirmCancel,
    ConfirmDispatch,
    Grow,
    Judge,
    PauseRun,
    Prioritise,
    RecordDelivery,
    RecordResult,
    RequeueTicket,
    Resolve,
    ResumeRun,
    Reuse,
    Signal,
    Start,
    Wake,
    WithdrawTicket,
)
from oraculo.core.state import Orchestration, fold
from oraculo.core.step import Step, step


class RecordedStep(Protocol):
    """One step as a journal keeps it; `first` is the number of its first event."""

    run: int
    first: int
    at: datetime
    events: list[ev.Event]


def rebuild(recorded: Iterable[RecordedStep], state: Orchestration | None = None) -> Orchestration:
    """The state that recorded steps make, from the start or on top of `state`; steps that `state` holds are skipped."""
    version = 0 if state is None else state.version
    return fold(((one.at, one.events) for one in recorded if one.first > version), state)


def replay_step(state: Orchestration | None, recorded: RecordedStep) -> Step:
    """Decide a recorded step again, on the state that the steps before it made."""
    return step(state, cause_of(recorded.events), recorded.at)


def cause_of(events: Sequence[ev.Event]) -> Command:
    """The command that the first event of a step mirrors."""
    first = events[0]
    match first:
        case ev.OrchestrationStarted(started, correlation_id, plan, _deadline, fingerprint, traceparent, actor, origin):
            return Start(started, correlation_id, plan, fingerprint, traceparent, actor, origin)
        case ev.ResultsReused(from_run, reused, rows, more):
            return Reuse(from_run, reused, rows, more)
        case ev.DispatchConfirmed(tickets):
            return ConfirmDispatch(tickets)
        case ev.TicketConcluded(position, attempt, dados, erros, digest, actor, work_ms):
            return _answer(True, dados, erros, False, attempt, digest, position, actor, work_ms)
        case ev.ChildEnded(position, attempt, status, dados, digest):
            return RecordResult(True, dados, [], attempt=attempt, digest=digest, position=position, child=status)
        case ev.ChildrenCancelled(children):
            return ConfirmCancel(children)
        case ev.AttemptFailed(position, attempt, _cause, erros, _retry_at, dados, digest, _reason, actor, work_ms):
            return _answer(False, dados, erros, False, attempt, digest, position, actor, work_ms)
        case ev.TicketFailed(position, attempt, _status, erros, dados, definitivo, digest, _reason, actor, work_ms):
            return _answer(False, dados, erros, definitivo, attempt, digest, position, actor, work_ms)
        case ev.LateAnswerKept(
            position, attempt, ok, dados, erros, definitivo, digest, actor
        ) | ev.ConflictingAnswerKept(position, attempt, ok, dados, erros, definitivo, digest, actor):
            return _answer(ok, dados, erros, definitivo, attempt, digest, position, actor)
        case ev.Resolved(resolutions, output):
            return Resolve(resolutions, output)
        case ev.PolicyEvaluated(point, tickets, findings, source):
            return Judge(point, tickets, findings, source)
        case ev.AnswerHeld(position, attempt, dados, erros, digest, actor):
            return _answer(True, dados, erros, False, attempt, digest, position, actor)
        case ev.PlanGrown(owner, _first, offset, count, total, rows, template, idle, _due_at):
            return Grow(owner, offset, count, total, rows, template, idle)
        case ev.Woken():
            return Wake()
        case ev.TicketRequeued(position, attempt, actor):
            return RequeueTicket(position, attempt - 1, actor)
        case ev.TicketWithdrawn(position, attempt, cause, worker, wait, actor, by):
            return WithdrawTicket(position, attempt, cause, worker, wait, actor, by)
        case ev.TicketAllocated(position, attempt, allocation):
            return AllocateTicket(position, attempt, allocation)
        case ev.CancelRequested(reason, actor, undo):
            return Cancel(reason, actor, undo)
        case ev.OrchestrationPaused(reason, actor):
            return PauseRun(reason, actor)
        case ev.OrchestrationResumed(reason, actor):
            return ResumeRun(reason, actor)
        case ev.PriorityChanged(priority, reason, actor):
            return Prioritise(priority, reason, actor)
        case ev.ApprovalGiven(by, reason, actor, task):
            return Approve(True, by, reason, actor, task)
        case ev.ApprovalRefused(by, reason, actor, task):
            return Approve(False, by, reason, actor, task)
        case ev.SignalReceived(signal, name, dados, _taken_by, _content, actor):
            return Signal(signal, name, dados, actor)
        case ev.NoticeDelivered(notice, attempt, detail):
            return RecordDelivery(notice, attempt, True, False, detail)
        case ev.NoticeFailed(notice, attempt, detail, _retry_at, retry_after):
            return RecordDelivery(notice, attempt, False, False, detail, retry_after)
        case ev.NoticeGivenUp(notice, attempt, detail, final, retry_after):
            return RecordDelivery(notice, attempt, False, final, detail, retry_after)
        case _:
            raise ValueError(f"{type(first).__name__} cannot be the first event of a step")


def _answer(
    ok: bool,
    dados: bytes,
    erros: list[dict[str, object]],
    definitivo: bool,
    attempt: int,
    digest: int,
    position: int,
    actor: str | None,
    work_ms: int | None = None,
) -> RecordResult:
    answer = RecordResult(ok, dados, erros, definitivo, attempt=attempt, digest=digest, position=position, actor=actor)
    answer.work_ms = work_ms
    return answer
