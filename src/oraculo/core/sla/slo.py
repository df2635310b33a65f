"""Service level objectives: which ends of runs and tickets count, and whether one was good.

An objective is a share of good ends over a window of days. Its error budget is what may go wrong, 1 - target; the burn
rate of a window is its share of bad ends over that: 1 uses the budget up exactly at the end of the window.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from oraculo.core import events as ev
from oraculo.core.state import Orchestration
from oraculo.core.tenants import local_name, tenant_of
from oraculo.core.vocabulary import Status


class Indicator(StrEnum):
    """What counts as good."""

    RUNS_DONE = "execucoes_concluidas"
    RUNS_IN_TIME = "execucoes_no_prazo"
    TICKETS_DONE = "tickets_concluidos"
    TICKETS_IN_TIME = "tickets_no_prazo"

    @property
    def of_runs(self) -> bool:
        return self is Indicator.RUNS_DONE or self is Indicator.RUNS_IN_TIME


@dataclass(frozen=True, slots=True)
class FreezeRule:
    """Frozen when a share of the budget of `below` or less is left, until `above` is left again."""

    below: float
    above: float
    actions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Slo:
    """`name` is that inside, with its tenant. `limit`: the time an end is good within; None: its own deadline."""

    name: str
    indicator: Indicator
    target: float
    window: timedelta
    service: str
    tipo: str | None = None
    destination: str | None = None
    limit: timedelta | None = None
    freeze: FreezeRule | None = None

    @property
    def tenant(self) -> str:
        return tenant_of(self.name)

    def judge(self, end: End) -> bool | None:
        """Whether an end was good; None when it does not count."""
        if end.of_run is not self.indicator.of_runs or end.tenant != self.tenant:
            return None
        if self.tipo not in (None, end.tipo) or self.destination not in (None, end.destination):
            return None
        if self.indicator in (Indicator.RUNS_DONE, Indicator.TICKETS_DONE):
            return end.status is Status.CONCLUIDA
        if self.limit is None:
            return None if end.in_time is None else end.in_time
        return end.status is not Status.TIMEOUT and end.took is not None and end.took <= self.limit


@dataclass(frozen=True, slots=True)
class End:
    """The end of a run or of a ticket. `in_time`: before its deadline; None when it has none."""

    tenant: str
    of_run: bool
    tipo: str | None
    destination: str | None
    status: Status
    in_time: bool | None
    took: timedelta | None


_COUNTED = (Status.CONCLUIDA, Status.PARCIAL, Status.ERRO, Status.TIMEOUT)  # who cancels has no complaint


def ends(state: Orchestration, events: Iterable[ev.Event], at: datetime) -> Iterator[End]:
    """What one step ends, as far as it counts. `state` is as it is after the step."""
    for event in events:
        match event:
            case ev.TicketConcluded(position):
                yield _ticket(state, position, Status.CONCLUIDA, at)
            case ev.TicketFailed(position, _attempt, status):
                yield _ticket(state, position, status, at)
            case ev.TicketsClosed(positions, Status.TIMEOUT):
                yield from (_ticket(state, position, Status.TIMEOUT, at) for position in positions)
            case ev.OrchestrationClosed(status) if status in _COUNTED:
                late = status is Status.TIMEOUT or (state.deadline is not None and at > state.deadline)
                in_time = None if state.deadline is None else not late
                took = at - state.started_at
                yield End(tenant_of(state.correlation_id), True, state.plan.tipo, None, status, in_time, took)
            case _:
                pass


def _ticket(state: Orchestration, position: int, status: Status, at: datetime) -> End:
    ticket, task = state.tickets[position], state.plan.tasks[position]
    took = None if ticket.dispatched_at is None else at - ticket.dispatched_at
    return End(
        tenant_of(state.correlation_id),
        False,
        state.plan.tipo,
        local_name(task.name),
        status,
        status is not Status.TIMEOUT if task.timeout else None,
        took,
    )
