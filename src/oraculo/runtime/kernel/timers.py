"""When to look at which orchestration again, and the loop that does. In memory; the store has `wake_at` for the next
start."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush

from oraculo.core.commands import Wake
from oraculo.core.state import Orchestration
from oraculo.ports.clock import Clock
from oraculo.ports.work import Work
from oraculo.runtime.kernel.cache import StateCache
from oraculo.runtime.kernel.transaction import Transaction

BROKEN_RETRY_DELAY = timedelta(seconds=30)  # before an orchestration whose step failed is tried again
CLOCK_POLL_S = 1.0  # at most, between two looks at the clock


class Timers:
    """Keeps one instant per orchestration. Moving it later costs nothing: the earlier entry fires and is put off."""

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


class TimerLoop:
    """Wakes orchestrations in time; fed by commits, and by recovery with what was committed before."""

    def __init__(self, clock: Clock, enqueue: Callable[[Sequence[Work]], None]) -> None:
        self._clock = clock
        self._enqueue = enqueue
        self._rearmed = asyncio.Event()
        self._asleep_until: datetime | None = None
        self.timers = Timers()

    def committed(self, transaction: Transaction) -> None:
        """Take over when each orchestration of a commit wants to be woken."""
        for done in transaction.steps:
            self.timers.set(done.state.run, done.state.wake_at())
        for run in transaction.broken:
            self.timers.set(run, transaction.at + BROKEN_RETRY_DELAY)
        self._rearm()

    def rearm_early_wakes(self, transaction: Transaction, cache: StateCache) -> None:
        """Set the timer again of what was woken too early, because another process has moved it meanwhile."""
        for work in transaction.works:
            if isinstance(work.command, Wake):
                state = cache.get(work.run)
                self.timers.set(work.run, None if state is None else state.wake_at())
        self._rearm()

    def recovered(self, state: Orchestration) -> None:
        """Take over when an orchestration wants to be woken whose commit was not seen here."""
        self.timers.set(state.run, state.wake_at())
        self._rearmed.set()

    def _rearm(self) -> None:
        """Wake the loop when something is due sooner than it thinks."""
        upcoming = self.timers.next()
        if upcoming is not None and (self._asleep_until is None or upcoming < self._asleep_until):
            self._rearmed.set()

    async def run(self) -> None:
        while True:
            self._rearmed.clear()
            now = self._clock.now()
            due = self.timers.due(now)
            if due:
                self._enqueue(wakes(due))
            upcoming = self._asleep_until = self.timers.next()
            pause = CLOCK_POLL_S if upcoming is None else min(CLOCK_POLL_S, (upcoming - now).total_seconds())
            if pause > 0:
                try:
                    async with asyncio.timeout(pause):
                        await self._rearmed.wait()
                except TimeoutError:
                    pass


def wakes(runs: Sequence[int]) -> list[Work]:
    """Return the commands that wake these orchestrations."""
    return [Work(Wake(), run=run) for run in runs]
