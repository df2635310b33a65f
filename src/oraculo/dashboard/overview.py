"""The first page: how everything is going."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from fastapi import APIRouter, Request, Response

from oraculo.api.access import GuardedRoute, needs
from oraculo.api.health import state_of_health
from oraculo.api.serving import Running, store_of
from oraculo.core.access import Scope
from oraculo.core.tenants import DEFAULT_TENANT
from oraculo.core.vocabulary import RUN_STATUSES, Status
from oraculo.dashboard import commands
from oraculo.dashboard.frame import FAILED_STATUSES, STATUSES, data, milliseconds, render
from oraculo.ports.catalogue import Query, Summary
from oraculo.ports.statistics import Bucket
from oraculo.service import Oraculo

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)

WINDOWS = {
    "1h": (timedelta(hours=1), timedelta(minutes=1)),
    "24h": (timedelta(hours=24), timedelta(minutes=30)),
    "7d": (timedelta(days=7), timedelta(hours=4)),
}
DEFAULT_WINDOW = "24h"
ACTIVITY_SLICES, RUNS_PER_SLICE = 60, 48
DEADLINES_SHOWN = 6
OPEN_STATUSES = tuple(status for status in RUN_STATUSES if not status.final)
ONE_MINUTE = timedelta(minutes=1)
AT_RISK_SHARE, AT_RISK = 0.2, timedelta(seconds=30)  # of the time it was given, or less than this, is left


def window_of(request: Request) -> str:
    asked = request.query_params.get("window", DEFAULT_WINDOW)
    return asked if asked in WINDOWS else DEFAULT_WINDOW


@router.get("/")
@needs(Scope.RUN_READ)
async def overview(request: Request, oraculo: Running) -> Response:
    window = window_of(request)
    anything = await store_of(oraculo).find(Query(limit=1))
    values = await figures(oraculo, window)
    return render(request, "overview.html", empty=not anything, first=commands.first(request), **values)


@router.get("/ui/overview/figures")
@needs(Scope.RUN_READ)
async def figures_again(request: Request, oraculo: Running) -> Response:
    return render(request, "overview_figures.html", **await figures(oraculo, window_of(request)))


@router.get("/ui/overview/points")
@needs(Scope.RUN_READ)
async def points(request: Request, oraculo: Running) -> Response:
    """Start × duration of the runs of the window, in columns: all of them, or so many from each slice of time, and of
    those that failed as many again."""
    now = oraculo.now()
    since = now - WINDOWS[window_of(request)][0]
    slices = await _slices(oraculo, since, now, ACTIVITY_SLICES, Query(limit=RUNS_PER_SLICE + 1))
    failed = await _slices(
        oraculo,
        since,
        now,
        ACTIVITY_SLICES // 6,
        Query(status=list(map(Status, FAILED_STATUSES)), limit=RUNS_PER_SLICE),
    )
    parts = [*failed, *(part[:RUNS_PER_SLICE] for part in slices)]
    shown = list({one.run: one for part in parts for one in part}.values())
    document = {
        "since": milliseconds(since),
        "now": milliseconds(now),
        "more": any(len(part) > RUNS_PER_SLICE for part in slices),
        "start": [milliseconds(one.created_at) for one in shown],
        "took": [_took(one, now) for one in shown],
        "status": [STATUSES.index(one.status) for one in shown],
        "ids": [one.correlation_id for one in shown],
    }
    return data(request, document)


async def _slices(oraculo: Oraculo, since: datetime, now: datetime, count: int, wanted: Query) -> list[list[Summary]]:
    store = store_of(oraculo)
    width = (now - since) / count
    edges = [since + n * width for n in range(count + 1)]
    return await asyncio.gather(
        *(store.find(replace(wanted, since=first, until=last)) for first, last in pairwise(edges))
    )


def _took(one: Summary, now: datetime) -> int:
    return max(0, round(((one.closed_at or now) - one.created_at).total_seconds() * 1000))


async def figures(oraculo: Oraculo, window: str) -> dict[str, Any]:
    store = store_of(oraculo)
    now = oraculo.now()
    length, step = WINDOWS[window]
    since = now - length
    buckets, failing, nearest = await asyncio.gather(
        store.activity(since, step), store.failures(since), store.nearest_deadlines(DEADLINES_SHOWN)
    )
    dead, open_runs, minute, health, actions = await asyncio.gather(
        store.dead_letter_groups(),
        store.count(Query(status=OPEN_STATUSES, limit=100_000)),
        store.count(Query(since=now - ONE_MINUTE, limit=100_000)),
        state_of_health(oraculo),
        store.system_events(5),
    )
    totals: Counter[str] = Counter()
    for bucket in buckets:
        totals[bucket.status] += bucket.count
    ended = sum(count for status, count in totals.items() if Status(status).final)
    engine = oraculo.status()
    return {
        "window": window,
        "windows": list(WINDOWS),
        "totals": totals,
        "started": totals.total(),
        "ended": ended,
        "went_through": round(100 * totals["concluida"] / ended, 1) if ended else None,
        "failed": sum(totals[status] for status in FAILED_STATUSES),
        "in_flight": open_runs,
        "owed": engine.effects.waiting if oraculo.tenant == DEFAULT_TENANT else 0,
        "per_minute": minute,
        "bars": bars(buckets, since, now, step),
        "failing": failing[:8],
        "most_failing": failing[0].tickets if failing else 0,
        "nearest": [(one, *_risk(one, now)) for one in nearest],
        "dead": dead,
        "dead_total": sum(count for _, _, count in dead),
        "health": health,
        "actions": actions,
    }


def _risk(one: Summary, now: datetime) -> tuple[float, bool]:
    """Milliseconds left, and whether that is little."""
    assert one.deadline is not None
    left = one.deadline - now
    little = left < AT_RISK or left < AT_RISK_SHARE * (one.deadline - one.created_at)
    return max(0.0, left.total_seconds() * 1000), little


def bars(buckets: list[Bucket], since: datetime, now: datetime, step: timedelta) -> dict[str, Any]:
    """A bar a slice of time, made of parts by status, in the units of its SVG."""
    width = step.total_seconds()
    first = since.timestamp() // width * width
    slots = int((now.timestamp() - first) // width) + 1
    parts: list[Counter[str]] = [Counter() for _ in range(slots)]
    for bucket in buckets:
        place = int((bucket.at.timestamp() - first) // width)
        if 0 <= place < slots:
            parts[place][bucket.status] += bucket.count
    most = max([1, *(part.total() for part in parts)])
    drawn = []
    for place, part in enumerate(parts):
        y = 100.0
        for status in ("concluida", "em_execucao", "pendente", "cancelada", "parcial", "timeout", "erro"):
            if part[status]:
                height = max(100.0 * part[status] / most, 1.0)
                y -= height
                drawn.append((place, round(y, 2), round(height, 2), status))
    at = [milliseconds(since), milliseconds(now)]
    return {"slots": slots, "parts": drawn, "most": most, "at": at, "counts": [part.total() for part in parts]}
