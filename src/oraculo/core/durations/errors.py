"""How far predictions were off: counts by whether a task ended within its p90, and a histogram of errors of its p50."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

ERROR_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0)  # |actual - p50| / actual


def _none() -> list[int]:
    return [0] * (len(ERROR_BUCKETS) + 1)


@dataclass(slots=True)
class PredictionErrors:
    """`counts` belong to the buckets, the last one to what is beyond them."""

    within: int = 0
    beyond: int = 0
    counts: list[int] = field(default_factory=_none)
    total: float = 0.0

    @property
    def judged(self) -> int:
        return self.within + self.beyond

    def add(self, ms: float, p50_ms: float, p90_ms: float) -> None:
        """Take note of how long a task took for which these were predicted."""
        if ms <= p90_ms:
            self.within += 1
        else:
            self.beyond += 1
        error = abs(ms - p50_ms) / max(ms, 1.0)
        self.counts[bisect_left(ERROR_BUCKETS, error)] += 1
        self.total += error

    def plus(self, other: PredictionErrors) -> PredictionErrors:
        """Both together."""
        counts = [one + more for one, more in zip(self.counts, other.counts, strict=True)]
        return PredictionErrors(
            self.within + other.within, self.beyond + other.beyond, counts, self.total + other.total
        )

    def as_json(self) -> list[object]:
        return [self.within, self.beyond, self.counts, self.total]

    @classmethod
    def of_json(cls, found: Sequence[object]) -> PredictionErrors:
        if not found:
            return cls()
        within, beyond, counts, total = found
        assert isinstance(counts, list)
        return cls(int(str(within)), int(str(beyond)), [int(one) for one in counts], float(str(total)))
