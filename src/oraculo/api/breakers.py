"""Breakers of destinations: which are open, and a probe at once."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from oraculo.api import destination_documents, paths, problems
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.destination_pauses import Queue, checked
from oraculo.api.openapi import answer
from oraculo.api.serving import Running, answered
from oraculo.core.access import Scope
from oraculo.core.breaking import DestinationBreaker
from oraculo.core.tenants import tenant_of
from oraculo.service import Oraculo

router = APIRouter(route_class=GuardedRoute, prefix=paths.API, tags=["operation"], responses=problems.COMMON_RESPONSES)


@router.get(
    "/breakers",
    summary="List open breakers",
    description="Destinations that failed so often in a row that their orders wait; each with its last error and when "
    "the next probe goes out. Empty while ORACULO_BREAKER_FAILURES is 0.",
    response_class=Response,
    responses={200: answer(destination_documents.OpenBreakers, "The breakers that are open")},
)
@needs(Scope.SYSTEM_READ)
async def breakers(oraculo: Running) -> Response:
    return answered({"disjuntores": open_breakers(oraculo)})


@router.post(
    "/queues/{queue:segment}/probe",
    summary="Probe a destination now",
    description="The next probe of an open breaker goes out now instead of later. Nothing happens where it is closed, "
    "or where a probe is out already.",
    response_class=Response,
    responses={200: answer(destination_documents.BreakerProbed, "How it stands now"), **problems.documented(422)},
)
@needs(Scope.QUEUE_PAUSE)
async def probe(request: Request, oraculo: Running, queue: Queue) -> Response:
    meant, book = checked(oraculo, queue), oraculo.breakers
    changed = book is not None and await book.probe_now(meant, actor_of(request))
    found = next((one for one in open_breakers(oraculo) if one["fila"] == meant), None)
    return answered({"fila": meant, "aberto": found is not None, "disjuntor": found, "mudou": changed})


def open_breakers(oraculo: Oraculo) -> list[dict[str, Any]]:
    """The open breakers of the caller's tenant."""
    found = () if oraculo.breakers is None else oraculo.breakers.open
    return [shown(one) for one in found if tenant_of(one.queue) == oraculo.tenant]


def shown(one: DestinationBreaker) -> dict[str, Any]:
    """An open breaker as the outside sees it."""
    return {
        "fila": one.queue,
        "desde": one.opened_at,
        "falhas": one.failures,
        "erro": one.error,
        "sondando": one.probe is not None,
        "sondas": one.probes,
        "proxima_sonda": None if one.probe is not None else one.probe_at,
    }
