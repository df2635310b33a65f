"""Service levels and what looks ahead: objectives, alerts, predicted durations, when a run should end."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from oraculo.api import paths
from oraculo.api.access import GuardedRoute, needs
from oraculo.api.forecasts import forecast_of
from oraculo.api.predictions import predictions_of
from oraculo.api.serving import Running
from oraculo.api.slos import shown, told
from oraculo.core.access import Scope
from oraculo.core.sentences import language_named
from oraculo.dashboard.frame import language_of, render

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)

ALERTS_SHOWN = 50


@router.get("/sla")
@needs(Scope.RUN_READ)
async def sla(request: Request, oraculo: Running) -> Response:
    book = oraculo.objectives
    return render(
        request,
        "sla.html",
        measured=book.measured,
        slos=[shown(oraculo, one) for one in await book.all()],
        alerts=[_row(told(one)) for one in await book.alerts(ALERTS_SHOWN)],
        predicts=oraculo.durations is not None,
        predictions=predictions_of(oraculo),
    )


def _row(alert: dict[str, Any]) -> dict[str, Any]:
    """An alert with the run, the ticket or the objective that it is about."""
    record = {**alert["registro"], **alert["registro"].get("context", {})}
    return {
        **alert,
        "run": record.get("correlation_id"),
        "ticket": record.get("ticket_id"),
        "about": record.get("slo_id"),
    }


@router.get("/ui/runs/{correlation_id:segment}/forecast")
@needs(Scope.RUN_READ)
async def forecast(request: Request, oraculo: Running, correlation_id: paths.CorrelationId) -> Response:
    """When it should end; nothing when it has ended, or nothing is predicted."""
    await oraculo.state(correlation_id)  # an unknown one is answered as everywhere, also where nothing is predicted
    found = await forecast_of(oraculo, correlation_id, language_named(language_of(request)))
    return render(request, "run_forecast.html", forecast=found)
