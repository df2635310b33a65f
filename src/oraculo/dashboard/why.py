"""Why a run or a ticket is as it is: a part of the run's page, and of a ticket's panel."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from oraculo.api import paths
from oraculo.api.access import GuardedRoute, needs
from oraculo.api.serving import Running
from oraculo.api.tickets import state_and_position
from oraculo.api.why import why_of
from oraculo.core.access import Scope
from oraculo.core.sentences import language_named
from oraculo.dashboard.frame import language_of, render
from oraculo.dashboard.paths import run_path
from oraculo.errors import UnknownIdError

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)

DECISIONS_SHOWN = 200


@router.get("/ui/runs/{correlation_id:segment}/why")
@needs(Scope.RUN_READ)
async def why(request: Request, oraculo: Running, correlation_id: paths.CorrelationId) -> Response:
    """The decisions of a run, or those about the ticket that the address names; a page of them."""
    asked = request.query_params
    ticket, after = asked.get("ticket", ""), asked.get("after", "0")
    number = int(after) if after.isascii() and after.isdigit() and len(after) < 16 else 0
    run, only = await oraculo.run_of(correlation_id), None
    if ticket:
        state, only = await state_and_position(oraculo, ticket)
        if state.run != run:
            raise UnknownIdError("ticket", ticket)
    language = language_named(language_of(request))
    found = await why_of(oraculo, run, language, only=only, after=number, limit=DECISIONS_SHOWN)
    here = f"/ui{run_path(correlation_id)}/why?ticket={ticket if only is not None else ''}"
    return render(request, "run_why.html", why=found, first=not number, of_ticket=only is not None, address=here)
