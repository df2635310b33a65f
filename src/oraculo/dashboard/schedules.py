"""Schedules: when each starts its next runs, and the buttons to pause, resume and start one now."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.problems import ProblemError
from oraculo.api.schedules import UPCOMING_DEFAULT, shown
from oraculo.api.serving import Running
from oraculo.core.access import Scope
from oraculo.dashboard.forms import Form
from oraculo.dashboard.frame import elsewhere, render
from oraculo.dashboard.paths import run_path

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)

SCHEDULES_PER_PAGE = 50
ACTIONS = ("pause", "resume", "trigger")


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
    else:
        raise ProblemError("not_found", f"allowed: {', '.join(ACTIONS)}")
    return elsewhere(request, "/schedules")
