"""What people and other systems say to an orchestration that waits: signals, approvals, refusals."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from oraculo.api import bodies, body, documents, paths, problems
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.openapi import answer
from oraculo.api.orchestrations import IDEMPOTENCY_PARAMETER, idempotency_key
from oraculo.api.serving import Running, answered
from oraculo.core.access import PrincipalKind, Scope
from oraculo.service import Oraculo
from oraculo.wire import strict_json

router = APIRouter(
    route_class=GuardedRoute, prefix=paths.ORCHESTRATIONS, tags=["orchestrations"], responses=problems.COMMON_RESPONSES
)

_DECIDED = {
    200: answer(documents.Decided, "Where it stands now"),
    **problems.documented(403, 404, 408, 409, 413, 415, 422),
}
_WHICH = (
    "Where several tasks wait for a decision, `tarefa` says which (409 names them). A plan of Fluxo C that does not "
    "wait is not changed: `aplicada` is false."
)


@router.post(
    "/{correlation_id:segment}/signals/{nome:segment}",
    status_code=202,
    summary="Send a signal to an orchestration",
    description="Durable when the answer arrives. It is taken by the wait of this name that waits longest, which "
    "`tarefa` names, and kept for the next one when none waits (`tarefa` is null); at most 100 are kept.",
    response_class=Response,
    responses={
        202: answer(
            documents.SignalAccepted,
            "Accepted",
            headers={"Idempotent-Replayed": "`true` when the same signal came before with the same key"},
        ),
        **problems.documented(404, 408, 409, 413, 415, 422, 429),
    },
    openapi_extra={**body.documented(bodies.SignalRequest, required=False), "parameters": [IDEMPOTENCY_PARAMETER]},
)
@needs(Scope.RUN_SIGNAL)
async def signal(
    request: Request,
    oraculo: Running,
    correlation_id: paths.CorrelationId,
    nome: Annotated[str, Path(description="the name of the signal", examples=["revisao"])],
) -> Response:
    key = idempotency_key(request)
    asked = await body.optional(request, bodies.SignalRequest)
    dados = strict_json.compact(asked.dados)
    taken = await oraculo.signal(correlation_id, nome, dados, key=key, actor=actor_of(request))
    return answered({"tarefa": taken.task}, 202, {} if taken.new else {"Idempotent-Replayed": "true"})


@router.post(
    "/{correlation_id:segment}/approve",
    summary="Approve a plan or a task that waits for a human",
    description=f"What is behind it goes on from now on. {_WHICH}",
    response_class=Response,
    responses=_DECIDED,
    openapi_extra=body.documented(bodies.ApprovalRequest, required=False),
)
@needs(Scope.PLAN_APPROVE)
async def approve(request: Request, oraculo: Running, correlation_id: paths.CorrelationId) -> Response:
    return await _decide(request, oraculo, correlation_id, True)


@router.post(
    "/{correlation_id:segment}/reject",
    summary="Refuse a plan or a task that waits for a human",
    description="A task ends `cancelada`, and what is behind it does not run; a plan of Fluxo C ends so, and nothing "
    f"is published. {_WHICH}",
    response_class=Response,
    responses=_DECIDED,
    openapi_extra=body.documented(bodies.ApprovalRequest, required=False),
)
@needs(Scope.PLAN_APPROVE)
async def reject(request: Request, oraculo: Running, correlation_id: paths.CorrelationId) -> Response:
    return await _decide(request, oraculo, correlation_id, False)


async def _decide(request: Request, oraculo: Oraculo, correlation_id: str, approved: bool) -> Response:
    asked = await body.optional(request, bodies.ApprovalRequest)
    by = who_decides(request, asked.por)
    applied = await oraculo.decide(
        correlation_id, approved, by=by, reason=asked.motivo, task=asked.tarefa, actor=actor_of(request)
    )
    state = await oraculo.state(correlation_id)
    document = {"correlation_id": correlation_id, "status": state.status, "aplicada": applied}
    return answered({**document, "decidido_por": by if applied else state.approved_by})


def who_decides(request: Request, claimed: str) -> str:
    """The name that a caller gives, which is only said, and the credential that it came with, which was checked."""
    actor = actor_of(request)
    if actor.kind is PrincipalKind.LOCAL:
        return claimed
    return f"{claimed} ({actor.id})" if claimed else actor.id
