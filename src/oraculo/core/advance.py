"""What the new state causes by itself: fan-ins close, tasks behind them start, the orchestration ends.

`advance` looks at one event that has just become true and at the state; it never looks at the whole plan, except once,
when the orchestration ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from oraculo.core import compensation, endings, fan_in, loops, maps, policing, reusing, undoing, waiting
from oraculo.core.events import (
    AnswerHeld,
    ApprovalAsked,
    ApprovalGiven,
    ApprovalRefused,
    AttemptFailed,
    CancelRequested,
    ChildEnded,
    ChildrenCancelled,
    CompensationStarted,
    ConflictingAnswerKept,
    DispatchConfirmed,
    Event,
    FanInClosed,
    LateAnswerKept,
    LoopEnded,
    MapEnded,
    MapRestored,
    NoticeSent,
    OrchestrationClosed,
    OrchestrationPaused,
    OrchestrationResumed,
    OrchestrationStarted,
    PlanGrown,
    PolicyAsked,
    PolicyEvaluated,
    PriorityChanged,
    Resolved,
    ResultsReused,
    SignalReceived,
    TasksAsked,
    TicketAllocated,
    TicketConcluded,
    TicketFailed,
    TicketRequeued,
    TicketsClosed,
    TicketsDispatched,
    TicketsReused,
    TicketWithdrawn,
    WaitEnded,
    WaitStarted,
    Woken,
)
from oraculo.core.plan import Gate
from oraculo.core.policies import PolicyPoint
from oraculo.core.priority import USUAL_PRIORITY
from oraculo.core.reasons import Reason, ReasonCode, because, expression_fault
from oraculo.core.resolution import Outcome, Resolution
from oraculo.core.state import Orchestration
from oraculo.core.ticket_state import Ticket
from oraculo.core.vocabulary import FanIn, Kind, Phase, Status

_INERT_EVENTS = frozenset(  # cause nothing
    (
        DispatchConfirmed,
        TicketsDispatched,
        AttemptFailed,
        TicketRequeued,
        TicketWithdrawn,
        TicketAllocated,
        LateAnswerKept,
        ConflictingAnswerKept,
        NoticeSent,
        AnswerHeld,
        PolicyAsked,
        ApprovalAsked,
        TasksAsked,
        OrchestrationPaused,
        OrchestrationResumed,
        PriorityChanged,
        ChildrenCancelled,
    )
)


def advance(state: Orchestration, event: Event, now: datetime) -> list[Event]:
    kind = type(event)
    if kind is OrchestrationClosed:
        return [NoticeSent(number, 1) for number in range(len(state.notices))]
    if kind in _INERT_EVENTS or state.closed_at is not None:
        return []
    match event:
        case TicketConcluded(position) | TicketFailed(position) | WaitEnded(position) | ChildEnded(position):
            return _closed(state, (position,), now)
        case TicketsClosed(positions, _status, reason):
            return [*maps.left_behind(state, positions, reason), *_closed(state, positions, now)]
        case FanInClosed(number, passed):
            block = None if state.blocks is None else state.blocks.by_gate.get(number)
            if block is not None:
                return maps.concluded(state, block, passed)
            return _passed(state, number, now) if passed else _blocked(state, number)
        case OrchestrationStarted():
            return _begun(state, now) if state.reuse is None else []  # what it takes over has to come first
        case ResultsReused(more=more):
            return [] if more else _begun(state, now)
        case TicketsReused(positions):
            return _closed(state, positions, now, reused=True)
        case MapRestored(owner):
            return maps.restored(state, owner)
        case ApprovalGiven(task=int(task)) | ApprovalRefused(task=int(task)):
            return waiting.approved(state, event, task, now)
        case SignalReceived():
            return waiting.taken(event)
        case WaitStarted():
            return waiting.begun(state, event, now)
        case ApprovalGiven():
            return _first(state, now)
        case ApprovalRefused(by, reason):
            refused = because(ReasonCode.NOT_APPROVED, by=by, text=reason)
            return _end(state, Status.CANCELADA, refused, Status.CANCELADA)
        case CompensationStarted():
            return _undo(state, now)
        case Resolved():
            return _resolved(state, event, now)
        case PolicyEvaluated():
            return _judged(state, event, now)
        case PlanGrown():
            return loops.begun(state, event) if _is_loop(state, event.owner) else maps.begun(state, event)
        case MapEnded(position):
            return [*maps.rest(state, event), *_gates(state, (position,))]
        case LoopEnded(position):
            return [*loops.rest(state, event), *_gates(state, (position,))]
        case Woken() if state.out_of_time(now):
            return _end(state, Status.TIMEOUT, because(ReasonCode.DEADLINE_PASSED), Status.TIMEOUT, undo=True)
        case CancelRequested(reason, undo=undo):
            why = because(ReasonCode.CANCELLED, text=reason)
            return _end(state, Status.CANCELADA, why, Status.CANCELADA, undo=undo)
        case _:
            return []


def _is_loop(state: Orchestration, position: int) -> bool:
    return state.plan.tasks[position].kind is Kind.REPETE


def _begun(state: Orchestration, now: datetime) -> list[Event]:
    if policing.asks_at(state, PolicyPoint.PLAN):
        return [policing.plan_asked()]
    return _accepted(state, now)


def _judged(state: Orchestration, event: PolicyEvaluated, now: datetime) -> list[Event]:
    if event.point is not PolicyPoint.PLAN:
        return policing.evaluated(state, event)
    refused = policing.refusal(event)
    return _accepted(state, now) if refused is None else _end(state, Status.ERRO, refused, Status.CANCELADA)


def _accepted(state: Orchestration, now: datetime) -> list[Event]:
    return [ApprovalAsked()] if state.plan.approval else _first(state, now)


def _first(state: Orchestration, now: datetime) -> list[Event]:
    first = [position for position, task in enumerate(state.plan.tasks) if task.after is None]
    return _released(state, first, now)


def _released(state: Orchestration, positions: list[int], now: datetime) -> list[Event]:
    """These may start; those with expressions are asked for first. What an earlier run had concluded is taken over."""
    if state.reuse is not None:
        taken, left = reusing.taken_over(state, positions)
        return [*taken, *(_released_anew(state, left, now) if left else ())]
    return _released_anew(state, positions, now)


def _released_anew(state: Orchestration, positions: list[int], now: datetime) -> list[Event]:
    profile = state.plan.profile
    if not profile.has_expressions:
        return [policing.released(state, positions)]
    asked = [position for position in positions if profile.asks(position)]
    events = _started(state, [position for position in positions if not profile.asks(position)], now)
    return [*events, TasksAsked(asked)] if asked else events


def _started(state: Orchestration, positions: list[int], now: datetime) -> list[Event]:
    """Orders go out, waits begin."""
    waits = [position for position in positions if state.plan.profile.wait(position) is not None]
    orders = positions if not waits else [p for p in positions if state.plan.profile.wait(p) is None]
    if state.plan.profile.has_ceiling:
        orders = sorted(orders, key=lambda position: -(state.plan.profile.priority_of(position) or USUAL_PRIORITY))
    events: list[Event] = [policing.released(state, orders)] if orders else []
    return [*events, *waiting.started(state, waits, now)] if waits else events


def _resolved(state: Orchestration, resolved: Resolved, now: datetime) -> list[Event]:
    """Start what may start, skip what has a false condition, fail what has an expression without a value."""
    by_outcome: dict[Outcome, list[Resolution]] = {}
    for one in resolved.resolutions:
        by_outcome.setdefault(one.outcome, []).append(one)
    events: list[Event] = []
    if Outcome.GO in by_outcome:
        events += _started(state, [one.ticket for one in by_outcome[Outcome.GO]], now)
    for one in by_outcome.get(Outcome.SKIP, ()):
        why = because(ReasonCode.CONDITION_FALSE, expression=one.expression, detail=one.detail)
        events.append(TicketsClosed([one.ticket], Status.IGNORADA, why))
    for one in by_outcome.get(Outcome.FAIL, ()):
        events.append(TicketsClosed([one.ticket], Status.ERRO, expression_fault(one)))
    for outcome in (Outcome.STOP, Outcome.SPENT):
        events += [loops.stopped(state, one) for one in by_outcome.get(outcome, ())]
    return [*events, *_maybe_end(state)] if resolved.output is not None else events


def _undo(state: Orchestration, now: datetime) -> list[Event]:
    first = [p for p in range(state.undoes, len(state.tickets)) if state.plan.tasks[p].after is None]
    return _released(state, undoing.admitted(state, first), now)


def _closed(state: Orchestration, positions: Sequence[int], now: datetime, *, reused: bool = False) -> list[Event]:
    """What follows when these tickets have closed; while others are undone, nothing follows from those any more."""
    if state.undoes:
        positions = [position for position in positions if position >= state.undoes]
        events = _gates(state, positions)
        following = undoing.following(state, positions) if state.windows else []
        return [*events, *_released(state, following, now)] if following else events
    events = _gates(state, positions)
    if state.blocks is None:
        return events
    return [*events, *maps.following(state, positions, events, reused=reused), *loops.following(state, positions)]


def _gates(state: Orchestration, positions: Sequence[int]) -> list[Event]:
    """The gates that these closed tickets feed, as far as their rule is decided now."""
    tasks = state.plan.tasks
    if len(positions) == 1:
        touched: Iterable[int] = tasks[positions[0]].feeds
    else:
        touched = dict.fromkeys(number for position in positions for number in tasks[position].feeds)
    events: list[Event] = []
    for number in touched:
        count = state.gates[number]
        if count.passed is None:
            gate = state.plan.gates[number]
            block = None if state.blocks is None else state.blocks.by_gate.get(number)
            if block is not None:
                passed = maps.decided(state, block, gate, count)
            else:
                passed = fan_in.decide(gate.mode, gate.needed, len(gate.inputs), count)
            if passed is not None:
                events.append(FanInClosed(number, passed))
    return events or _maybe_end(state)


def _passed(state: Orchestration, number: int, now: datetime) -> list[Event]:
    """Start what is behind the gate; cancel what the fan-in no longer needs."""
    gate = state.plan.gates[number]
    events: list[Event] = []
    released = [p for p in gate.releases if state.tickets[p].phase is Phase.WAITING]
    if state.windows:
        released = undoing.admitted(state, released)
    if released:
        events += _released(state, released, now)
    events += _spare(state, number)
    return events or _maybe_end(state)


def _spare(state: Orchestration, number: int) -> list[Event]:
    """Cancel the inputs of a gate that has closed which nothing needs any more: every gate that they feed has closed,
    and one of them passed."""
    gate = state.plan.gates[number]
    if state.gates[number].closed == len(gate.inputs):
        return []
    spare: dict[FanIn, list[int]] = {}
    for position in gate.inputs:
        if state.tickets[position].phase is not Phase.CLOSED:
            met = _met_without(state, position)
            if met is not None:
                spare.setdefault(met, []).append(position)
    return [
        TicketsClosed(positions, Status.CANCELADA, because(ReasonCode.FAN_IN_MET, mode=mode.value))
        for mode, positions in spare.items()
    ]


def _met_without(state: Orchestration, position: int) -> FanIn | None:
    """The mode of a gate that passed without this open ticket; None while another gate waits for it."""
    met = None
    for number in state.plan.tasks[position].feeds:
        passed = state.gates[number].passed
        if passed is None:
            return None
        if passed and met is None:
            met = state.plan.gates[number].mode
    return met


def _blocked(state: Orchestration, number: int) -> list[Event]:
    """The gate cannot pass: an essential one ends the orchestration, another one closes what is behind it. What waits
    for nothing but skipped tasks is skipped itself."""
    gate, count = state.plan.gates[number], state.gates[number]
    if gate.essential:
        unreachable = because(ReasonCode.FAN_IN_UNREACHABLE, mode=gate.mode.value)
        return _end(state, Status.ERRO, unreachable, Status.CANCELADA)
    events = _spare(state, number)
    behind = [p for p in gate.releases if state.tickets[p].phase is Phase.WAITING]
    if behind and count.skipped == len(gate.inputs):
        events.append(TicketsClosed(behind, Status.IGNORADA, because(ReasonCode.DEPENDENCIES_SKIPPED)))
    elif behind:
        events.append(TicketsClosed(behind, Status.CANCELADA, _why_blocked(gate)))
    return events or _maybe_end(state)


def _why_blocked(gate: Gate) -> Reason:
    if gate.mode is FanIn.TODAS_OK:
        return because(ReasonCode.DEPENDENCY_FAILED)
    return because(ReasonCode.FAN_IN_UNREACHABLE, mode=gate.mode.value)


def _maybe_end(state: Orchestration) -> list[Event]:
    if state.open:
        return []
    if state.ending is not None:
        return [OrchestrationClosed(state.ending)]
    undone = [] if state.undoes else _to_undo(state)
    if undone:
        return [compensation.started(state.plan, undone)]
    status = endings.status_of(state)
    units = undoing.wanted(state) if status in (Status.ERRO, Status.CANCELADA) else {}
    if units:
        return [undoing.order(state, units, status)]
    if state.plan.profile.has_output and status in (Status.CONCLUIDA, Status.PARCIAL):
        if state.asks_output:
            return []
        if not state.output_resolved:
            return [TasksAsked([], output=True)]
    return [OrchestrationClosed(status)]


def _to_undo(state: Orchestration) -> list[int]:
    """The positions that have to be undone, in reverse topological order: every ticket that failed and all that it
    depends on, as far as anything was done for them. Empty when nothing failed, or the plan does not want it."""
    if state.plan.undo is None:
        return []
    tickets = state.tickets
    failed = [p for p, one in enumerate(tickets) if one.status in (Status.ERRO, Status.TIMEOUT) and one.attempt]
    upstream = compensation.upstream(state.plan, failed)
    return sorted((p for p in upstream if tickets[p].attempt), reverse=True)  # tasks stand in topological order


def _end(
    state: Orchestration, status: Status, reason: Reason, running_become: Status, *, undo: bool = False
) -> list[Event]:
    """Close every open ticket, then the orchestration, or `undo` what was done first. Tasks that never started are
    cancelled."""
    events: list[Event] = []
    if state.open:
        waiting = [p for p, t in enumerate(state.tickets) if _is_waiting(t)]
        running = [p for p, t in enumerate(state.tickets) if t.phase is not Phase.CLOSED and not _is_waiting(t)]
        if running:
            events.append(TicketsClosed(running, running_become, reason))
        if waiting:
            events.append(TicketsClosed(waiting, Status.CANCELADA, reason))
    units = undoing.wanted(state, running_become) if undo else {}
    if units:
        return [*events, undoing.order(state, units, status, asked=status is Status.CANCELADA)]
    return [*events, OrchestrationClosed(status)]


def _is_waiting(ticket: Ticket) -> bool:
    """True of a ticket that never started."""
    return ticket.phase is Phase.WAITING or (ticket.phase is Phase.JUDGED and not ticket.attempt)
