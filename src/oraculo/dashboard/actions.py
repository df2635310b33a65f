"""Cancel and retry, one or many. Nothing is done before a page has said to how many, and been told to go on."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import urlencode

import structlog
from fastapi import APIRouter, Request, Response

from oraculo.api.problems import ProblemError
from oraculo.api.serving import Running, store_of
from oraculo.bootstrap import Oraculo
from oraculo.core.vocabulary import Status
from oraculo.dashboard.forms import Fields, Form
from oraculo.dashboard.frame import elsewhere, render
from oraculo.dashboard.paths import run_path
from oraculo.dashboard.runs import FILTERS, list_query
from oraculo.errors import DuplicateCorrelationError, PlanError
from oraculo.ports.store import Query, SystemEvent
from oraculo.wire import requests

log = structlog.get_logger("oraculo.dashboard")
router = APIRouter(include_in_schema=False)

MOST = {"cancel": 2000, "retry": 200}
OPEN = (Status.PENDENTE, Status.EM_EXECUCAO)
_AGAIN = re.compile(r"~(\d{1,6})$")
LONGEST_ID = 128


@dataclass(slots=True)
class Chosen:
    ids: list[str]
    by_filter: bool
    more: bool  # there are more than are done at once


async def _chosen(oraculo: Oraculo, what: str, fields: Fields) -> Chosen:
    """Those that were ticked, or all that the filter names; of either, those that can be cancelled or retried."""
    store = store_of(oraculo)
    most = MOST[what]
    if fields.get("all") == "1":
        wanted = list_query(fields.but("cursor"), oraculo.now()).wanted()
        fitting = [status for status in wanted.status or list(Status) if _fits(what, status)]
        found = await store.find(replace(wanted, status=fitting, limit=most + 1)) if fitting else []
        return Chosen([one.correlation_id for one in found[:most]], True, len(found) > most)
    ids = []
    for name in dict.fromkeys(fields.all("id")):
        one = await store.summary(name)
        if one is not None and _fits(what, one.status):
            ids.append(name)
    return Chosen(ids[:most], False, len(ids) > most)


def _fits(what: str, status: Status) -> bool:
    return (status in OPEN) == (what == "cancel")


@router.post("/ui/runs/{what}")
async def act(request: Request, oraculo: Running, what: str, fields: Form) -> Response:
    if what not in MOST:
        raise ProblemError("not_found", "allowed: cancel, retry")
    chosen = await _chosen(oraculo, what, fields)
    filters = [pair for pair in fields.but() if pair[0] in FILTERS and pair[1]]
    back = fields.get("back") or f"/runs?{urlencode(filters)}"
    if fields.get("confirm") != "1":
        return render(
            request, "confirm_runs.html", what=what, chosen=chosen, most=MOST[what], filters=filters, back=back
        )
    if what == "cancel":
        done = await _cancel(oraculo, chosen.ids, fields.get("motivo")[:1000])
        return elsewhere(request, back, "cancelled", n=done)
    made, refused = await _retry(oraculo, chosen.ids)
    if len(made) == 1 and not refused:
        return elsewhere(request, run_path(made[0]), "retried", n=1, refused=0)
    return elsewhere(request, back, "retried", n=len(made), refused=refused)


async def _cancel(oraculo: Oraculo, ids: list[str], reason: str) -> int:
    done = 0
    for name in ids:
        done += await oraculo.cancel(name, reason)
    log.info("cancelled from the dashboard", count=done, reason=reason)
    return done


async def _retry(oraculo: Oraculo, ids: list[str]) -> tuple[list[str], int]:
    """The same request again, as a new orchestration whose id says of which it is the next try: `abc~1`, `abc~2`."""
    made: list[str] = []
    refused = 0
    for name in ids:
        state = await oraculo.state(name)
        try:
            request = {**requests.request_of(state.plan), "correlation_id": await _next_id(oraculo, name)}
            accepted = await oraculo.submit({key: value for key, value in request.items() if value is not None})
        except (PlanError, DuplicateCorrelationError):
            refused += 1
            continue
        made.append(accepted.correlation_id)
        body = {"de": name, "para": accepted.correlation_id}
        await store_of(oraculo).record_system_event(SystemEvent("orchestration_retried", oraculo.now(), body))
    return made, refused


async def _next_id(oraculo: Oraculo, name: str) -> str | None:
    root = _AGAIN.sub("", name)
    tries = await store_of(oraculo).find(Query(text=f"{root}~", limit=500))
    numbers = [int(found[1]) for one in tries if (found := _AGAIN.search(one.correlation_id))]
    following = f"{root}~{max(numbers, default=0) + 1}"
    return following if len(following) <= LONGEST_ID else None
