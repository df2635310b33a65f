"""Deadlines of open runs and running tickets: which of them are near, and which were missed, each told once.

What is near is known twice: from a clock, in time, and from the journal, for certain. A ticket or a run that used 80 %
of its time is told whether or not a process was there to see it; both tellings have the same id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from hashlib import sha1
from heapq import heapify, heappop, heappush

from oraculo.core import events as ev
from oraculo.core.flow.profile import flow_in
from oraculo.core.state import Orchestration
from oraculo.core.tenants import local_name, tenant_of
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import Phase, Status

NEAR_SHARE = 0.8  # of its time that is used up: the deadline is near
FORECAST_SHARES = (0.3, 0.5, 0.65)  # of the time of a run: when its end is foreseen
SERVICE = "orchestrator"  # of runs that have no type
MAX_STALE_TIMERS = 10_000
_NAMESPACE = bytes.fromhex("8f4c1c1e5f0e5c579d0b0a5b6a1e7a11")  # of ids
_RUN = -1  # in the place of a position


class AlertKind(StrEnum):
    NEAR = "DEADLINE_APPROACHING"
    AT_RISK = "DEADLINE_AT_RISK"  # it will be missed, by what is predicted
    MISSED = "DEADLINE_EXCEEDED"
    BURN_RATE = "BURN_RATE_HIGH"
    BUDGET = "BUDGET_CRITICAL"
    BUDGET_CHANGED = "BUDGET_CHANGED"
    FROZEN = "FREEZE_ACTIVATED"
    THAWED = "FREEZE_RESOLVED"


def alert_id(*parts: object) -> str:
    """The id of an alert, a UUID of version 5: the same whenever and wherever it is found."""
    found = bytearray(sha1(_NAMESPACE + ":".join(map(str, parts)).encode(), usedforsecurity=False).digest()[:16])
    found[6], found[8] = found[6] & 0x0F | 0x50, found[8] & 0x3F | 0x80
    text = found.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


@dataclass(slots=True)
class WatchedTime:
    started: datetime
    due: datetime

    def at_share(self, share: float) -> datetime:
        return self.started + share * (self.due - self.started)

    def used(self, now: datetime) -> float:
        whole = self.due - self.started
        return (now - self.started) / whole if whole else 1.0


@dataclass(slots=True)
class WatchedRun:
    """`own` is its own time; None: it has no deadline. `tickets` are those that run."""

    run: int
    name: str
    workflow_id: str
    service: str
    severe: bool
    own: WatchedTime | None
    paused_at: datetime | None = None
    tickets: dict[int, WatchedTime] = field(default_factory=dict)

    @property
    def tenant(self) -> str:
        return tenant_of(self.name)


@dataclass(frozen=True, slots=True)
class DeadlineAlert:
    """`ticket` is None for the run itself; `at`: when it became so."""

    kind: AlertKind
    run: WatchedRun
    ticket: str | None
    destination: str | None
    time: WatchedTime
    at: datetime
    attempts: int = 0

    @property
    def id(self) -> str:
        return alert_id(self.run.run, self.ticket or "run", self.kind.value)


class DeadlineWatch:
    """`near`: the share of its time after which something is told."""

    def __init__(self, near: float = NEAR_SHARE, *, forecasts: bool = False) -> None:
        self._near = near
        self._shares = FORECAST_SHARES if forecasts else ()
        self.runs: dict[int, WatchedRun] = {}
        self._timers: list[tuple[datetime, int, int]] = []  # instant, run, position (or _RUN, or below: a forecast)

    # -- the journal ---------------------------------------------------------------------------------------------------

    def begin(self, state: Orchestration) -> WatchedRun:
        """Watch an open run as it stands."""
        flow = flow_in(state.plan)
        name = local_name(state.correlation_id)
        info = WatchedRun(
            state.run,
            state.correlation_id,
            name if flow is None else flow.workflow_id,
            state.plan.tipo or SERVICE,
            flow is not None and flow.risk_band.value in ("high", "critical"),
            None if state.deadline is None else WatchedTime(state.started_at, state.deadline),
            None if state.paused is None else state.paused.since,
        )
        self.runs[state.run] = info
        if info.own is not None:
            self._arm(info, _RUN, info.own)
            for number, share in enumerate(self._shares):
                heappush(self._timers, (info.own.at_share(share), state.run, _RUN - 1 - number))
        return info

    def recover(self, state: Orchestration) -> None:
        """The same for a run that began before this process watched."""
        info = self.begin(state)
        for position, ticket in enumerate(state.tickets):
            if ticket.phase is Phase.RUNNING:
                self._start(info, state, position)

    def take(self, state: Orchestration, events: Iterable[ev.Event], at: datetime) -> Iterator[DeadlineAlert]:
        """What one step tells. `state` is as it is after the step."""
        info = self.runs.get(state.run)
        for event in events:
            if info is None and not isinstance(event, ev.NoticeSent | ev.NoticeDelivered):
                info = self.begin(state)
            if info is None:
                continue
            match event:
                case ev.DispatchConfirmed(confirmed):
                    for position, attempt in confirmed:
                        if state.tickets[position].attempt == attempt:
                            self._start(info, state, position)
                case ev.TicketConcluded(position) | ev.AttemptFailed(position):
                    yield from self._ended(info, state, position, at)
                case ev.TicketFailed(position, _attempt, status):
                    yield from self._ended(info, state, position, at, missed=status is Status.TIMEOUT)
                case ev.TicketsClosed(positions):
                    for position in positions:
                        yield from self._ended(info, state, position, at)
                case ev.OrchestrationPaused():
                    info.paused_at = at
                case ev.OrchestrationResumed():
                    self._resumed(info, at)
                case ev.OrchestrationClosed(status):
                    yield from self._closed(info, status, at)
                case _:
                    pass
        if state.closed_at is not None:
            self.runs.pop(state.run, None)

    def _start(self, info: WatchedRun, state: Orchestration, position: int) -> None:
        ticket = state.tickets[position]
        if ticket.phase is Phase.RUNNING and ticket.due_at is not None and ticket.started_at is not None:
            timeout = state.plan.tasks[position].timeout
            info.tickets[position] = time = WatchedTime(ticket.due_at - timeout, ticket.due_at)
            self._arm(info, position, time)

    def _ended(
        self, info: WatchedRun, state: Orchestration, position: int, at: datetime, *, missed: bool = False
    ) -> Iterator[DeadlineAlert]:
        time = info.tickets.pop(position, None)
        if time is None and missed:
            timeout = state.plan.tasks[position].timeout
            time = WatchedTime(at - timeout, at)
        if time is None:
            return
        ticket, name = ticket_id(state.run, position), local_name(state.plan.tasks[position].name)
        attempts = state.tickets[position].attempt
        now = info.paused_at or at
        if missed or time.used(now) >= self._near:
            near = min(time.at_share(self._near), at)
            yield DeadlineAlert(AlertKind.NEAR, info, ticket, name, time, near, attempts)
        if missed or now > time.due:
            yield DeadlineAlert(AlertKind.MISSED, info, ticket, name, time, at, attempts)

    def _closed(self, info: WatchedRun, status: Status, at: datetime) -> Iterator[DeadlineAlert]:
        time = info.own
        if time is None:
            return
        now = info.paused_at or at
        missed = status is Status.TIMEOUT or now > time.due
        if missed or time.used(now) >= self._near:
            yield DeadlineAlert(AlertKind.NEAR, info, None, None, time, min(time.at_share(self._near), at))
        if missed:
            yield DeadlineAlert(AlertKind.MISSED, info, None, None, time, at)

    def _resumed(self, info: WatchedRun, at: datetime) -> None:
        """Move all its times by the pause."""
        if info.paused_at is None:
            return
        length, info.paused_at = at - info.paused_at, None
        own = () if info.own is None else ((_RUN, info.own),)
        for position, time in (*own, *info.tickets.items()):
            time.started += length
            time.due += length
            self._arm(info, position, time)

    # -- the clock -----------------------------------------------------------------------------------------------------

    def _arm(self, info: WatchedRun, position: int, time: WatchedTime) -> None:
        heappush(self._timers, (time.at_share(self._near), info.run, position))

    def due(self, now: datetime) -> tuple[list[DeadlineAlert], list[WatchedRun]]:
        """What is near by now, and runs whose end is to be foreseen."""
        near: list[DeadlineAlert] = []
        foresee: list[WatchedRun] = []
        while self._timers and self._timers[0][0] <= now:
            at, run, position = heappop(self._timers)
            info = self.runs.get(run)
            if info is None or info.paused_at is not None:
                continue
            if position < _RUN:
                foresee.append(info)
                continue
            time = info.own if position == _RUN else info.tickets.get(position)
            if time is not None and time.at_share(self._near) == at:
                ticket = None if position == _RUN else ticket_id(run, position)
                near.append(DeadlineAlert(AlertKind.NEAR, info, ticket, None, time, at))
        self._compact()
        return near, foresee

    def _compact(self) -> None:
        """Drop timers of what has ended, once there are many."""
        live = sum(len(info.tickets) + 1 + len(self._shares) for info in self.runs.values())
        if len(self._timers) > 2 * live + MAX_STALE_TIMERS:
            self._timers = [one for one in self._timers if self._lives(one[1], one[2])]
            heapify(self._timers)

    def _lives(self, run: int, position: int) -> bool:
        info = self.runs.get(run)
        return info is not None and (position < 0 or position in info.tickets)
