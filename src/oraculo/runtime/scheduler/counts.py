"""What the scheduler did in this process, for metrics."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from oraculo.core.allocations import Allocation, NotChosen

WAIT_BOUNDS_S = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
WORKERS_BOUNDS = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)


@dataclass(slots=True)
class Tally:
    """Observations in buckets, not cumulative."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


@dataclass(slots=True)
class SchedulerCounts:
    """`given` by method; `refused` by reason; `not_given` are allocations that came too late for their ticket;
    `shared`: how often a worker had, and had not, tickets of the same plan or intent as the one it was given."""

    given: Counter[str] = field(default_factory=Counter)
    refused: Counter[NotChosen] = field(default_factory=Counter)
    not_given: int = 0
    discovery_failures: Counter[str] = field(default_factory=Counter)
    shared: Counter[tuple[str, bool]] = field(default_factory=Counter)
    waited: Tally = field(default_factory=lambda: Tally(WAIT_BOUNDS_S))
    workers: Tally = field(default_factory=lambda: Tally(WORKERS_BOUNDS))

    def take(self, allocation: Allocation, waited_s: float, shared: Iterable[tuple[str, bool]] = ()) -> None:
        """Count a ticket that was given."""
        self.shared.update(shared)
        self.given[allocation.method.value] += 1
        self.refused.update(allocation.refused)
        self.waited.observe(waited_s)
        self.workers.observe(allocation.evaluated)
