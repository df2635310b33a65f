"""In which order tickets that wait for a worker are offered: the urgent first, and what waits becomes more urgent; of
those that are about as urgent, the plan that got least goes first."""

from __future__ import annotations

from datetime import timedelta

AGEING_STEP_SHARE, AGEING_SCORE = 0.1, 0.05  # for each such share of its time that a ticket waits, it gains so much
CLASS_SCORE_WIDTH = 0.1  # scores within it are about as urgent


def aged(score: float, waited: timedelta, timeout: timedelta) -> float:
    """The score of a ticket that has waited; its whole time makes the least urgent more urgent than any fresh one."""
    if timeout <= timedelta() or waited <= timedelta():
        return score
    steps = min(1.0, waited / timeout) // AGEING_STEP_SHARE
    return round(score + steps * AGEING_SCORE, 6)


def urgency_class(score: float) -> int:
    """The number of the class that a score is in: higher goes first."""
    return int(round(score, 6) / CLASS_SCORE_WIDTH + 1e-9)


class FairShares:
    """How much each plan got. One that comes later begins with as much as the one that got least, and no plan is served
    for the time in which it had nothing to ask for."""

    def __init__(self) -> None:
        self._got: dict[int, int] = {}

    def keep(self, runs: set[int]) -> None:
        """Forget plans that have nothing waiting, and take in new ones."""
        least = min((got for run, got in self._got.items() if run in runs), default=0)
        self._got = {run: self._got.get(run, least) for run in runs}

    def got(self, run: int) -> int:
        return self._got.get(run, 0)

    def serve(self, run: int) -> None:
        self._got[run] = self._got.get(run, 0) + 1
