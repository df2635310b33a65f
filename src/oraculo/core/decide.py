"""What a command causes by itself: its mirror event, and nothing when the world sent something stale.

`decide` never raises on what the world sends. What the new facts cause in turn is the business of `advance`.
"""

from __future__ import annotations

from datetime import datetime
from typing import assert_never

from oraculo.core import (
    allocating,
    loops,
    maps,
    notices,
    pausing,
    policing,
    requeue,
    results,
    reusing,
    waiting,
    withdrawing,
)
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
from oraculo.core.events import (
    CancelRequested,
    ChildrenCancelled,
    DispatchConfirmed,
    Event,
    NoticeSent,
    PriorityChanged,
    Resolved,
    TicketsDispatched,
    Woken,
)
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Kind, Phase, Verdict


def decide(state: Orchestration, command: Command, now: datetime) -> tuple[list[Event], Verdict]:
    match command:
        case RecordResult():
            event, verdict = results.record(state, command, now)
            return ([event] if event else []), verdict
        case ConfirmDispatch(tickets):
            return _confirm(state, tickets)
        case ConfirmCancel(children):
            known = [(position, attempt) for position, attempt in children if state.to_end.get(position) == attempt]
            return ([ChildrenCancelled(known)], Verdict.APPLIED) if known else ([], Verdict.IDLE)
        case Wake():
            return _wake(state, now)
        case Cancel(reason, actor, undo):
            if state.status.final or state.ending is not None:  # what is being undone is undone to the end
                return [], Verdict.IDLE
            return [CancelRequested(reason, actor, undo)], Verdict.APPLIED
        case PauseRun() | ResumeRun():
            return pausing.decide(state, command)
        case Prioritise(priority, reason, actor):
            if state.status.final:
                return [], Verdict.IDLE
            if state.priority == priority:
                return [], Verdict.DUPLICATE
            return [PriorityChanged(priority, reason, actor)], Verdict.APPLIED
        case RequeueTicket():
            requeued, verdict = requeue.requeue(state, command)
            return ([requeued] if requeued else []), verdict
        case WithdrawTicket():
            withdrawn, verdict = withdrawing.withdraw(state, command)
            return ([withdrawn] if withdrawn else []), verdict
        case AllocateTicket():
            allocated, verdict = allocating.allocate(state, command)
            return ([allocated] if allocated else []), verdict
        case Approve():
            return waiting.decided(state, command)
        case Signal():
            return waiting.signalled(state, command)
        case RecordDelivery():
            event, verdict = notices.delivered(state, command, now)
            return ([event] if event else []), verdict
        case Resolve():
            return _resolve(state, command)
        case Grow():
            return _grow(state, command, now)
        case Judge():
            return policing.judge(state, command)
        case Reuse():
            reused = reusing.decided(state, command)
            return ([reused], Verdict.APPLIED) if reused is not None else ([], Verdict.IDLE)
        case Start():
            return [], Verdict.DUPLICATE
        case _:
            assert_never(command)


def _confirm(state: Orchestration, tickets: list[tuple[int, int]]) -> tuple[list[Event], Verdict]:
    """A confirmation moves a ticket from `pendente` to `em_execucao`; when the answer overtook it, it is idle."""
    unique = dict.fromkeys(tickets)  # a message that was sent again is confirmed again, maybe in the same command
    valid = [one for one in unique if state.owes_order(*one)]
    return ([DispatchConfirmed(valid)], Verdict.APPLIED) if valid else ([], Verdict.IDLE)


def _resolve(state: Orchestration, command: Resolve) -> tuple[list[Event], Verdict]:
    """Only what is asked counts: an evaluation may be made twice."""
    wanted = [one for one in command.resolutions if one.ticket in state.asks]
    output = command.output if state.asks_output else None
    return ([Resolved(wanted, output)], Verdict.APPLIED) if wanted or output else ([], Verdict.IDLE)


def _grow(state: Orchestration, command: Grow, now: datetime) -> tuple[list[Event], Verdict]:
    """The items of a map come in one go: no round of a loop stands between them."""
    if state.plan.tasks[command.owner].kind is Kind.MAPA:
        return maps.grow(state, command)
    return ([], Verdict.IDLE) if maps.growing_in(state) is not None else loops.grow(state, command, now)


def _wake(state: Orchestration, now: datetime) -> tuple[list[Event], Verdict]:
    """Everything whose time has come. When the orchestration itself is out of time, `advance` ends it."""
    if not state.status.final and state.out_of_time(now):
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
        elif state.tickets[timer].phase is Phase.GROWN:
            looped = state.plan.tasks[timer].kind is Kind.REPETE
            events.append(loops.timed_out(state, timer) if looped else maps.timed_out(state, timer))
        elif state.tickets[timer].phase is Phase.HELD:
            events.append(waiting.out_of_time(state, timer))
    for attempt, positions in sorted(again.items()):
        first = attempt == 1  # the next round of a loop
        events.append(policing.released(state, positions) if first else TicketsDispatched(positions, attempt))
    return ([Woken(), *events], Verdict.APPLIED) if events else ([], Verdict.IDLE)
