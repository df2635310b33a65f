"""What the new state causes by itself: fan-ins close, tasks behind them start, the orchestration ends.

`advance` looks at one event that has just become true and at the state; it never looks at the whole plan, except once,
when the orchestration ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from oraculo.core import compensation
from oraculo.core.events import (
    ApprovalAsked,
    ApprovalGiven,
    ApprovalRefused,
    AttemptFailed,
    CancelRequested,
    CompensationStarted,
    DispatchConfirmed,
    Event,
    FanInClosed,
    LateAnswerKept,
    NoticeSent,
    OrchestrationClosed,
    OrchestrationStarted,
    TicketConcluded,
    TicketFailed,
    TicketsClosed,
    TicketsDispatched,
    Woken,
)
from oraculo.core.plan import Gate
from oraculo.core.state import GateCount, Orchestration
from oraculo.core.vocabulary import FanIn, Phase, Status

_QUIET = frozenset(  # cause nothing
    (DispatchConfirmed, TicketsDispatched, AttemptFailed, LateAnswerKept, NoticeSent, ApprovalAsked)
)


def advance(state: Orchestration, event: Event, now: datetime) -> list[Event]:
    kind = type(event)
    if kind in _QUIET or (state.closed_at is not None and kind is not OrchestrationClosed):
        return []
    match event:
        case TicketConcluded(position) | TicketFailed(position):
            return _gates(state, (position,))
        case TicketsClosed(positions):
            return _gates(state, positions)
        case FanInClosed(number, passed):
            return _passed(state, number) if passed else _blocked(state, number)
        case OrchestrationStarted():
            flow = state.plan.flow
            return [ApprovalAsked()] if flow is not None and flow.approval else _first(state)
        case ApprovalGiven():
            return _first(state)
        case ApprovalRefused(by, reason):
            said = f"não foi aprovada por {by or 'quem decide'}" + (f": {reason}" if reason else "")
            return _end(state, Status.CANCELADA, said, Status.CANCELADA)
        case CompensationStarted():
            return _undo(state)
        case Woken() if now >= state.deadline:
            return _end(state, Status.TIMEOUT, "o prazo da orquestração terminou", Status.TIMEOUT)
        case CancelRequested(reason):
            return _end(state, Status.CANCELADA, reason or "cancelada a pedido", Status.CANCELADA)
        case OrchestrationClosed():
            return [NoticeSent(number, 1) for number in range(len(state.notices))]
        case _:
            return []


def _first(state: Orchestration) -> list[Event]:
    first = [position for position, task in enumerate(state.plan.tasks) if task.after is None]
    return [TicketsDispatched(first, 1)]


def _undo(state: Orchestration) -> list[Event]:
    first = [p for p in range(state.undoes, len(state.tickets)) if state.plan.tasks[p].after is None]
    return [TicketsDispatched(first, 1)]


def _gates(state: Orchestration, positions: Iterable[int]) -> list[Event]:
    """The gates that these closed tickets feed, as far as their rule is decided now."""
    touched: dict[int, None] = {}
    for position in positions:
        touched.update(dict.fromkeys(state.plan.tasks[position].feeds))
    events: list[Event] = []
    for number in touched:
        count = state.gates[number]
        if count.passed is None:
            passed = _verdict(state.plan.gates[number], count)
            if passed is not None:
                events.append(FanInClosed(number, passed))
    return events or _maybe_end(state)


def _verdict(gate: Gate, count: GateCount) -> bool | None:
    """True: it passes; False: it cannot pass any more; None: not decided yet."""
    still_open = len(gate.inputs) - count.closed
    if gate.mode is FanIn.TODOS:
        return None if still_open else count.ok >= gate.needed
    if count.ok >= gate.needed:
        return True
    return False if count.ok + still_open < gate.needed else None


def _passed(state: Orchestration, number: int) -> list[Event]:
    """Start what is behind the gate; cancel what the fan-in no longer needs."""
    gate = state.plan.gates[number]
    events: list[Event] = []
    released = [p for p in gate.releases if state.tickets[p].phase is Phase.WAITING]
    if released:
        events.append(TicketsDispatched(released, 1))
    if state.gates[number].closed < len(gate.inputs):
        spare = [p for p in gate.inputs if state.tickets[p].phase is not Phase.CLOSED]
        events.append(TicketsClosed(spare, Status.CANCELADA, f"o fan-in ({gate.mode.value}) já foi atendido"))
    return events or _maybe_end(state)


def _blocked(state: Orchestration, number: int) -> list[Event]:
    """The gate cannot pass: an essential one ends the orchestration, another one cancels what is behind it."""
    gate = state.plan.gates[number]
    if gate.essential:
        return _end(state, Status.ERRO, f"o fan-in ({gate.mode.value}) não pode ser atendido", Status.CANCELADA)
    behind = [p for p in gate.releases if state.tickets[p].phase is Phase.WAITING]
    return [TicketsClosed(behind, Status.CANCELADA, "uma dependência falhou")] if behind else _maybe_end(state)


def _maybe_end(state: Orchestration) -> list[Event]:
    if state.open:
        return []
    undone = [] if state.undoes else compensation.needed(state)
    if undone:
        return [CompensationStarted(undone, compensation.TASK_FAILED)]
    return _end(state, _ending(state), "", Status.CANCELADA)


def _ending(state: Orchestration) -> Status:
    """How an orchestration ends whose tickets are all closed."""
    if state.plan.flow is not None:
        return compensation.ending(state)
    if any(count.passed is False and gate.essential for gate, count in zip(state.plan.gates, state.gates, strict=True)):
        return Status.ERRO
    failed = any(ticket.status in (Status.ERRO, Status.TIMEOUT) for ticket in state.tickets)
    return Status.PARCIAL if failed else Status.CONCLUIDA


def _end(state: Orchestration, status: Status, reason: str, running_become: Status) -> list[Event]:
    """Close every open ticket, then the orchestration. Tasks that never started are cancelled."""
    events: list[Event] = []
    if state.open:
        waiting = [p for p, t in enumerate(state.tickets) if t.phase is Phase.WAITING]
        running = [p for p, t in enumerate(state.tickets) if t.phase not in (Phase.WAITING, Phase.CLOSED)]
        if running:
            events.append(TicketsClosed(running, running_become, reason))
        if waiting:
            events.append(TicketsClosed(waiting, Status.CANCELADA, reason))
    return [*events, OrchestrationClosed(status)]
