"""How much time the open orchestrations have left, and which of them have used up most of it.

Deadlines of orchestrations that were opened by an earlier process are known from their next event on.
"""

from __future__ import annotations

from datetime import datetime
from heapq import heapify, heappop, heappush

from oraculo.core.state import Orchestration

THRESHOLD = 0.8  # of the time that an orchestration has
SLACK = 1000  # entries of ended orchestrations that may stay in a heap


class Deadlines:
    """`open`: run → when it began, its deadline, and whether most of its time was noticed to be used up. Most end long
    before somebody looks; only those that do not are put in order."""

    def __init__(self) -> None:
        self.open: dict[int, tuple[datetime, datetime, bool]] = {}
        self._new: list[int] = []
        self._by_deadline: list[tuple[datetime, int]] = []
        self._by_threshold: list[tuple[datetime, int]] = []

    def saw(self, state: Orchestration) -> None:
        """An orchestration that is open."""
        if state.closed_at is None and state.run not in self.open:
            self.open[state.run] = state.started_at, state.deadline, False
            self._new.append(state.run)

    def ended(self, run: int, at: datetime) -> int:
        """1 when it was open at its threshold and nobody had noticed yet."""
        known = self.open.pop(run, None)
        if known is None or known[1] - at > at - known[0]:  # half of its time is left: that is quickly told
            return 0
        return 1 if not known[2] and at >= _threshold(known[0], known[1]) else 0

    def approaching(self, now: datetime) -> int:
        """How many open orchestrations have passed their threshold since this was asked last."""
        self._sort()
        passed = 0
        heap = self._by_threshold
        while heap and heap[0][0] <= now:
            _, run = heappop(heap)
            known = self.open.get(run)
            if known is not None and not known[2]:
                self.open[run] = known[0], known[1], True
                passed += 1
        return passed

    def least(self, now: datetime) -> float | None:
        """Seconds that the most urgent open orchestration has left; below 0 when it is late."""
        self._sort()
        heap = self._by_deadline
        while heap and heap[0][1] not in self.open:
            heappop(heap)
        return (heap[0][0] - now).total_seconds() if heap else None

    def _sort(self) -> None:
        new, self._new = self._new, []
        for run in new:
            known = self.open.get(run)
            if known is not None:
                heappush(self._by_deadline, (known[1], run))
                heappush(self._by_threshold, (_threshold(known[0], known[1]), run))
        if len(self._by_deadline) > 2 * len(self.open) + SLACK:
            self._by_deadline = [entry for entry in self._by_deadline if entry[1] in self.open]
            heapify(self._by_deadline)
        if len(self._by_threshold) > 2 * len(self.open) + SLACK:
            self._by_threshold = [entry for entry in self._by_threshold if entry[1] in self.open]
            heapify(self._by_threshold)


def _threshold(started: datetime, deadline: datetime) -> datetime:
    return started + (deadline - started) * THRESHOLD
