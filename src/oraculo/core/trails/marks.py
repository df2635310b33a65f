"""The marks that one step of a journal leaves. What a worker is not to blame for leaves none: a policy, a cancellation,
parameters that no worker could use (`definitivo`), an attempt that was taken back for a more urgent ticket."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from oraculo.core import events as ev
from oraculo.core.state import Orchestration
from oraculo.core.trails.trail import Mark, TrailKey
from oraculo.core.vocabulary import Cause, Kind

_MS = timedelta(milliseconds=1)
_WORKED = (Kind.COLETA, Kind.EXECUCAO)


@dataclass(frozen=True, slots=True)
class Deposit:
    key: TrailKey
    mark: Mark
    duration_ms: float | None = None


def deposits(state: Orchestration, events: Iterable[ev.Event], at: datetime) -> Iterator[Deposit]:
    """`state` is as it is after the step."""
    for event in events:
        match event:
            case ev.TicketConcluded(position, attempt):
                ticket = state.tickets[position]
                since = ticket.started_at or ticket.dispatched_at
                if not ticket.reused:
                    took = None if since is None else max(0.0, (at - since) / _MS)
                    mark = Mark.SUCCESS if attempt == 1 else Mark.WARNING
                    yield from _at(state, position, attempt, mark, took)
            case ev.AttemptFailed(position, attempt):
                yield from _at(state, position, attempt, Mark.FAILURE)
            case ev.TicketFailed(position, attempt) if not event.definitivo:
                yield from _at(state, position, attempt, Mark.FAILURE)
            case ev.TicketWithdrawn(position, _attempt, Cause.REALOCADO, worker) if worker:  # it was lost with it
                yield Deposit(TrailKey(state.plan.tasks[position].queue, worker), Mark.FAILURE)
            case _:
                pass


def _at(
    state: Orchestration, position: int, attempt: int, mark: Mark, duration_ms: float | None = None
) -> Iterator[Deposit]:
    """On the trail of the queue, and of the worker where the attempt was given to one by a choice."""
    task = state.plan.tasks[position]
    if task.kind not in _WORKED:
        return
    yield Deposit(TrailKey(task.queue), mark, duration_ms)
    chosen = state.tickets[position].allocated
    if chosen is not None and chosen.attempt == attempt:
        yield Deposit(TrailKey(task.queue, chosen.allocation.agent_id), mark, duration_ms)
