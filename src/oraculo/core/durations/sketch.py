"""A distribution of durations in a few numbers: a histogram with logarithmic bins that forgets what is old.

A bin is 4 % wide, so a quantile is wrong by 2 % at most, whatever the scale. A sample weighs half as much after 500
later ones, or after seven days. Adding costs the same however many came before; two processes that add the same samples
in the same order have the same sketch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import accumulate
from math import exp, log

BINS_PER_E = 25  # bins between a duration and e times that duration
HALF_LIFE_SAMPLES = 500.0
HALF_LIFE = timedelta(days=7)
LEAST_MS, MOST_MS = 1.0, 1e11
_MAX_SCALE = 1e9  # of the weight of the newest sample, before all weights are made small again
_NEGLIGIBLE_SHARE = 1e-5  # a bin that holds less is left out when a sketch is stored


def bin_of(ms: float) -> int:
    return int(log(min(max(ms, LEAST_MS), MOST_MS)) * BINS_PER_E)


@dataclass(slots=True)
class Sketch:
    """`scale` is the weight of the newest sample; `at` its instant."""

    bins: dict[int, float] = field(default_factory=dict)
    total: float = 0.0
    scale: float = 1.0
    at: datetime | None = None

    def add(self, ms: float, at: datetime, half_life: float = HALF_LIFE_SAMPLES) -> None:
        passed = 0.0 if self.at is None or at <= self.at else (at - self.at) / HALF_LIFE
        self.scale *= 2.0 ** (1.0 / half_life + min(passed, 60.0))
        if self.at is None or at > self.at:
            self.at = at
        number = bin_of(ms)
        self.bins[number] = self.bins.get(number, 0.0) + self.scale
        self.total += self.scale
        if self.scale > _MAX_SCALE:
            self._rescale()

    def _rescale(self) -> None:
        least = self.total * _NEGLIGIBLE_SHARE
        self.bins = {number: weight / self.scale for number, weight in self.bins.items() if weight > least}
        self.total, self.scale = sum(self.bins.values()), 1.0

    @property
    def count(self) -> float:
        """How many samples of today its weights are worth."""
        return self.total / self.scale

    def as_json(self) -> dict[str, object]:
        self._rescale()
        weights = {str(number): float(f"{weight:.5g}") for number, weight in sorted(self.bins.items())}
        return {"bins": weights, "at": None if self.at is None else self.at.isoformat()}

    @classmethod
    def of_json(cls, found: Mapping[str, object]) -> Sketch:
        bins, at = found["bins"], found["at"]
        assert isinstance(bins, Mapping)
        weights = {int(number): float(weight) for number, weight in bins.items()}
        return cls(weights, sum(weights.values()), 1.0, None if at is None else datetime.fromisoformat(str(at)))


@dataclass(frozen=True, slots=True)
class DurationQuantiles:
    """Durations as quantiles: `edges[i]` is the end of a bin (ln ms), `shares[i]` the share up to there. `stretch` is
    added to the logarithm of the p90, and less to what is nearer to the median."""

    edges: tuple[float, ...]
    shares: tuple[float, ...]
    stretch: float = 0.0

    def quantile(self, share: float) -> float:
        """Milliseconds within which this share of tasks ends."""
        index = min(bisect_left(self.shares, share), len(self.shares) - 1)
        before = self.shares[index - 1] if index else 0.0
        within = (share - before) / max(self.shares[index] - before, 1e-12)
        found = self.edges[index] - (1.0 - min(max(within, 0.0), 1.0)) / BINS_PER_E
        if share > 0.5:
            found += self.stretch * (share - 0.5) / 0.4
        return exp(found)

    def share_within(self, ms: float) -> float:
        """The share of tasks that end within this time; the inverse of `quantile`."""
        low, high = 0.0, 1.0
        if ms <= self.quantile(0.0):
            return 0.0
        for _ in range(20):
            middle = (low + high) / 2
            low, high = (middle, high) if self.quantile(middle) < ms else (low, middle)
        return low

    def remaining(self, elapsed_ms: float, share: float) -> float:
        """The same for a task that runs already: how much longer, given that it has not ended yet."""
        if elapsed_ms <= 0:
            return self.quantile(share)
        gone = self.share_within(elapsed_ms)
        left = self.quantile(gone + (1.0 - gone) * share) - elapsed_ms
        return max(left, OVERDUE_SHARE * elapsed_ms * share)


OVERDUE_SHARE = 0.2  # of the time it has taken: how much longer a task takes that is beyond all that was seen


def mixture(parts: Iterable[tuple[float, Mapping[int, float]]], stretch: float = 0.0) -> DurationQuantiles | None:
    """The distribution that is drawn from each of these with its weight; None when there is nothing in them."""
    merged: dict[int, float] = {}
    whole = 0.0
    for weight, bins in parts:
        total = sum(bins.values())
        if weight <= 0 or total <= 0:
            continue
        whole += weight
        factor = weight / total
        for number, one in bins.items():
            merged[number] = merged.get(number, 0.0) + one * factor
    if not merged:
        return None
    order = sorted(merged)
    shares = tuple(accumulate(merged[number] / whole for number in order))
    return DurationQuantiles(tuple((number + 1) / BINS_PER_E for number in order), shares, stretch)
