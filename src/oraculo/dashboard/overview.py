"""The first page: how everything is going."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from fastapi import APIRouter, Request, Response

from oraculo.api.access import GuardedRoute, needs
from oraculo.api.health import state_of_health
from oraculo.api.serving import Running, store_of
from oraculo.api.worker_views import who_works
from oraculo.core.access import Scope
from oraculo.core.tenants import DEFAULT_TENANT, tenant_of
from oraculo.core.vocabulary import RUN_STATUSES, Status
from oraculo.dashboard import commands
from oraculo.dashboard.attention import concerns, decisions
from oraculo.dashboard.charts import area, rounded_up
from oraculo.dashboard.frame import FAILED_STATUSES, STATUSES, data, milliseconds, render
from oraculo.dashboard.kept import kept_of
from oraculo.dashboard.samples import OFFERED, SPANS, RunSample, fitted, latency, sample
from oraculo.ports.catalogue import Query, Summary
from oraculo.ports.statistics import Bucket
from oraculo.runtime.queue_history import HISTORY_MAX_LOOKS, LOOK_INTERVAL_S
from oraculo.service import Oraculo

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)

DEADLINES_SHOWN = 6
OPEN_STATUSES = tuple(status for status in RUN_STATUSES if not status.final)
ONE_MINUTE, ONE_HOUR = timedelta(minutes=1), timedelta(hours=1)
COUNTED_MAX = 100_000
AT_RISK_SHARE, AT_RISK = 0.2, timedelta(seconds=30)  # of the time it was given, or less than this, is left


async def _span(request: Request, oraculo: Oraculo) -> tuple[str, bool]:
    """The span of time that the address asks for, else the one that fits; and whether it was fitted."""
    asked = request.query_params.get("window", "")
    if asked in SPANS:
        return asked, False
    return await kept_of(request).get(("span", oraculo.tenant), lambda: fitted(oraculo)), True


async def _sample(request: Request, oraculo: Oraculo, span: str) -> RunSample:
    return await kept_of(request).get(("sample", oraculo.tenant, span), lambda: sample(oraculo, span))


@router.get("/")
@needs(Scope.RUN_READ)
async def overview(request: Request, oraculo: Running) -> Response:
    anything = await store_of(oraculo).find(Query(limit=1))
    values = await figures(request, oraculo)
    return render(request, "overview.html", empty=not anything, first=commands.first(request), **values)


@router.get("/ui/overview/figures")
@needs(Scope.RUN_READ)
async def figures_again(request: Request, oraculo: Running) -> Response:
    return render(request, "overview_figures.html", **await figures(request, oraculo))


@router.get("/ui/overview/points")
@needs(Scope.RUN_READ)
async def points(request: Request, oraculo: Running) -> Response:
    """Start × duration of the runs of the span, in columns: all of them, or so many from each slice of time, and of
    those that failed as many again."""
    span, _ = await _span(request, oraculo)
    found = await _sample(request, oraculo, span)
    shown = found.runs
    document = {
        "since": milliseconds(found.since),
        "now": milliseconds(found.now),
        "more": found.more,
        "start": [milliseconds(one.created_at) for one in shown],
        "took": [_took(one, found.now) for one in shown],
        "status": [STATUSES.index(one.status) for one in shown],
        "ids": [one.correlation_id for one in shown],
    }
    return data(request, document)


def _took(one: Summary, now: datetime) -> int:
    return max(0, round(((one.closed_at or now) - one.created_at).total_seconds() * 1000))


async def figures(request: Request, oraculo: Oraculo) -> dict[str, Any]:
    """All that the page shows but the points. Pages of one tenant that ask together share one answer."""
    span, is_fitted = await _span(request, oraculo)
    work = kept_of(request).get(("figures", oraculo.tenant, span), lambda: _figures(oraculo, span))
    values, found = await asyncio.gather(work, _sample(request, oraculo, span))
    decide = kept_of(request).get(("decisions", oraculo.tenant), lambda: decisions(oraculo))
    return {**values, "fitted": is_fitted, "latency": latency(found), "decisions": await decide}


async def _figures(oraculo: Oraculo, span: str) -> dict[str, Any]:
    store, now = store_of(oraculo), oraculo.now()
    length, step = SPANS[span]
    since, midnight = now - length, now.replace(hour=0, minute=0, second=0, microsecond=0)
    buckets, today, failing, nearest, dead = await asyncio.gather(
        store.activity(since, step),
        store.activity(midnight, ONE_HOUR),
        store.failures(since),
        store.nearest_deadlines(DEADLINES_SHOWN),
        store.dead_letter_groups(),
    )
    open_runs, minute, health, actions, working = await asyncio.gather(
        store.count(Query(status=OPEN_STATUSES, limit=COUNTED_MAX)),
        store.count(Query(since=now - ONE_MINUTE, limit=COUNTED_MAX)),
        state_of_health(oraculo),
        store.system_events(5),
        who_works(oraculo),
    )
    totals, ended_today = _by_status(buckets), _by_status(today)
    ended = _ended(totals)
    risks = [(one, *_risk(one, now)) for one in nearest]
    dead_total = sum(count for _, _, count in dead)
    at_risk = sum(little for _, _, little in risks)
    engine = oraculo.status()
    return {
        "window": span,
        "windows": OFFERED,
        "totals": totals,
        "started": totals.total(),
        "ended": ended,
        "today": _ended(ended_today),
        "went_through": round(100 * totals["concluida"] / ended, 1) if ended else None,
        "failed": sum(totals[status] for status in FAILED_STATUSES),
        "in_flight": open_runs,
        "owed": engine.effects.waiting if oraculo.tenant == DEFAULT_TENANT else 0,
        "per_minute": minute,
        "waiting": sum(one["aguardando"] or 0 for one in working["filas"]),
        "waiting_queues": sum(bool(one["aguardando"]) for one in working["filas"]),
        "backlog": backlog(oraculo, working["filas"]),
        "bars": bars(buckets, since, now, step),
        "failing": failing[:8],
        "most_failing": failing[0].tickets if failing else 0,
        "nearest": risks,
        "dead": dead,
        "dead_total": dead_total,
        "health": health,
        "actions": actions,
        "concerns": concerns(oraculo, health, working["filas"], working["workers"], dead_total, at_risk),
    }


def _by_status(buckets: list[Bucket]) -> Counter[str]:
    totals: Counter[str] = Counter()
    for bucket in buckets:
        totals[bucket.status] += bucket.count
    return totals


def _ended(totals: Counter[str]) -> int:
    return sum(count for status, count in totals.items() if Status(status).final)


def backlog(oraculo: Oraculo, present: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """What waited in all queues of the tenant together, and what was with workers, over the last hour and now."""
    history = oraculo.metrics.readings.history
    waiting: Counter[int] = Counter()
    taken: Counter[int] = Counter()
    for queue in history.queues:
        if tenant_of(queue) == oraculo.tenant:
            for look in history.of(queue):
                waiting[look.number] += look.waiting
                taken[look.number] += look.taken
    first = max(1, history.looks - HISTORY_MAX_LOOKS + 1)
    numbers = range(first, history.looks + 2)
    waiting[history.looks + 1] = sum(one["aguardando"] or 0 for one in present)
    taken[history.looks + 1] = sum(one["em_andamento"] or 0 for one in present)
    top = rounded_up(max([1, *waiting.values(), *taken.values()]))
    return {
        "width": max(1, len(numbers) - 1),
        "top": top,
        "most": max(waiting.values(), default=0),
        "minutes": max(1, round(len(numbers) * LOOK_INTERVAL_S / 60)),
        "waiting": area([waiting[number] for number in numbers], top),
        "taken": area([taken[number] for number in numbers], top),
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
