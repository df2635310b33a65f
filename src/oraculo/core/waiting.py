"""How waits begin and end, and what becomes of signals and approvals.

A signal is taken by exactly one wait of its name: the one that waits longest, in the order of the plan where several
began together. One that comes early is kept for the next wait that begins. A signal has an id; the same id again is the
same signal. Whichever comes first, a signal or the end of the wait's time, ends the wait; the other finds it closed.
"""

from __future__ import annotations

import json
from datetime import datetime

from oraculo.core.commands import Approve, Signal
from oraculo.core.events import (
    ApprovalGiven,
    ApprovalRefused,
    Event,
    SignalReceived,
    TicketsClosed,
    WaitEnded,
    WaitStarted,
)
from oraculo.core.pausing import clock, stands_still
from oraculo.core.reasons import ReasonCode, because
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Kind, Phase, Status, Verdict
from oraculo.core.waits import SIGNALS_KEPT_MAX, WAIT_MAX, Wait, WaitEnd, WaitKind, content_of, signal_task


def signalled(state: Orchestration, command: Signal) -> tuple[list[Event], Verdict]:
    """What a signal does: a wait takes it, or it is kept."""
    known, content = state.signals.get(command.id), content_of(command.name, command.dados)
    if known is not None:
        return [], Verdict.DUPLICATE if known.content == content else Verdict.SIGNAL_REUSED
    if state.status.final:
        return [], Verdict.IDLE
    task = signal_task(command.name)
    if not state.named(Kind.ESPERA, task):
        return [], Verdict.UNKNOWN_SIGNAL
    taker = next(iter(state.held.get(task, ())), None)
    if taker is None and len(state.kept) >= SIGNALS_KEPT_MAX:
        return [], Verdict.TOO_MANY_SIGNALS
    received = SignalReceived(command.id, command.name, command.dados, taker, content, command.actor)
    return [received], Verdict.APPLIED


def decided(state: Orchestration, command: Approve) -> tuple[list[Event], Verdict]:
    """What the decision of a human does, on a whole plan or on one task that waits for it."""
    task = command.task
    asked = state.awaits_approval if task is None else task in state.held.get(WaitKind.APPROVAL, ())
    if state.status.final or not asked:
        return [], Verdict.IDLE
    made = ApprovalGiven if command.approved else ApprovalRefused
    return [made(command.by, command.reason, command.actor, task)], Verdict.APPLIED


def out_of_time(state: Orchestration, position: int) -> WaitEnded:
    """The instant of a wait has come."""
    wait = wait_at(state, position)
    if not wait.expires:
        return WaitEnded(position, WaitEnd.ELAPSED, Status.CONCLUIDA)
    if wait.continues_expired:
        return WaitEnded(position, WaitEnd.EXPIRED, Status.CONCLUIDA)
    seconds = "" if wait.limit is None else f"{wait.limit.total_seconds():g}"
    why = because(ReasonCode.WAIT_EXPIRED, wait=wait.kind.value, signal=wait.signal, seconds=seconds)
    return WaitEnded(position, WaitEnd.EXPIRED, Status.TIMEOUT, reason=why)


def started(state: Orchestration, positions: list[int], now: datetime) -> list[Event]:
    """These waits begin, in the order of the plan; one for an instant that is too far away fails."""
    return [_start(state, position, now) for position in sorted(positions)]


def _start(state: Orchestration, position: int, now: datetime) -> Event:
    due_at = wait_at(state, position).due_at(state.parameters(position), clock(state, now))
    if due_at is not None and due_at - now > WAIT_MAX:
        why = because(ReasonCode.WAIT_TOO_LONG, until=due_at.isoformat(), days=str(WAIT_MAX.days))
        return TicketsClosed([position], Status.ERRO, why)
    return WaitStarted(position, due_at)


def begun(state: Orchestration, event: WaitStarted, now: datetime) -> list[Event]:
    """A wait that has just begun takes the oldest signal that was kept for it, and ends when its instant is past."""
    position = event.ticket
    if state.tickets[position].phase is not Phase.HELD:
        return []
    signal = wait_at(state, position).signal
    for kept in state.kept if signal else ():
        if state.signals[kept].name == signal:
            return [_taken(position, kept)]
    reached = clock(state, now) if stands_still(state, position) else now
    return [out_of_time(state, position)] if event.due_at is not None and event.due_at <= reached else []


def taken(event: SignalReceived) -> list[Event]:
    """The wait that takes a signal ends."""
    return [] if event.taken_by is None else [_taken(event.taken_by, event.signal)]


def _taken(position: int, signal: str) -> WaitEnded:
    return WaitEnded(position, WaitEnd.SIGNALLED, Status.CONCLUIDA, signal)


def approved(state: Orchestration, event: ApprovalGiven | ApprovalRefused, task: int, now: datetime) -> list[Event]:
    """The task that a human decided on ends."""
    agreed = isinstance(event, ApprovalGiven)
    how = WaitEnd.APPROVED if agreed else WaitEnd.REFUSED
    said = {"aprovado": agreed, "por": event.by, "motivo": event.reason, "em": now.isoformat().replace("+00:00", "Z")}
    dados = json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()
    if agreed or wait_at(state, task).continues_refused:
        return [WaitEnded(task, how, Status.CONCLUIDA, dados=dados)]
    why = because(ReasonCode.NOT_APPROVED, by=event.by, text=event.reason)
    return [WaitEnded(task, how, Status.CANCELADA, dados=dados, reason=why)]


def behind_refusals(state: Orchestration) -> set[int]:
    """The tasks that were refused, and those that were cancelled because they depend on one that was."""
    found: set[int] = set()
    stack = [position for position in range(len(state.tickets)) if _was_refused(state, position)]
    while stack:
        position = stack.pop()
        if position in found:
            continue
        found.add(position)
        for number in state.plan.tasks[position].feeds:
            if state.gates[number].passed is False:
                stack += [p for p in state.plan.gates[number].releases if state.tickets[p].status is Status.CANCELADA]
    return found


def _was_refused(state: Orchestration, position: int) -> bool:
    ticket = state.tickets[position]
    return (
        ticket.status is Status.CANCELADA
        and ticket.reason is not None
        and ticket.reason.code is ReasonCode.NOT_APPROVED
        and state.plan.tasks[position].kind is Kind.ESPERA
    )


def wait_at(state: Orchestration, position: int) -> Wait:
    """What the task at this position waits for."""
    wait = state.plan.profile.wait(position)
    assert wait is not None, f"task {position} is no wait"
    return wait
