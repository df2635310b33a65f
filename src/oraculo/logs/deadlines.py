"""Plans of Fluxo C that run out of time, as log lines: a warning when little is left, an error when next to nothing.

The process that opened a plan says so; after a restart, the one that has the store for itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush

import structlog

from oraculo.core import events as ev
from oraculo.core.flow.cognitive import TIPO
from oraculo.core.flow.profile import flow_in
from oraculo.core.vocabulary import Status
from oraculo.errors import StoreError
from oraculo.ports.catalogue import Catalogue, Query
from oraculo.ports.clock import Clock
from oraculo.ports.journal import Batch
from oraculo.ports.observer import EventsByType
from oraculo.ports.store import Store
from oraculo.redaction import redact

CHECK_INTERVAL_S = 1.0  # seconds between two looks
ALARMS = ((timedelta(minutes=30), logging.WARNING), (timedelta(minutes=5), logging.ERROR))  # less than that is left
PAGE_PLANS = 500
MAX_STALE_ALARMS = 1000  # entries of ended plans that may stay in the heap

log = structlog.get_logger("oraculo.deadlines")


def level_of(left: timedelta) -> int | None:
    """How loud it is to be said; None while there is time."""
    return next((level for least, level in reversed(ALARMS) if left < least), None)


class DeadlineLog:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: dict[int, tuple[str, datetime]] = {}  # run → its name and deadline
        self._alarms: list[tuple[datetime, int]] = []  # when something is to be said of whom

    def saw(self, _batch: Batch, told: EventsByType) -> None:
        for _, event in told.get(ev.OrchestrationStarted, ()):
            if flow_in(event.plan) is not None and event.deadline is not None and event.plan.timeout is not None:
                self._add(event.run, event.correlation_id, event.deadline, event.deadline - event.plan.timeout)
        if self._open:
            for step, _ in told.get(ev.OrchestrationClosed, ()):
                self._open.pop(step.state.run, None)

    def _add(self, run: int, name: str, deadline: datetime, since: datetime) -> None:
        """What has less time from its beginning is nothing to be said."""
        self._open[run] = name, deadline
        for least, _ in ALARMS:
            if deadline - least > since:
                heappush(self._alarms, (deadline - least, run))

    def look(self) -> None:
        now = self._clock.now()
        while self._alarms and self._alarms[0][0] < now:
            _, run = heappop(self._alarms)
            if run in self._open:
                name, deadline = self._open[run]
                left = deadline - now
                log.log(
                    level_of(left) or logging.WARNING,
                    "the deadline of a plan approaches",
                    correlation_id=redact(name),
                    sla_remaining_seconds=max(0, round(left.total_seconds())),
                )
        if len(self._alarms) > len(ALARMS) * len(self._open) + MAX_STALE_ALARMS:
            self._alarms = [entry for entry in self._alarms if entry[1] in self._open]
            heapify(self._alarms)

    async def run(self, store: Store) -> None:
        """For ever."""
        known = store.sharing is not None
        while True:
            if not known:
                with contextlib.suppress(StoreError):  # away: at the next look
                    await self._recover(store)
                    known = True
            await asyncio.sleep(CHECK_INTERVAL_S)
            self.look()

    async def _recover(self, store: Catalogue) -> None:
        """Plans that an earlier process opened."""
        query = Query(status=(Status.PENDENTE, Status.EM_EXECUCAO), tipo=TIPO, limit=PAGE_PLANS)
        while found := await store.find(query):
            for one in found:
                if one.deadline is not None and one.run not in self._open:
                    self._add(one.run, one.correlation_id, one.deadline, self._clock.now())
            query.before_run = found[-1].run
