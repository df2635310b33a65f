"""Trails of workers and of classes of them: what their answers left behind, as far as it has not faded."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from oraculo.api import paths, problems
from oraculo.api.access import GuardedRoute, needs
from oraculo.api.openapi import answer
from oraculo.api.serving import Running, answered
from oraculo.api.worker_documents import TrailList
from oraculo.api.worker_views import trail_view
from oraculo.core.access import Scope
from oraculo.core.tenants import local_name
from oraculo.service import Oraculo

router = APIRouter(
    route_class=GuardedRoute, prefix=f"{paths.API}/trails", tags=["workers"], responses=problems.COMMON_RESPONSES
)

TRAILS_MAX = 1000


@router.get(
    "",
    summary="Trails of workers",
    description="What answers of queues, and of workers that tickets were given to by a choice, left behind: up to "
    "1000, the strongest first.",
    response_class=Response,
    responses={200: answer(TrailList, "The trails as they are now")},
)
@needs(Scope.SYSTEM_READ)
async def find(oraculo: Running) -> Response:
    book = oraculo.trails
    half_life = None if book is None else book.half_life.total_seconds()
    return answered({"ativas": book is not None, "meia_vida_s": half_life, "trilhas": trails_of(oraculo)})


def trails_of(oraculo: Oraculo) -> list[dict[str, Any]]:
    """The trails of this tenant, the strongest first."""
    if oraculo.trails is None:
        return []
    found = sorted(oraculo.trails.of_tenant(oraculo.tenant), key=lambda one: -one[1].strength)
    return [
        {"fila": local_name(key.queue), "worker": key.worker or None, **trail_view(trail)}
        for key, trail in found[:TRAILS_MAX]
    ]
