"""Predicted durations of destinations, by what was seen of them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from oraculo.api import paths, prediction_documents, problems
from oraculo.api.access import GuardedRoute, needs
from oraculo.api.openapi import answer
from oraculo.api.serving import Running, answered
from oraculo.core.access import Scope
from oraculo.core.durations.history import TaskKey
from oraculo.core.vocabulary import Kind
from oraculo.runtime.durations.learning import Durations
from oraculo.service import Oraculo

router = APIRouter(
    route_class=GuardedRoute,
    prefix=f"{paths.API}/predictions",
    tags=["predictions"],
    responses=problems.COMMON_RESPONSES,
)

DESTINATIONS_MAX = 500


@router.get(
    "",
    summary="Predicted durations",
    description="Of up to 500 destinations, those that were seen most often first.",
    response_class=Response,
    responses={200: answer(prediction_documents.PredictionList, "How long tasks take")},
)
@needs(Scope.RUN_READ)
async def find(oraculo: Running) -> Response:
    return answered({"ativas": oraculo.durations is not None, "previsoes": predictions_of(oraculo)})


def predictions_of(oraculo: Oraculo) -> list[dict[str, Any]]:
    """What is predicted for each destination of this tenant."""
    durations = oraculo.durations
    if durations is None:
        return []
    found = sorted(durations.history.of_tenant(oraculo.tenant), key=lambda one: -one[1].seen)
    return [one for name, _ in found[:DESTINATIONS_MAX] if (one := _shown(durations, oraculo.tenant, name)) is not None]


def _shown(durations: Durations, tenant: str, name: str) -> dict[str, Any] | None:
    kind, _, destination = name.partition("/")
    level = TaskKey(tenant, Kind(kind), destination).levels()[1]
    known, estimate = durations.history.keys[level], durations.history.of_level(level)
    if estimate is None:
        return None
    return {
        "tipo": kind,
        "destino": destination,
        "p50_ms": round(estimate.p50_ms),
        "p90_ms": round(estimate.p90_ms),
        "amostras": known.seen,
        "confianca": round(estimate.confidence, 3),
        "cobertura": round(known.calibration.covered, 3),
        "deriva": durations.history.has_drifted(known),
        "atualizada_em": known.sketch.at,
    }
