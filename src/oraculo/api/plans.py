"""Fluxo C over HTTP: submit a plan or a decision about one."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from oraculo.api import body, documents, paths, problems
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.openapi import answer
from oraculo.api.orchestrations import links
from oraculo.api.problems import ProblemError
from oraculo.api.serving import Running, answered
from oraculo.core.access import Scope
from oraculo.core.tenants import DEFAULT_TENANT
from oraculo.runtime.flow.plans import Answer, PlanIntake, Taken
from oraculo.service import Oraculo
from oraculo.wire import trace_context

router = APIRouter(route_class=GuardedRoute, tags=["fluxo c"], responses=problems.COMMON_RESPONSES)

_EXAMPLE = {
    "plan_id": "plan-001",
    "intent_id": "intent-001",
    "version": "1.0.0",
    "tasks": [
        {"task_id": "build", "task_type": "BUILD", "description": "build the image"},
        {"task_id": "deploy", "task_type": "DEPLOY", "description": "roll it out", "dependencies": ["build"]},
    ],
    "execution_order": ["build", "deploy"],
    "risk_band": "medium",
}


def desk_of(oraculo: Oraculo) -> PlanIntake:
    if oraculo.tenant != DEFAULT_TENANT:
        raise ProblemError("flow_c_off", f"plans of Fluxo C belong to the tenant {DEFAULT_TENANT}")
    if oraculo.plans is None:
        raise ProblemError("flow_c_off", "set ORACULO_FLOW_C=on, or start with `oraculo up --flow-c`")
    return oraculo.plans


def traceparent_of(request: Request) -> str | None:
    given: str | None = request.scope.get(trace_context.HEADER)
    return given or trace_context.parse(request.headers.get(trace_context.HEADER))


@router.post(
    f"{paths.API}/plans",
    status_code=202,
    summary="Bring a plan of Fluxo C",
    description="A CognitivePlan, or a ConsolidatedDecision that carries one. Durable when the answer arrives. A plan "
    "runs once: the same `plan_id` again answers the same orchestration, with another content 409. A decision to "
    "reject is answered with `rejected` and recorded; one that wants a human waits for `…/approve` or `…/reject`.",
    response_class=Response,
    responses={
        202: answer(documents.PlanTaken, "Taken", headers={"Location": "where the orchestration is"}),
        **problems.documented(408, 409, 413, 415, 422),
    },
    openapi_extra=body.documented("CognitivePlan", examples={"two tasks": _EXAMPLE}),
)
@needs(Scope.RUN_SUBMIT, submits=True)
async def bring(request: Request, oraculo: Running) -> Response:
    desk = desk_of(oraculo)
    value, _ = await body.value(request)
    taken = await desk.accept(value, actor=actor_of(request), traceparent=traceparent_of(request))
    request.state.correlation_id = taken.correlation_id or None
    return answered(shown(taken), 202, _headers(taken))


def shown(taken: Taken) -> dict[str, object]:
    document: dict[str, object] = {"status": taken.answer, "plan_id": taken.plan_id}
    if taken.answer is Answer.REJECTED:
        return {**document, "motivo": taken.reason}
    name = taken.correlation_id
    here = links(name)
    if taken.answer is Answer.AWAITING_APPROVAL:
        here |= {word: f"{paths.orchestration(name)}/{word}" for word in ("approve", "reject")}
    return {**document, "correlation_id": name, "workflow_id": f"orch-{taken.plan_id}", "links": here}


def _headers(taken: Taken) -> dict[str, str]:
    if not taken.correlation_id:
        return {}
    replayed = {} if taken.new else {"Idempotent-Replayed": "true"}
    return {"Location": paths.orchestration(taken.correlation_id), **replayed}
