"""What brokers have confirmed → ConfirmDispatch, a moment later and many together.

Recording a confirmation is not urgent: it waits a moment, because the answer of a fast worker makes it unnecessary.
That saves a third of the rows when workers are quick and costs nothing when they are not. Under load answers come
later, since orders wait for a worker, and rows cost more: then each confirmation waits longer, up to a second.

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

Confirmed = dict[int, list[tuple[int, int]]]  # run → (position, attempt)


class Confirmations:
    """`report` takes the commands; `delay_s`: so long after the first, confirmations are reported together. While there
    is load each waits LOAD_DELAYS times as long, and those that came in one delay are reported together."""

    def __init__(self, report: Callable[[list[Work]], None], still_owed: StillOwed, delay_s: float) -> None:
        self._report = report
        self._still_owed = still_owed
        self._delay_s = delay_s
        self._newest: Confirmed = {}
        self._waiting: deque[Confirmed] = deque((self._newest,))  # what came in each delay, the newest last
        self._reported: deque[tuple[float, Confirmed]] = deque()  # and when, the oldest first
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return sum(map(len, self._waiting))

    def add(self, owed: Sequence[OwedOrder]) -> None:
        confirmed = self._newest
        for one in owed:
            run = one.run
            known = confirmed.get(run)
            if known is None:
                confirmed[run] = [one.pair]
            else:
                known.append(one.pair)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._delay_s, self._look)

    def of(self, run: int) -> list[tuple[int, int]]:
        """Return what a broker has confirmed of this orchestration and is not reported yet."""
        return [one for confirmed in self._waiting for one in confirmed.get(run, ())]

    def unrecorded(self, run: int) -> list[tuple[int, int]] | None:
        """Return what is not reported yet; None when everything that a broker has confirmed is recorded, too."""
        found = self.of(run)
        reported = [one for _, batch in self._reported for one in batch.get(run, ())]
        return found if found or (reported and self._still_owed(run, reported)) else None

    def forget(self, run: int) -> None:
        for confirmed in self._waiting:
            confirmed.pop(run, None)

    def _look(self) -> None:
        """Report what has waited long enough: everything, unless there is load."""
        load = len(self) >= LOAD_MIN_RUNS
        due: list[Confirmed] = []
        while self._waiting and len(self._waiting) >= (LOAD_DELAYS if load else 1):
            due.append(self._waiting.popleft())
        self._newest = {}
        self._waiting.append(self._newest)
        self._timer = asyncio.get_running_loop().call_later(self._delay_s, self._look) if len(self) else None
        self._record(due)

    def _record(self, due: Sequence[Confirmed]) -> None:
        together: Confirmed = {}
        for confirmed in due:
            for run, tickets in confirmed.items():
                together.setdefault(run, []).extend(tickets)
        reported: Confirmed = {}
        for run, tickets in together.items():
            left = self._still_owed(run, tickets)
            if left:
                reported[run] = list(left)
        now = asyncio.get_running_loop().time()
        while self._reported and now - self._reported[0][0] > REPORTED_KEPT_S:
            self._reported.popleft()
        if reported:
            self._reported.append((now, reported))
            self._report([Work(ConfirmDispatch(tickets), run=run) for run, tickets in reported.items()])

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
