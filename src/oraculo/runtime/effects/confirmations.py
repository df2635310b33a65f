"""What brokers have confirmed → ConfirmDispatch, a moment later and many together.

Recording a confirmation is not urgent: it waits a moment, because the answer of a fast worker makes it unnecessary.
That saves a third of the rows when workers are quick and costs nothing when they are not. Under load answers come
later, since orders wait for a worker, and rows cost more: then confirmations wait longer, up to a second.

Between a report and its commit a confirmation is in neither place for those who look, so what was reported is
remembered for a while: readers of its run wait for that commit, and a ticket that a worker has never says that it
waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from oraculo.core.commands import ConfirmDispatch
from oraculo.ports.work import Work
from oraculo.runtime.effects.owed import OwedOrder, StillOwed

CONFIRM_DELAY_S = 0.1
LOAD_DELAYS = 10  # under load confirmations wait so many delays
LOAD_MIN_RUNS = 100  # with confirmations of so many orchestrations at once there is load
REPORTED_KEPT_S = 5.0  # far longer than a commit takes


class Confirmations:
    """`report` takes the commands; `delay_s`: so long after the first, confirmations are reported together, or after
    LOAD_DELAYS times as long while there is load."""

    def __init__(self, report: Callable[[list[Work]], None], still_owed: StillOwed, delay_s: float) -> None:
        self._report = report
        self._still_owed = still_owed
        self._delay_s = delay_s
        self._confirmed: dict[int, list[tuple[int, int]]] = {}
        self._reported: deque[tuple[float, dict[int, list[tuple[int, int]]]]] = deque()  # and when, the oldest first
        self._timer: asyncio.TimerHandle | None = None
        self._delays = 0  # that have passed since the first of them

    def __len__(self) -> int:
        return len(self._confirmed)

    def add(self, owed: Sequence[OwedOrder]) -> None:
        confirmed = self._confirmed
        for one in owed:
            confirmed.setdefault(one.run, []).append((one.position, one.attempt))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._delay_s, self._look)

    def of(self, run: int) -> list[tuple[int, int]]:
        """Return what a broker has confirmed of this orchestration and is not reported yet."""
        return list(self._confirmed.get(run, ()))

    def unrecorded(self, run: int) -> list[tuple[int, int]] | None:
        """Return what is not reported yet; None when everything that a broker has confirmed is recorded, too."""
        found = self.of(run)
        reported = [one for _, batch in self._reported for one in batch.get(run, ())]
        return found if found or (reported and self._still_owed(run, reported)) else None

    def forget(self, run: int) -> None:
        self._confirmed.pop(run, None)

    def _look(self) -> None:
        self._delays += 1
        if len(self._confirmed) >= LOAD_MIN_RUNS and self._delays < LOAD_DELAYS:
            self._timer = asyncio.get_running_loop().call_later(self._delay_s, self._look)
        else:
            self._record()

    def _record(self) -> None:
        confirmed, self._confirmed, self._timer, self._delays = self._confirmed, {}, None, 0
        works = []
        for run, tickets in confirmed.items():
            left = self._still_owed(run, tickets)
            if left:
                works.append(Work(ConfirmDispatch(list(left)), run=run))
        now = asyncio.get_running_loop().time()
        while self._reported and now - self._reported[0][0] > REPORTED_KEPT_S:
            self._reported.popleft()
        if works:
            self._reported.append((now, confirmed))
            self._report(works)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
