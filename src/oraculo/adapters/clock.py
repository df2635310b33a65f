"""The process clock: wall time at the start, then only forward, by a monotonic clock, which cannot be set."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta


class MonotonicClock:
    """A jump of the wall clock moves no deadline while the process lives. After a restart it starts from the wall clock
    again, or from the newest record of the store when the wall clock went back behind it."""

    def __init__(self, not_before: datetime | None = None) -> None:
        wall = datetime.fromtimestamp(time.time(), UTC)
        self._origin = max(wall, not_before) if not_before else wall
        self._started = _elapsed()

    def now(self) -> datetime:
        return self._origin + timedelta(seconds=_elapsed() - self._started)

    def not_before(self, at: datetime) -> None:
        """Never show a time before `at`."""
        behind = at - self.now()
        if behind > timedelta():
            self._origin += behind

    def follow(self, at: datetime) -> None:
        """It is `at` now, says the clock that several processes go by."""
        self._origin += at - self.now()


def _elapsed() -> float:
    """Seconds that also count while the machine sleeps, where the system can tell."""
    return time.clock_gettime(_CLOCK) if _CLOCK is not None else time.monotonic()


_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", None)
