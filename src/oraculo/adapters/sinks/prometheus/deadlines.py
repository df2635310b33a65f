"""How much time the open orchestrations have left, and which of them have used up most of it.

What an earlier process opened is read from the store at the start; what another process ended is forgotten when it
would be the most urgent of its risk band (`urgent`, `forget`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from heapq import heapify, heappop, heappush

from oraculo.adapters.sinks.prometheus.families import NO_BAND
from oraculo.core.state import Orchestration

APPROACHING_SHARE = 0.8  # of the time that an orchestration has
MAX_STALE_ENTRIES = 1000  # entries of ended orchestrations that may stay in a heap


@dataclass(slots=True)
class Open:
    """An orchestration that has not ended. `noticed`: that most of its time is used up was counted."""

    correlation_id: str
    started: datetime
    deadline: datetime
    band: str
    noticed: bool = False

    @property
    def threshold(self) -> datetime:
        return self.started + (self.deadline - self.started) * APPROACHING_SHARE


class Deadlines:
    """`open`: run → what is known of it. Most end long before they are looked at; only those that do not are put in
    order."""

    def __init__(self) -> None:
        self.open: dict[int, Open] = {}
        self._new: list[int] = []
        self._by_deadline: dict[str, list[tuple[datetime, int]]] = {}  # risk band → heap
        self._by_threshold: list[tuple[datetime, int]] = []

    def saw(self, state: Orchestration) -> None:
        """Note an orchestration, if it is open and has a deadline."""
        if state.closed_at is None and state.deadline is not None and state.run not in self.open:
            band = state.plan.profile.band or NO_BAND
            self.opened(state.run, Open(state.correlation_id, state.started_at, state.deadline, band))

    def opened(self, run: int, one: Open) -> None:
        """Note an orchestration that is open."""
        if run not in self.open:
            self.open[run] = one
            self._new.append(run)

    def ended(self, run: int, at: datetime) -> int:
        """Return 1 when it was open at its threshold and that was not counted yet, else 0."""
        known = self.open.pop(run, None)
        if known is None or known.deadline - at > at - known.started:  # half of its time is left: quickly told
            return 0
        return 1 if not known.noticed and at >= known.threshold else 0

    def approaching(self, now: datetime) -> int:
        """How many open orchestrations have passed their threshold since this was asked last."""
        self._sort()
        passed = 0
        heap = self._by_threshold
        while heap and heap[0][0] <= now:
            _, run = heappop(heap)
            known = self.open.get(run)
            if known is not None and not known.noticed:
                known.noticed = True
                passed += 1
        return passed

    def least(self, now: datetime) -> dict[str, float]:
        """Risk band → seconds that its most urgent open orchestration has left; below 0 when it is late."""
        return {one.band: (one.deadline - now).total_seconds() for _, one in self.urgent()}

    def urgent(self) -> Iterator[tuple[int, Open]]:
        """The most urgent open orchestration of each risk band, with its number."""
        self._sort()
        for heap in self._by_deadline.values():
            while heap and heap[0][1] not in self.open:
                heappop(heap)
            if heap:
                yield heap[0][1], self.open[heap[0][1]]

    def forget(self, run: int) -> None:
        """Forget an orchestration that another process has ended."""
        self.open.pop(run, None)

    def _sort(self) -> None:
        new, self._new = self._new, []
        for run in new:
            known = self.open.get(run)
            if known is not None:
                heappush(self._by_deadline.setdefault(known.band, []), (known.deadline, run))
                heappush(self._by_threshold, (known.threshold, run))
        for heap in (*self._by_deadline.values(), self._by_threshold):
            if len(heap) > 2 * len(self.open) + MAX_STALE_ENTRIES:
                heap[:] = [entry for entry in heap if entry[1] in self.open]
                heapify(heap)
