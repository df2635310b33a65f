"""What one step of a journal says of durations: from the moment a broker has an order until its answer counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from oraculo.core import events as ev
from oraculo.core.durations.ending import key_of
from oraculo.core.durations.history import TaskKey
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Cause, Status

_MS = timedelta(milliseconds=1)
_GOOD = (Status.CONCLUIDA, Status.PARCIAL)


@dataclass(frozen=True, slots=True)
class Sample:
    """`censored`: it took at least `ms`, and was given up."""

    key: TaskKey
    ms: float
    censored: bool = False


def samples(state: Orchestration, events: Iterable[ev.Event], at: datetime) -> Iterator[Sample]:
    """`state` is as it is after the step. What was taken over from another run has taken no time."""
    for event in events:
        match event:
            case ev.TicketConcluded(position):
                yield from _taken(state, position, at)
            case ev.ChildEnded(position, _attempt, status) if status in _GOOD:
                yield from _taken(state, position, at)
            case ev.MapEnded(position, status) | ev.LoopEnded(position, status) if status in _GOOD:
                yield from _taken(state, position, at)
            case ev.AttemptFailed(position, _attempt, Cause.TIMEOUT) | ev.TicketFailed(
                position, _attempt, Status.TIMEOUT
            ):
                timeout = state.plan.tasks[position].timeout
                if timeout:
                    yield Sample(key_of(state, position), timeout / _MS, censored=True)
            case _:
                pass


def _taken(state: Orchestration, position: int, at: datetime) -> Iterator[Sample]:
    ticket = state.tickets[position]
    since = ticket.started_at or (ticket.dispatched_at if ticket.attempt == 1 else None)
    if since is not None and not ticket.reused:
        yield Sample(key_of(state, position), max(0.0, (at - since) / _MS))
