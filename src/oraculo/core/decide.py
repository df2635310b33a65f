"""What a command causes by itself: its mirror event, and nothing when the world sent something stale.

`decide` never raises on what the world sends. What the new facts cause in turn is the business of `advance`.
"""

from __future__ import annotations

from datetime import datetime
from typing import assert_never

from oraculo.core import notices, results
from oraculo.core.commands import Approve, Cancel, Command, ConfirmDispatch, RecordDelivery, RecordResult, Start, Wake
from oraculo.core.events import (
    ApprovalGiven,
    ApprovalRefused,
    CancelRequested,
    DispatchConfirmed,
    Event,
    NoticeSent,
    TicketsDispatched,
    Woken,
)
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Phase, Verdict


def decide(state: Orchestration, command: Command, now: datetime) -> tuple[list[Event], Verdict]:
    match command:
        case RecordResult():
            event, verdict = results.record(state, command, now)
            return ([event] if event else []), verdict
        case ConfirmDispatch(tickets):
            return _confirm(state, tickets)
        case Wake():
            return _wake(state, now)
        case Cancel(reason):
            if state.status.final:
                return [], Verdict.IDLE
            return [CancelRequested(reason)], Verdict.APPLIED
        case Approve(approved, by, reason):
            if state.status.final or not state.awaits_approval:
                return [], Verdict.IDLE
            decision = ApprovalGiven(by, reason) if approved else ApprovalRefused(by, reason)
            return [decision], Verdict.APPLIED
        case RecordDelivery():
            event, verdict = notices.delivered(state, command, now)
            return ([event] if event else []), verdict
        case Start():
            return [], Verdict.DUPLICATE
        case _:
            assert_never(command)


def _confirm(state: Orchestration, tickets: list[tuple[int, int]]) -> tuple[list[Event], Verdict]:
    """A confirmation moves a ticket from `pendente` to `em_execucao`; when the answer overtook it, it is idle."""
    valid = []
    for position, attempt in dict.fromkeys(tickets):  # a message sent again is confirmed again, maybe in one breath
        ticket = state.tickets[position]
        if ticket.attempt == attempt and ticket.phase is Phase.OWED:
            valid.append((position, attempt))
    return ([DispatchConfirmed(valid)], Verdict.APPLIED) if valid else ([], Verdict.IDLE)


def _wake(state: Orchestration, now: datetime) -> tuple[list[Event], Verdict]:
    """Everything whose time has come. When the orchestration itself is out of time, `advance` ends it."""
    if not state.status.final and now >= state.deadline:
        return [Woken()], Verdict.APPLIED
    events: list[Event] = []
    again: dict[int, list[int]] = {}
    for timer in state.due(now):
        if timer < 0:
            events.append(NoticeSent(~timer, state.notices[~timer].attempt + 1))
        elif state.tickets[timer].phase is Phase.RUNNING:
            events.append(results.timed_out(state, timer, now))
        elif state.tickets[timer].phase is Phase.BACKOFF:
            again.setdefault(state.tickets[timer].attempt + 1, []).append(timer)
    events += [TicketsDispatched(positions, attempt) for attempt, positions in sorted(again.items())]
    return ([Woken(), *events], Verdict.APPLIED) if events else ([], Verdict.IDLE)
