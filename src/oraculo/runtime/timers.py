"""When to look at which orchestration again. In memory; the store has `wake_at` for the next start."""

from __future__ import annotations

from datetime import datetime
from heapq import heapify, heappop, heappush


class Timers:
    """One instant per orchestration. Moving it later costs nothing: the earlier entry fires and is put off."""

    def __init__(self) -> None:
        self._at: dict[int, datetime] = {}
        self._heap: list[tuple[datetime, int]] = []
        self._armed: dict[int, datetime] = {}  # the earliest entry of each that is in the heap

    def __len__(self) -> int:
        return len(self._at)

    def set(self, run: int, at: datetime | None) -> None:
        if at is None:
            self._at.pop(run, None)
            self._armed.pop(run, None)
            return
        self._at[run] = at
        armed = self._armed.get(run)
        if armed is None or at < armed:
            self._armed[run] = at
            heappush(self._heap, (at, run))
            if len(self._heap) > 2 * len(self._at) + 1000:
                self._rebuild()

    def next(self) -> datetime | None:
        return self._heap[0][0] if self._heap else None

    def due(self, now: datetime) -> list[int]:
        """The orchestrations whose instant has come; each is named once and then forgotten until set again."""
        ready = []
        while self._heap and self._heap[0][0] <= now:
            at, run = heappop(self._heap)
            if self._armed.get(run) != at:
                continue
            del self._armed[run]
            wanted = self._at.get(run)
            if wanted is None:
                continue
            if wanted <= now:
                del self._at[run]
                ready.append(run)
            else:
                self._armed[run] = wanted
                heappush(self._heap, (wanted, run))
        return ready

    def _rebuild(self) -> None:
        self._armed = dict(self._at)
        self._heap = [(at, run) for run, at in self._at.items()]
        heapify(self._heap)
