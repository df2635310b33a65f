"""An orchestration that an operator paused: no order goes out, and its time stands still.

What is with workers may finish, and what it makes possible is released; the orders of that are owed, and go out when
the orchestration is resumed. Deadlines (`timeout_s`, `segundos`, back-offs) are moved then by exactly the pause.
Instants (`ate`) do not move: a wait for one ends in time, pause or not.

While it is paused, every deadline is written as if it were still the instant of the pause. So one that begins
meanwhile is moved by the same length as all others, and what is left of each is the same before and after.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from heapq import heapify
from typing import TYPE_CHECKING

from oraculo.core.commands import PauseRun, ResumeRun
from oraculo.core.events import Event, OrchestrationPaused, OrchestrationResumed, PriorityChanged
from oraculo.core.vocabulary import Phase, Verdict
from oraculo.core.waits import WaitKind

if TYPE_CHECKING:
    from oraculo.core.state import Orchestration


@dataclass(frozen=True, slots=True)
class PauseState:
    """Since when an orchestration is paused, by whom and why."""

    since: datetime
    reason: str
    actor: str | None


def decide(state: Orchestration, command: PauseRun | ResumeRun) -> tuple[list[Event], Verdict]:
    """What a request to pause or to resume does; the same again is nothing new."""
    if state.status.final:
        return [], Verdict.IDLE
    pauses = isinstance(command, PauseRun)
    if pauses is (state.paused is not None):
        return [], Verdict.DUPLICATE
    made = OrchestrationPaused if pauses else OrchestrationResumed
    return [made(command.reason, command.actor)], Verdict.APPLIED


def clock(state: Orchestration, now: datetime) -> datetime:
    """The instant that deadlines are counted from: now, or when the pause began."""
    return now if state.paused is None else state.paused.since


def stands_still(state: Orchestration, timer: int) -> bool:
    """True of a timer that a pause moves: all but those of notices and of waits for an instant."""
    if timer < 0:
        return False
    wait = state.plan.profile.wait(timer) if state.tickets[timer].phase is Phase.HELD else None
    return wait is None or wait.kind is not WaitKind.UNTIL


def evolve(
    state: Orchestration, event: OrchestrationPaused | OrchestrationResumed | PriorityChanged, at: datetime
) -> None:
    """Make what an operator asked for true."""
    match event:
        case OrchestrationPaused():
            stop(state, event, at)
        case OrchestrationResumed():
            restart(state, at)
        case PriorityChanged(priority):
            state.priority = priority


def stop(state: Orchestration, event: OrchestrationPaused, at: datetime) -> None:
    """Make a pause true: only the timers that do not stand still remain."""
    state.paused = PauseState(at, event.reason, event.actor)
    state.pauses += 1
    state.timers = [entry for entry in state.timers if not stands_still(state, entry[1])]
    heapify(state.timers)


def restart(state: Orchestration, at: datetime) -> None:
    """Make the end of a pause true: deadlines move by its length."""
    assert state.paused is not None, "it is not paused"
    length = at - state.paused.since
    state.paused = None
    if state.deadline is not None:
        state.deadline += length
    for position, ticket in enumerate(state.tickets):
        if ticket.due_at is not None and stands_still(state, position):
            ticket.due_at += length
            state.timers.append((ticket.due_at, position))
    heapify(state.timers)
