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
    def __init__(self) -> None:
        self._open: dict[int, tuple[datetime, datetime]] = {}  # run → deadline, when 80 % of its time has passed
        self._by_deadline: list[tuple[datetime, int]] = []
        self._by_threshold: list[tuple[datetime, int]] = []

    def knows(self, run: int) -> bool:
        return run in self._open

    def saw(self, state: Orchestration) -> None:
        """An orchestration that is open."""
        run, deadline = state.run, state.deadline
        if run in self._open or state.closed_at is not None:
            return
        threshold = state.started_at + (deadline - state.started_at) * THRESHOLD
        self._open[run] = deadline, threshold
        heappush(self._by_deadline, (deadline, run))
        heappush(self._by_threshold, (threshold, run))
        if len(self._by_deadline) > 2 * len(self._open) + SLACK:
            self._by_deadline = [entry for entry in self._by_deadline if entry[1] in self._open]
            heapify(self._by_deadline)
        if len(self._by_threshold) > 2 * len(self._open) + SLACK:
            self._by_threshold = [entry for entry in self._by_threshold if entry[1] in self._open]
            heapify(self._by_threshold)

    def ended(self, run: int, at: datetime) -> int:
        """1 when it was open at its threshold and nobody had noticed yet."""
        known = self._open.pop(run, None)
        return 1 if known is not None and known[1] <= at and known[1] != known[0] else 0

    def approaching(self, now: datetime) -> int:
        """How many open orchestrations have passed their threshold since this was asked last."""
        passed = 0
        heap = self._by_threshold
        while heap and heap[0][0] <= now:
            _, run = heappop(heap)
            known = self._open.get(run)
            if known is not None and known[1] != known[0]:
                self._open[run] = known[0], known[0]  # noticed
                passed += 1
        return passed

    def least(self, now: datetime) -> float | None:
        """Seconds that the most urgent open orchestration has left; below 0 when it is late."""
        heap = self._by_deadline
        while heap and heap[0][1] not in self._open:
            heappop(heap)
        return (heap[0][0] - now).total_seconds() if heap else None
