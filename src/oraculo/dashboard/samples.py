"""Spans of time, and a sample of the runs of one: for points, and for how long runs take. What a sample costs has a
bound, whatever the span holds."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise

from oraculo.api.serving import store_of
from oraculo.core.vocabulary import Status
from oraculo.dashboard.charts import HEIGHT, quantile, rounded_up
from oraculo.dashboard.frame import FAILED_STATUSES
from oraculo.ports.catalogue import Query, Summary
from oraculo.service import Oraculo

SLICES, RUNS_PER_SLICE = 60, 48
SPANS = {  # name → its length, and that of a bar
    "1m": (timedelta(minutes=1), timedelta(seconds=1)),
    "3m": (timedelta(minutes=3), timedelta(seconds=3)),
    "15m": (timedelta(minutes=15), timedelta(seconds=15)),
    "1h": (timedelta(hours=1), timedelta(minutes=1)),
    "6h": (timedelta(hours=6), timedelta(minutes=6)),
    "24h": (timedelta(hours=24), timedelta(minutes=30)),
    "7d": (timedelta(days=7), timedelta(hours=4)),
}
WIDEST_FITTED = "24h"
OFFERED = tuple(SPANS)[2:]  # to choose from; the shortest ones are only fitted to what has just begun


async def fitted(oraculo: Oraculo) -> str:
    """The shortest span that has all that began in the last day in it; a week where a day has nothing."""
    store, now = store_of(oraculo), oraculo.now()
    oldest = now - SPANS[WIDEST_FITTED][0]
    if not await store.find(Query(since=oldest, limit=1)):
        return "7d"
    for name, (length, _) in SPANS.items():
        if name == WIDEST_FITTED or not await store.find(Query(since=oldest, until=now - length, limit=1)):
            return name
    return WIDEST_FITTED


@dataclass(frozen=True, slots=True)
class RunSample:
    """`slices` are the newest runs of each slice, oldest slice first; `failed` more of those that failed."""

    since: datetime
    now: datetime
    slices: list[list[Summary]]
    failed: list[list[Summary]]

    @property
    def more(self) -> bool:
        """True if some slice has more runs than are in it."""
        return any(len(part) > RUNS_PER_SLICE for part in self.slices)

    @property
    def runs(self) -> list[Summary]:
        parts = [*self.failed, *(part[:RUNS_PER_SLICE] for part in self.slices)]
        return list({one.run: one for part in parts for one in part}.values())


async def sample(oraculo: Oraculo, span: str) -> RunSample:
    now = oraculo.now()
    since = now - SPANS[span][0]
    failed = Query(status=list(map(Status, FAILED_STATUSES)), limit=RUNS_PER_SLICE)
    return RunSample(
        since,
        now,
        await _slices(oraculo, since, now, SLICES, Query(limit=RUNS_PER_SLICE + 1)),
        await _slices(oraculo, since, now, SLICES // 6, failed),
    )


async def _slices(oraculo: Oraculo, since: datetime, now: datetime, count: int, wanted: Query) -> list[list[Summary]]:
    store = store_of(oraculo)
    width = (now - since) / count
    edges = [since + n * width for n in range(count + 1)]
    return await asyncio.gather(
        *(store.find(replace(wanted, since=first, until=last)) for first, last in pairwise(edges))
    )


@dataclass(frozen=True, slots=True)
class Latency:
    """How long runs took that have ended, in milliseconds; None where none has. `bars` are (place, y of p95, its
    height, y of p50, its height) of each slice, in the units of an SVG."""

    p50: float | None
    p95: float | None
    top: float
    bars: list[tuple[int, float, float, float, float]]


def latency(found: RunSample) -> Latency:
    took = [
        sorted((one.closed_at - one.created_at).total_seconds() * 1000 for one in part if one.closed_at is not None)
        for part in found.slices
    ]
    every = sorted(value for part in took for value in part)
    if not every:
        return Latency(None, None, 1.0, [])
    points = [(n, quantile(part, 0.5), quantile(part, 0.95)) for n, part in enumerate(took) if part]
    top = rounded_up(max(p95 for _, _, p95 in points))
    bars = []
    for place, p50, p95 in points:
        low, high = max(1.0, HEIGHT * p50 / top), max(1.0, HEIGHT * p95 / top)
        bars.append((place, round(HEIGHT - high, 2), round(high - low, 2), round(HEIGHT - low, 2), round(low, 2)))
    return Latency(quantile(every, 0.5), quantile(every, 0.95), top, bars)
