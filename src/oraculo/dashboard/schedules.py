"""Schedules: when each starts its next runs, and what an operator does to one: pause, resume, start it
now, start what was missed."""

from __future__ import annotations

from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from pydantic import ValidationError

from oraculo.api import bodies
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.problems import ProblemError
from oraculo.api.schedules import UPCOMING_DEFAULT, shown
from oraculo.api.serving import Running
from oraculo.core.access import Scope
from oraculo.dashboard.forms import Form
from oraculo.dashboard.frame import elsewhere, render
from oraculo.dashboard.paths import run_path
from oraculo.runtime.requests import Accepted
from oraculo.runtime.schedules.starting import LABEL
from oraculo.service import Oraculo
from oraculo.wire.requests import invalid

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)

SCHEDULES_PER_PAGE = 50
ACTIONS = ("pause", "resume", "trigger", "backfill")


@router.get("/schedules")
@needs(Scope.RUN_READ)
async def schedules(request: Request, oraculo: Running) -> Response:
    book = oraculo.schedules
    found = await book.page(request.query_params.get("after", ""), SCHEDULES_PER_PAGE + 1)
    rows = [shown(one, book.upcoming(one, UPCOMING_DEFAULT)) for one in found[:SCHEDULES_PER_PAGE]]
    following = rows[-1]["nome"] if len(found) > SCHEDULES_PER_PAGE else None
    return render(request, "schedules.html", rows=rows, following=following)


@router.post("/ui/schedules/{what}")
@needs(Scope.SCHEDULE_WRITE)
async def act(request: Request, oraculo: Running, what: str, fields: Form) -> Response:
    name, actor = fields.get("nome"), actor_of(request)
    if what == "pause":
        await oraculo.schedules.pause(name, fields.get("motivo")[:1000], actor)
    elif what == "resume":
        await oraculo.schedules.resume(name, "", actor)
    elif what == "trigger":
        started = await oraculo.schedules.trigger(name, "", actor)
        return elsewhere(request, run_path(started.correlation_id))
    elif what == "backfill":
        return await _backfill(request, oraculo, fields)
    else:
        raise ProblemError("not_found", f"allowed: {', '.join(ACTIONS)}")
    return elsewhere(request, "/schedules")


async def _backfill(request: Request, oraculo: Oraculo, fields: Form) -> Response:
    """Start the runs of a time that has passed; those that exist are left as they are."""
    name = fields.get("nome")
    try:
        asked = bodies.BackfillRequest.model_validate({"de": fields.get("de"), "ate": fields.get("ate")})
    except ValidationError as error:
        raise invalid(error, model=bodies.BackfillRequest) from None
    items = await oraculo.schedules.backfill(name, asked.de, asked.ate, actor_of(request))
    new = sum(1 for one in items if isinstance(one.answer, Accepted) and one.answer.new)
    return elsewhere(
        request, f"/runs?{urlencode({'rotulo': LABEL + name})}", "backfilled", n=new, kept=len(items) - new
    )
