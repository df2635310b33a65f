"""Whether what was predicted came true, and the correction that makes it so.

Adaptive conformal inference: the p90 is moved by a quantile of how far the last answers were from it, and which one
that is follows from how often they were beyond. So nine of ten tasks end within what was said, also while durations
drift, and however wrong the distribution behind it is.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil, log

MISS_SHARE = 0.1  # of tasks that may take longer than the p90
RESIDUALS_KEPT = 100
RESIDUALS_NEEDED = 20  # before they correct anything
ADAPTATION = 0.01  # how much one miss moves the quantile
LEAST_MISS, MOST_MISS = 0.005, 0.4
RECENT_SHARE = 1 / 100  # weight of the newest answer in what is said of recent ones
DRIFT_NEEDED = 50  # answers before drift is spoken of
DRIFT_COVERAGE = 0.8  # the least share within the p90 that is no drift
DRIFT_RATIO = 1.5  # of actual to predicted median, or its inverse


@dataclass(slots=True)
class Calibration:
    """`miss` is the level whose residual is the correction, `covered` the recent share within the p90, `bias` the
    recent mean of ln(actual / p50)."""

    recent: deque[float] = field(default_factory=lambda: deque(maxlen=RESIDUALS_KEPT))
    ordered: list[float] = field(default_factory=list)
    miss: float = MISS_SHARE
    covered: float = 1 - MISS_SHARE
    bias: float = 0.0
    judged: int = 0

    @property
    def ready(self) -> bool:
        return len(self.ordered) >= RESIDUALS_NEEDED

    @property
    def correction(self) -> float:
        """What is added to the logarithm of the p90."""
        if not self.ready:
            return 0.0
        rank = ceil((len(self.ordered) + 1) * (1 - self.miss))
        return self.ordered[min(rank, len(self.ordered)) - 1]

    def judge(self, actual_ms: float, p50: float, raw_p90: float, p90: float) -> bool:
        """Take note of what came; return whether it was within what was said. `raw_p90` is before the correction."""
        residual = log(max(actual_ms, 1.0)) - log(max(raw_p90, 1.0))
        within = actual_ms <= p90
        self.miss = min(max(self.miss + ADAPTATION * (MISS_SHARE - (not within)), LEAST_MISS), MOST_MISS)
        if len(self.recent) == RESIDUALS_KEPT:
            del self.ordered[bisect_left(self.ordered, self.recent[0])]
        self.recent.append(residual)
        insort(self.ordered, residual)
        self.covered += RECENT_SHARE * (within - self.covered)
        self.bias += 2 * RECENT_SHARE * (log(max(actual_ms, 1.0) / max(p50, 1.0)) - self.bias)
        self.judged += 1
        return within

    @property
    def drifted(self) -> bool:
        """True when what comes is not what was learnt: durations have changed lately."""
        if self.judged < DRIFT_NEEDED:
            return False
        return abs(self.bias) > log(DRIFT_RATIO) or self.covered < DRIFT_COVERAGE

    def without_baseline(self) -> Calibration:
        """The same with the corrections of the p90, and without what drift is measured against."""
        return Calibration(self.recent, self.ordered, self.miss)

    def as_json(self) -> list[object]:
        residuals = [float(f"{one:.4g}") for one in self.recent]
        return [residuals, round(self.miss, 5), round(self.covered, 5), round(self.bias, 5), self.judged]

    @classmethod
    def of_json(cls, found: Iterable[object]) -> Calibration:
        residuals, miss, covered, bias, judged = found
        assert isinstance(residuals, list)
        recent = deque((float(one) for one in residuals), maxlen=RESIDUALS_KEPT)
        level, within, beside = (float(str(one)) for one in (miss, covered, bias))
        return cls(recent, sorted(recent), level, within, beside, int(str(judged)))
