"""Pause an orchestration, let it go on, and change how urgent it is."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from oraculo.api import bodies, body, documents, paths, problems
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.openapi import answer
from oraculo.api.serving import Running, answered
from oraculo.core.access import Scope
from oraculo.service import Oraculo
from oraculo.wire import views

router = APIRouter(
    route_class=GuardedRoute, prefix=paths.ORCHESTRATIONS, tags=["orchestrations"], responses=problems.COMMON_RESPONSES
)

_REFUSED = problems.documented(404, 408, 409, 413, 415, 422)
_ANSWERS = {200: answer(documents.RunPaused, "Where it stands now"), **_REFUSED}


@router.post(
    "/{correlation_id:segment}/pause",
    summary="Pause an orchestration",
    description="No new order goes out; what is with workers may finish. Deadlines (`timeout_s`, `segundos`, retries) "
    "stand still, instants (`ate`) do not move. Durable when the answer arrives; asking again changes nothing. 409 "
    "once it has ended.",
    response_class=Response,
    responses=_ANSWERS,
    openapi_extra=body.documented(bodies.PauseRequest, required=False),
)
@needs(Scope.RUN_CANCEL)
async def pause(request: Request, oraculo: Running, correlation_id: paths.CorrelationId) -> Response:
    asked = await body.optional(request, bodies.PauseRequest)
    changed = await oraculo.pauses.pause(correlation_id, asked.motivo, actor_of(request))
    return await _stands(oraculo, correlation_id, changed)


@router.post(
    "/{correlation_id:segment}/resume",
    summary="Let a paused orchestration go on",
    description="Its deadlines have moved by exactly the pause, and what it owes goes out. Asking again changes "
    "nothing. 409 once it has ended.",
    response_class=Response,
    responses=_ANSWERS,
    openapi_extra=body.documented(bodies.PauseRequest, required=False),
)
@needs(Scope.RUN_CANCEL)
async def resume(request: Request, oraculo: Running, correlation_id: paths.CorrelationId) -> Response:
    asked = await body.optional(request, bodies.PauseRequest)
    changed = await oraculo.pauses.resume(correlation_id, asked.motivo, actor_of(request))
    return await _stands(oraculo, correlation_id, changed)


@router.patch(
    "/{correlation_id:segment}",
    summary="Change how urgent an orchestration is",
    description="All its tickets count as this urgent from now on, whatever the plan says: under "
    "`SCHEDULER_MAX_PARALLEL_TICKETS`, and where workers are chosen. What is with workers stays there. Durable when "
    "the answer arrives; asking for the same again changes nothing. 409 once it has ended.",
    response_class=Response,
    responses={200: answer(documents.RunPrioritised, "How it counts now"), **_REFUSED},
    openapi_extra=body.documented(bodies.PriorityRequest),
)
@needs(Scope.RUN_CANCEL)
async def prioritise(request: Request, oraculo: Running, correlation_id: paths.CorrelationId) -> Response:
    asked = await body.required(request, bodies.PriorityRequest)
    changed = await oraculo.pauses.prioritise(correlation_id, asked.prioridade, asked.motivo, actor_of(request))
    state = await oraculo.state(correlation_id)
    document = {"correlation_id": correlation_id, "status": state.status, "prioridade": state.priority}
    return answered({**document, "mudou": changed})


async def _stands(oraculo: Oraculo, correlation_id: str, changed: bool) -> Response:
    state = await oraculo.state(correlation_id)
    return answered(
        {
            "correlation_id": correlation_id,
            "status": state.status,
            "pausada": state.paused is not None,
            "pausa": views.pause(state),
            "prazo": state.deadline,
            "mudou": changed,
        }
    )
