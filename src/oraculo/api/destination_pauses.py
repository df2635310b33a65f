"""Pause a destination, or all of them: no order goes out there, whichever process would send it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from oraculo.api import bodies, body, destination_documents, paths, problems
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.openapi import answer
from oraculo.api.problems import ProblemError, invalid
from oraculo.api.serving import Running, answered
from oraculo.core.access import Scope
from oraculo.core.tenants import queue_in, tenant_of
from oraculo.ports.destination_pauses import EVERYTHING, DestinationPause
from oraculo.service import Oraculo
from oraculo.wire import names

router = APIRouter(route_class=GuardedRoute, prefix=paths.API, tags=["operation"], responses=problems.COMMON_RESPONSES)

Queue = Annotated[
    str, Path(json_schema_extra={"pattern": names.QUEUE_PATTERN, "maxLength": 200}, examples=["escavador_youtube"])
]
_ANSWERS = {
    200: answer(destination_documents.DestinationPaused, "How it stands now"),
    **problems.documented(408, 413, 415, 422),
}
_OPTIONS: dict[str, Any] = {
    "response_class": Response,
    "responses": _ANSWERS,
    "openapi_extra": body.documented(bodies.PauseRequest, required=False),
}


@router.post(
    "/queues/{queue:segment}/pause",
    summary="Pause a destination",
    description="No order goes to this queue until it is resumed, and none that waits there is handed to workers over "
    "HTTP. What a broker has taken already is with its workers. Durable when the answer arrives.",
    **_OPTIONS,
)
@needs(Scope.QUEUE_PAUSE)
async def pause_queue(request: Request, oraculo: Running, queue: Queue) -> Response:
    return await _pause(request, oraculo, checked(oraculo, queue))


@router.post(
    "/queues/{queue:segment}/resume",
    summary="Let orders go to a destination again",
    description="What waited goes out in its turn. Nothing happens where the destination is not paused.",
    **_OPTIONS,
)
@needs(Scope.QUEUE_PAUSE)
async def resume_queue(request: Request, oraculo: Running, queue: Queue) -> Response:
    return await _resume(request, oraculo, checked(oraculo, queue))


@router.post(
    "/pause",
    summary="Pause every destination",
    description="No order goes out until all is resumed; requests are accepted, answers count.",
    **_OPTIONS,
)
@needs(Scope.INSTALLATION_PAUSE)
async def pause_all(request: Request, oraculo: Running) -> Response:
    return await _pause(request, oraculo, EVERYTHING)


@router.post(
    "/resume",
    summary="End the pause of everything",
    description="Destinations and orchestrations that are paused by themselves stay paused.",
    **_OPTIONS,
)
@needs(Scope.INSTALLATION_PAUSE)
async def resume_all(request: Request, oraculo: Running) -> Response:
    return await _resume(request, oraculo, EVERYTHING)


@router.get(
    "/pauses",
    summary="List paused destinations",
    description="Each with who paused it, since when and why; `fila` is null where everything is paused.",
    response_class=Response,
    responses={200: answer(destination_documents.PausedDestinations, "What is paused, by whom, since when and why")},
)
@needs(Scope.SYSTEM_READ)
async def pauses(oraculo: Running) -> Response:
    return answered({"pausas": listed(oraculo)})


def listed(oraculo: Oraculo) -> list[dict[str, Any]]:
    """What of the caller's tenant is paused; that everything is, is told to `default`."""
    found = oraculo.pauses.destinations.pauses
    return [shown(one) for one in found if tenant_of(one.target) == oraculo.tenant]


def shown(one: DestinationPause) -> dict[str, Any]:
    """A pause as the outside sees it; `fila` is null where everything is paused."""
    return {
        "fila": None if one.target == EVERYTHING else one.target,
        "ator": one.actor,
        "desde": one.since,
        "motivo": one.reason,
    }


def checked(oraculo: Oraculo, queue: str, where: str = "path.queue") -> str:
    """The queue that the caller's tenant means by this name."""
    if not names.is_queue_name(queue):
        raise invalid(where, f"{queue[:40]!r} does not match {names.QUEUE_PATTERN}")
    meant = queue_in(oraculo.tenant, queue)
    if meant is None:
        raise ProblemError("forbidden", f"{queue} belongs to another tenant", scope=Scope.QUEUE_PAUSE)
    return meant


async def _pause(request: Request, oraculo: Oraculo, target: str) -> Response:
    asked = await body.optional(request, bodies.PauseRequest)
    return _stands(oraculo, target, await oraculo.pauses.destinations.pause(target, asked.motivo, actor_of(request)))


async def _resume(request: Request, oraculo: Oraculo, target: str) -> Response:
    asked = await body.optional(request, bodies.PauseRequest)
    return _stands(oraculo, target, await oraculo.pauses.destinations.resume(target, asked.motivo, actor_of(request)))


def _stands(oraculo: Oraculo, target: str, changed: bool) -> Response:
    found = next((shown(one) for one in oraculo.pauses.destinations.pauses if one.target == target), None)
    queue = None if target == EVERYTHING else target
    return answered({"fila": queue, "pausada": found is not None, "pausa": found, "mudou": changed})
