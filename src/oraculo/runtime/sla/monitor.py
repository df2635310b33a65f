"""The projection that watches deadlines and objectives: what it finds is told once, over restarts and replicas.

One process watches at a time: the one that moves the cursor. What was found is written with the position it was found
at, in one transaction over an expected version, and an alert that was told before is not told again. Nothing is written
for a ticket that is in time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

import orjson
import structlog

from oraculo.chunks import chunks_by_count
from oraculo.core.durations.ending import Risk, RunForecast
from oraculo.core.events import OrchestrationClosed, OrchestrationStarted
from oraculo.core.replay import rebuild
from oraculo.core.sla.budget import CRITICAL_SHARE, LOW_STATUSES, OutsideBudget, status_of
from oraculo.core.sla.slo import ends
from oraculo.core.sla.watch import NEAR_SHARE, AlertKind, DeadlineAlert, DeadlineWatch, WatchedRun
from oraculo.core.state import Orchestration
from oraculo.errors import SinkUnavailableError
from oraculo.ports.clock import Clock
from oraculo.ports.cursors import Cursors
from oraculo.ports.durations import DurationEstimates
from oraculo.ports.journal import Journal
from oraculo.ports.projected import ProjectedChange, ProjectedDocuments, ProjectedMark
from oraculo.ports.projection import Entry, Sink
from oraculo.ports.sla import Freeze, SlaRegistry, ToldAlert
from oraculo.runtime.sla.objectives import Objectives, outside_alert
from oraculo.wire.sla import deadline_record

log = structlog.get_logger("oraculo.sla")

PROJECTION = "sla"
TICK_INTERVAL_S = 1.0
EVALUATION_INTERVAL = timedelta(seconds=15)
RUNS_PER_LOAD = 200
_UNKNOWN = -1


class MonitoredStore(Journal, Cursors, ProjectedDocuments, SlaRegistry, Protocol):
    """The parts of a store that the monitor reads and writes."""


class SlaMonitor(Sink):
    """`told` counts alerts that this process was the first to tell, by their type. Objectives are looked at every
    `interval`; a budget is critical with the share `critical` or less. `outside` gives budgets that another
    service measures."""

    name = PROJECTION
    gather_s = 0.2

    def __init__(
        self,
        store: MonitoredStore,
        clock: Clock,
        *,
        near: float = NEAR_SHARE,
        durations: DurationEstimates | None = None,
        interval: timedelta = EVALUATION_INTERVAL,
        critical: float = CRITICAL_SHARE,
        outside: Callable[[], Sequence[OutsideBudget]] = tuple,
    ) -> None:
        self._store = store
        self._clock = clock
        self._near = near
        self._interval = interval
        self._critical = critical
        self.outside = outside
        self._told_today: set[str] = set()  # ids of alerts of budgets of another service
        self._durations = durations
        self._lock = asyncio.Lock()
        self._version = _UNKNOWN  # of the documents that are in memory
        self._watching = False  # all open runs are watched
        self._deadlines = DeadlineWatch(near, forecasts=durations is not None)
        self._evaluate_at: datetime | None = None
        self.objectives = Objectives(critical)
        self.told: Counter[str] = Counter()

    def now(self) -> datetime:
        return self._clock.now()

    def active(self, tenant: str) -> tuple[Freeze, ...]:
        """The freezes of a tenant that are in force."""
        return self.objectives.frozen(tenant)

    # -- the journal ---------------------------------------------------------------------------------------------------

    async def record(self, entries: Iterable[Entry]) -> None:
        async with self._lock:
            mark = await self._watch()
            found: list[ToldAlert] = []
            last, now = mark.position, self._clock.now()
            try:
                for entry in entries:
                    step = entry.step
                    if step.position > mark.position:
                        last = step.position
                        if self._began_unwatched(entry):
                            await self._recover([step.run], step.position - 1)
                        alerts = self._deadlines.take(entry.state, step.events, step.at)
                        found += [_alert(one, max(now, one.at)) for one in alerts]
                        if self.objectives.slos:
                            self.objectives.count(ends(entry.state, step.events, step.at), step.at)
            except BaseException:
                self._forget()
                raise
            await self._tell(found, last)

    # -- the clock -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Look at the clock, for ever."""
        while True:
            await self.tick()
            await asyncio.sleep(TICK_INTERVAL_S)

    async def tick(self) -> None:
        """Tell what is near by now and what has changed of objectives; in other processes, read what was told."""
        async with self._lock:
            if await self._store.claim_cursor(self.name) is None:
                self._watching = False
                await self._refresh()
                return
            mark = await self._watch()
            now = self._clock.now()
            near, foresee = self._deadlines.due(now)
            found = [_alert(one, now) for one in (*near, *await self._at_risk(foresee, now))]
            if self._evaluate_at is None or now >= self._evaluate_at:
                self._evaluate_at = now + self._interval
                found += self.objectives.evaluate(now)
                found += self._outside_alerts(now)
            if found or self.objectives.changed:
                await self._tell(found, mark.position)
                self._told_today |= {one.id for one in found if one.kind == AlertKind.BUDGET}

    def _outside_alerts(self, now: datetime) -> list[ToldAlert]:
        """Budgets of another service that are critical; each is told once a day as long as it is."""
        low = [one for one in self.outside() if status_of(one.remaining, self._critical) in LOW_STATUSES]
        alerts = [outside_alert(one, now) for one in low]
        self._told_today &= {one.id for one in alerts}
        return [one for one in alerts if one.id not in self._told_today]

    async def _at_risk(self, runs: Sequence[WatchedRun], now: datetime) -> list[DeadlineAlert]:
        """Runs that will miss their deadline, by what is predicted."""
        found = []
        if self._durations is not None and runs:
            for state in await self._states([one.run for one in runs]):
                info = self._deadlines.runs.get(state.run)
                ahead = self._durations.foresee(state, now)
                if info is None or info.own is None or not isinstance(ahead, RunForecast):
                    continue
                if ahead.risk(info.own.due, now) is Risk.LIKELY:
                    found.append(DeadlineAlert(AlertKind.AT_RISK, info, None, None, info.own, now))
        return found

    # -- what is in memory, and what is stored -------------------------------------------------------------------------

    async def _watch(self) -> ProjectedMark:
        """Have in memory what is stored, and watch every open run: as it was at the position that is stored, since what
        came later is told when it is read. A run that is newer is watched from then on."""
        before = self._version
        mark = await self._refresh()
        if not self._watching or mark.version != before:
            self._deadlines = DeadlineWatch(self._near, forecasts=self._durations is not None)
            for chunk in chunks_by_count([one.run for one in await self._store.live() if one.open], RUNS_PER_LOAD):
                await self._recover(chunk, mark.position)
                await asyncio.sleep(0)
            self._watching = True
        return mark

    def _began_unwatched(self, entry: Entry) -> bool:
        """True of a step of a run that was open before it, and had ended when this process began to watch."""
        events = entry.step.events
        if entry.step.run in self._deadlines.runs or isinstance(events[0], OrchestrationStarted):
            return False
        return entry.state.closed_at is None or any(isinstance(one, OrchestrationClosed) for one in events)

    async def _recover(self, runs: Sequence[int], position: int) -> None:
        """Watch runs as they were at a position, if they were open then."""
        for steps in (await self._store.load(runs)).values():
            read = [one for one in steps if one.position <= position]
            if read and (state := rebuild(read)).closed_at is None:
                self._deadlines.recover(state)

    async def _states(self, runs: Sequence[int]) -> list[Orchestration]:
        return [rebuild(steps) for steps in (await self._store.load(runs)).values()]

    async def _refresh(self) -> ProjectedMark:
        mark = await self._store.projected_mark(PROJECTION)
        if mark.version != self._version:
            if mark.version < self._version or self._version == _UNKNOWN:
                self.objectives, self._version = Objectives(self._critical), 0
            self.objectives.load(await self._store.projected(PROJECTION, self._version))
            self._version = mark.version
        self.objectives.define(await self._store.slos())
        return mark

    async def _tell(self, found: Sequence[ToldAlert], position: int) -> None:
        """Write what was found, with all that goes with it."""
        version, self._version = self._version, _UNKNOWN  # read again, unless all of it is written
        change = ProjectedChange(position, self.objectives.take_documents(), list(found))
        new = await self._store.save_projected(PROJECTION, version, change)
        if new is None:
            self._forget()
            raise SinkUnavailableError("another process watches deadlines now")
        self._version = version + 1
        for one in found:
            if one.id in new:
                self.told[one.kind] += 1
                log.warning("sla", alert=one.kind, id=one.id, tenant=one.tenant, record=one.body.decode())

    def _forget(self) -> None:
        self._version, self._watching = _UNKNOWN, False


def _alert(one: DeadlineAlert, now: datetime) -> ToldAlert:
    body = orjson.dumps(deadline_record(one, now))
    return ToldAlert(one.id, one.run.tenant, one.run.run, one.kind.value, one.at, body)
