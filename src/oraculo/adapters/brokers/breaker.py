"""When to stop publishing to a broker, and when to begin again. Pure: it is told the time.

It opens after several failures in a row, or when nothing was confirmed for a while although something was sent; it
stays open for a minimum time, so that a broker that comes and goes does not drag the traffic along; it closes after
several probes in a row went through.
"""

from __future__ import annotations

FAILURES_MAX = 5
SILENCE_TIMEOUT_S = 3.0
DWELL_S = 30.0
PROBES_NEEDED = 3


class Breaker:
    """The judgement on one broker; `dwell` is the least number of seconds that it stays open."""

    def __init__(self, dwell: float = DWELL_S) -> None:
        self.open_since: float | None = None
        self.error = ""
        self._dwell = dwell
        self._failures = 0
        self._failing_since: float | None = None
        self._probes = 0

    @property
    def open(self) -> bool:
        return self.open_since is not None

    def confirmed(self) -> None:
        """Something was published and confirmed. An open breaker takes no notice: only probes close it."""
        self._failures = 0
        self._failing_since = None

    def failed(self, now: float, error: str, took: float = 0.0) -> bool:
        """Something was not confirmed, after `took` seconds. True when that opened it."""
        self.error = error
        self._probes = 0
        self._failures += 1
        if self._failing_since is None:
            self._failing_since = now - took
        if self.open or (self._failures < FAILURES_MAX and now - self._failing_since < SILENCE_TIMEOUT_S):
            return False
        self.open_since = now
        return True

    def probed(self, now: float, ok: bool) -> bool:
        """A probe went through, or not. True when that closed it."""
        if self.open_since is None:
            return False
        self._probes = self._probes + 1 if ok else 0
        if self._probes < PROBES_NEEDED or now - self.open_since < self._dwell:
            return False
        self.open_since = None
        self.error = ""
        self.confirmed()
        return True
