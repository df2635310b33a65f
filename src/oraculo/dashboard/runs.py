"""The list of orchestrations: filters in the address, failures first, pages that stand still."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from pydantic import ValidationError

from oraculo.api.access import GuardedRoute, needs
from oraculo.api.orchestrations import ListQuery, page_of
from oraculo.api.problems import ProblemError, invalid
from oraculo.api.serving import Running, store_of
from oraculo.core.access import Scope
from oraculo.core.sentences import Language, language_named
from oraculo.core.tenants import local_name
from oraculo.core.ticket_id import parse_ticket_id
from oraculo.core.vocabulary import Status
from oraculo.dashboard import commands
from oraculo.dashboard.frame import FAILED_STATUSES, STATUSES, data, elsewhere, language_of, milliseconds, render
from oraculo.dashboard.outlines import outlines
from oraculo.dashboard.paths import run_path
from oraculo.errors import UnknownIdError
from oraculo.ports.catalogue import Query, Summary
from oraculo.service import Oraculo

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)

RUNS_PER_PAGE = 50
FAILURES_SHOWN_FIRST = 10  # failures shown before everything else
RECENT_PERIOD = timedelta(hours=24)
MOST_NEW = 1000
FILTERS = ("status", "fonte", "executador", "rotulo", "pausada", "since", "until", "texto")
COUNTED_MAX = 1_000  # of one status; a chip says no more than "999+"
COUNTED_FILTERS = frozenset({"status", "since", "until", "sort"})  # by these alone counting costs little
SORTS: dict[str, Callable[[Summary, datetime], Any]] = {
    "duration": lambda one, now: (one.closed_at or now) - one.created_at,
    "tickets": lambda one, _: one.total,
    "failed": lambda one, _: one.failed,
    "name": lambda one, _: one.correlation_id,
}
VIEWS = {  # name of the text → its filter
    "all": "",
    "open": "status=pendente&status=em_execucao",
    "failed": "status=erro&status=timeout&status=parcial&since=24h",
    "paused": "pausada=true",
}
AGES = {"1h": timedelta(hours=1), "24h": timedelta(hours=24), "7d": timedelta(days=7), "30d": timedelta(days=30)}


def list_query(pairs: list[tuple[str, str]], now: datetime) -> ListQuery:
    """The filter in an address or in a form, read like that of the JSON list; an age stands for an instant."""
    given: dict[str, Any] = {"status": [value for name, value in pairs if name == "status" and value]}
    for name, value in pairs:
        if name in (*FILTERS[1:], "cursor") and value.strip():
            given[name] = value.strip()
    if given.get("since") in AGES:
        given["since"] = (now - AGES[given["since"]]).isoformat()
    for name in ("since", "until"):
        given[name] = _with_zone(name, given.get(name))
    try:
        return ListQuery.model_validate({"limit": RUNS_PER_PAGE, **given})
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise invalid(f"query.{first['loc'][0]}", first["msg"]) from None


def _with_zone(name: str, text: str | None) -> str | None:
    """What `<input type=datetime-local>` gives has no zone: UTC, as the label says."""
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text.replace(" ", "+"))
    except ValueError:
        ages = f"an age ({', '.join(AGES)}) or " if name == "since" else ""
        allowed = f"{ages}ISO 8601, as 2026-01-31T12:00Z"
        raise invalid(f"query.{name}", f"{text[:40]!r} is no instant; allowed: {allowed}") from None
    return at.replace(tzinfo=UTC).isoformat() if at.tzinfo is None else text


def filter_pairs(request: Request) -> list[tuple[str, str]]:
    return [(name, value) for name, value in request.query_params.multi_items() if name in FILTERS and value]


@router.get("/runs")
@needs(Scope.RUN_READ)
async def runs(request: Request, oraculo: Running) -> Response:
    text = request.query_params.get("texto", "").strip()
    found = await _by_id(oraculo, text) if text else None
    if found is not None:
        return elsewhere(request, found)
    problem: ProblemError | None = None
    now = oraculo.now()
    try:
        query = list_query(request.query_params.multi_items(), now)
        wanted = query.wanted(oraculo.queue_names)
        shown, following = await page_of(oraculo, query)
    except ProblemError as error:
        problem, query, wanted, shown, following = error, ListQuery.model_validate({}), Query(), [], None
    pairs = filter_pairs(request)
    first = query.cursor is None
    failures: list[Summary] = []
    if first and not query.status and problem is None:
        since = max(now - RECENT_PERIOD, wanted.since) if wanted.since else now - RECENT_PERIOD
        statuses = [Status(status) for status in FAILED_STATUSES]
        failures = await store_of(oraculo).find(
            replace(wanted, status=statuses, since=since, limit=FAILURES_SHOWN_FIRST + 1)
        )
    sort = request.query_params.get("sort", "")
    if sort in SORTS:
        failures, shown = [], sorted(shown, key=lambda one: SORTS[sort](one, now), reverse=sort != "name")
    kept = [("sort", sort)] if sort in SORTS else []
    pinned = {one.run for one in failures[:FAILURES_SHOWN_FIRST]}
    newest = max([one.run for one in [*failures, *shown]], default=0)
    return render(
        request,
        "runs.html",
        422 if problem else 200,
        problem=problem,
        failures=failures[:FAILURES_SHOWN_FIRST],
        more_failures=len(failures) > FAILURES_SHOWN_FIRST,
        rows=[one for one in shown if one.run not in pinned],
        next=f"/runs?{urlencode([*pairs, *kept, ('cursor', following)])}" if following else None,
        first_page=f"/runs?{urlencode([*pairs, *kept])}" if not first else None,
        newest=newest,
        pairs=pairs,
        filtered=bool(pairs),
        given=dict(pairs),
        chosen=[status for status in query.statuses()] if problem is None else [],
        ages=list(AGES),
        instants={name: _picked(dict(pairs).get(name)) for name in ("since", "until")},
        sort=sort if sort in SORTS else "",
        sort_query=urlencode(pairs),
        counts=await _counts(oraculo, wanted, pairs) if problem is None else {},
        counted=COUNTED_MAX,
        views=VIEWS,
        outlines=await outlines(request, oraculo, [*failures[:FAILURES_SHOWN_FIRST], *shown], _language(request)),
        first=commands.first(request),
        query=urlencode(pairs),
    )


async def _counts(oraculo: Oraculo, wanted: Query, pairs: list[tuple[str, str]]) -> dict[str, int]:
    """Status → how many there are, up to a bound; empty under a filter by which that would cost more than a list."""
    if not {name for name, _ in pairs} <= COUNTED_FILTERS:
        return {}
    asked = [replace(wanted, status=[Status(status)], before_run=None, limit=COUNTED_MAX) for status in STATUSES]
    found = await asyncio.gather(*map(store_of(oraculo).count, asked))
    return dict(zip(STATUSES, found, strict=True))


def _picked(text: str | None) -> str:
    """An instant of the filter as a date picker takes it, in UTC; empty where it is an age, or is none."""
    with suppress(ValueError):
        at = datetime.fromisoformat((text or "").replace(" ", "+"))
        return (at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)).strftime("%Y-%m-%dT%H:%M")
    return ""


def _language(request: Request) -> Language:
    return language_named(language_of(request))


async def _by_id(oraculo: Oraculo, text: str) -> str | None:
    """Where an id of any kind leads: a whole correlation_id, a ticket_id, the number of a dead letter as `dlq:7`."""
    store = store_of(oraculo)
    ticket = parse_ticket_id(text)
    if ticket is not None:
        with suppress(UnknownIdError):
            state = await oraculo.state(ticket[0])
            if ticket[1] < len(state.tickets):
                return f"{run_path(local_name(state.correlation_id))}?ticket={text}"
    if text.startswith("dlq:") and text[4:].isdigit():
        return f"/dead-letters/{text[4:]}"
    return run_path(text) if len(text) <= 128 and await store.summary(text) is not None else None


@router.get("/ui/runs/new")
@needs(Scope.RUN_READ)
async def new_ones(request: Request, oraculo: Running) -> Response:
    """How many came since the page was made. They are told of, and shown when the reader asks."""
    after = request.query_params.get("after", "")
    number = int(after) if after.isascii() and after.isdigit() and len(after) < 20 else 0
    wanted = list_query(filter_pairs(request), oraculo.now()).wanted(oraculo.queue_names)
    count = await store_of(oraculo).count(replace(wanted, after_run=min(number, 2**63 - 1), limit=MOST_NEW))
    return render(
        request, "runs_new.html", count=count, most=MOST_NEW, newest=number, query=urlencode(filter_pairs(request))
    )


@router.get("/ui/runs/live")
@needs(Scope.RUN_READ)
async def live(request: Request, oraculo: Running) -> Response:
    """How the runs of a page stand now: only what changes."""
    asked = request.query_params.getlist("id")[: RUNS_PER_PAGE + FAILURES_SHOWN_FIRST]
    found = await asyncio.gather(*(store_of(oraculo).summary(one) for one in asked))
    return data(
        request,
        [
            {
                "id": one.correlation_id,
                "status": one.status,
                "paused": one.paused_at is not None,
                "open": one.open,
                "total": one.total,
                "failed": one.failed,
                "start": milliseconds(one.created_at),
                "end": milliseconds(one.closed_at),
            }
            for one in found
            if one is not None
        ],
    )
