"""A histogram for the hot path: an observation is one search and two additions, without a lock.

It is written and read in the event loop only, so it needs none; the client's own costs ten times as much.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString


class Distribution:
    """The observations with one set of label values."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """A value below 0 (a clock was set back) counts as 0."""
        if value < 0.0:
            value = 0.0
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def observe_all(self, values: list[float]) -> None:
        """The same for many."""
        bounds, counts = self.bounds, self.counts
        for value in values:
            counts[bisect_left(bounds, value)] += 1
        self.total += sum(values) if min(values) >= 0.0 else sum(max(value, 0.0) for value in values)


class Histogram:
    def __init__(self, name: str, text: str, bounds: tuple[float, ...], labels: tuple[str, ...] = ()) -> None:
        self._name = name
        self._text = text
        self._bounds = bounds
        self._labelnames = labels
        self._children: dict[tuple[str, ...], Distribution] = {}
        self._les = [*(floatToGoString(bound) for bound in bounds), "+Inf"]  # type: ignore[no-untyped-call]
        if not labels:
            self.labels()

    def labels(self, *values: str) -> Distribution:
        found = self._children.get(values)
        if found is None:
            found = self._children[values] = Distribution(self._bounds)
        return found

    def observe(self, value: float) -> None:
        """For one without labels."""
        self._children[()].observe(value)

    def collect(self) -> Iterable[Metric]:
        family = HistogramMetricFamily(self._name, self._text, labels=self._labelnames)
        for values, one in self._children.items():
            cumulative, buckets = 0, []
            for le, count in zip(self._les, one.counts, strict=True):
                cumulative += count
                buckets.append((le, float(cumulative)))
            family.add_metric(values, buckets, one.total)
        yield family
