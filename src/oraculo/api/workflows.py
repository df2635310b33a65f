"""The routes that users of the Orchestrator Dynamic know: thin views of the same orchestrations and tickets."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from oraculo.api import bodies, body, documents, paths, problems
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.openapi import answer
from oraculo.api.plans import desk_of, traceparent_of
from oraculo.api.serving import Running, answered, store_of
from oraculo.core.access import Scope
from oraculo.core.flow import outcome
from oraculo.core.flow.cognitive import TIPO
from oraculo.core.flow.profile import flow_in
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Priority, Status, TicketStatus
from oraculo.errors import UnknownIdError
from oraculo.ports.catalogue import Query as StoreQuery
from oraculo.service import Oraculo
from oraculo.wire import requests
from oraculo.wire.flow.tickets import execution_ticket

router = APIRouter(route_class=GuardedRoute, prefix=paths.API, tags=["fluxo c"], responses=problems.COMMON_RESPONSES)

WORKFLOW_ID_PREFIX, CORRELATION_ID_PREFIX = "orch-", "orch-flow-c-"
STATUS_PLANS_READ = 1000  # finished plans that the figures of /flow-c/status are made of

_ANY_TEXT = {"minLength": 1, "maxLength": 140}
WorkflowId = Annotated[
    str, Path(examples=["orch-plan-001"], description="`orch-<plan_id>`", json_schema_extra=_ANY_TEXT)
]
PlanId = Annotated[str, Path(examples=["plan-001"], json_schema_extra=_ANY_TEXT)]


def _priority(given: int) -> Priority:
    """From 1 to 10, as the original takes it."""
    return (
        Priority.LOW
        if given <= 2
        else Priority.NORMAL
        if given <= 5
        else (Priority.HIGH if given <= 8 else Priority.CRITICAL)
    )


@router.post(
    "/workflows/start",
    summary="Start a workflow of Fluxo C",
    description="As `POST /api/v1/plans`, in the form that the Orchestrator Dynamic takes.",
    response_class=Response,
    responses={200: answer(documents.WorkflowStarted, "Started"), **problems.documented(408, 409, 413, 415, 422)},
    openapi_extra=body.documented(bodies.WorkflowRequest),
)
@needs(Scope.RUN_SUBMIT, submits=True)
async def start(request: Request, oraculo: Running) -> Response:
    desk = desk_of(oraculo)
    value, _ = await body.value(request)
    try:
        asked = bodies.WorkflowRequest.model_validate(value)
    except ValidationError as error:
        raise requests.invalid(error) from None
    taken = await desk.accept(
        asked.cognitive_plan,
        actor=actor_of(request),
        within=timedelta(seconds=asked.sla_deadline_seconds),
        priority=_priority(asked.priority) if "priority" in asked.model_fields_set else None,
        name=asked.correlation_id,
        traceparent=traceparent_of(request),
    )
    status = "started" if taken.answer == "accepted" else taken.answer
    document = {
        "workflow_id": f"{WORKFLOW_ID_PREFIX}{taken.plan_id}",
        "status": status,
        "correlation_id": asked.correlation_id,
    }
    return answered(document, 200, {"Location": paths.orchestration(taken.correlation_id or asked.correlation_id)})


@router.get(
    "/workflows/{workflow_id:segment}",
    summary="Look at a workflow of Fluxo C",
    description="Where a plan stands, and its consolidated result when it has ended; `Retry-After` before that.",
    response_class=Response,
    responses={200: answer(documents.Workflow, "The workflow"), **problems.documented(404)},
)
@needs(Scope.RUN_READ)
async def show(oraculo: Running, workflow_id: WorkflowId) -> Response:
    state = await state_of_workflow(oraculo, workflow_id)
    flow = outcome.flow_of(state)
    document: dict[str, Any] = {
        "workflow_id": flow.workflow_id,
        "status": _workflow_status(state),
        "start_time": state.started_at,
        "close_time": state.closed_at,
        "execution_time": state.started_at,
        "workflow_type": "OrchestrationWorkflow",
        "task_queue": _task_queue(oraculo),
        "correlation_id": state.correlation_id,
        "cached": False,
        "result_summary": outcome.consolidated(state, state.closed_at) if state.closed_at is not None else None,
    }
    closed = sum(one.closed_at is not None for one in state.tickets)
    wait = outcome.look_again_s(closed, len(state.tickets))
    return answered(document, 200, {"Retry-After": str(wait)} if state.closed_at is None else {})


@router.post(
    "/workflows/{workflow_id:segment}/query",
    summary="Ask a workflow of Fluxo C",
    description="`get_status` or `get_tickets`.",
    response_class=Response,
    responses={200: answer(documents.WorkflowAnswer, "The answer"), **problems.documented(404, 408, 413, 415, 422)},
    openapi_extra=body.documented(bodies.WorkflowQuery),
)
@needs(Scope.RUN_READ)
async def ask(request: Request, oraculo: Running, workflow_id: WorkflowId) -> Response:
    value, _ = await body.value(request)
    try:
        asked = bodies.WorkflowQuery.model_validate(value)
    except ValidationError as error:
        raise requests.invalid(error) from None
    state = await state_of_workflow(oraculo, workflow_id)
    oraculo.metrics.asked_workflow(asked.query_name, "success")
    if asked.query_name == "get_tickets":
        result: dict[str, Any] = {"tickets": _tickets(oraculo, state)}
        return answered({"workflow_id": workflow_id, "query_name": "get_tickets", "result": result})
    result = {
        "status": _workflow_status(state),
        "tickets_generated": state.asked,
        "workflow_result": outcome.consolidated(state, oraculo.now()),
        "sla_warnings": [name for name, on in outcome.sla(state, oraculo.now()).items() if on is True],
    }
    return answered({"workflow_id": workflow_id, "query_name": "get_status", "result": result})


class PlanTicketsQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    status: TicketStatus | None = None
    limit: int = Field(100, ge=1, le=500)
    offset: int = Field(0, ge=0, le=1_000_000)


@router.get(
    "/tickets/by-plan/{plan_id:segment}",
    summary="The tickets of a plan",
    description="As ExecutionTicket, in topological order; those that undo others come last.",
    response_class=Response,
    responses={200: answer(documents.PlanTickets, "A page of them"), **problems.documented(404, 422)},
)
@needs(Scope.RUN_READ)
async def by_plan(oraculo: Running, plan_id: PlanId, query: Annotated[PlanTicketsQuery, Query()]) -> Response:
    state = await oraculo.state(await desk_of(oraculo).run_of(plan_id))
    chosen = [one for one in _tickets(oraculo, state) if query.status is None or one["status"] == query.status]
    page = chosen[query.offset : query.offset + query.limit]
    more = query.offset + len(page) < len(chosen)
    return answered({"tickets": page, "total": len(chosen), "has_more": more, "cached": False})


@router.get(
    "/flow-c/status",
    summary="How Fluxo C is doing",
    description=f"Of the {STATUS_PLANS_READ} plans that began last.",
    response_class=Response,
    responses={200: answer(documents.FlowStatus, "The figures")},
)
@needs(Scope.RUN_READ)
async def status(oraculo: Running) -> Response:
    found = await store_of(oraculo).find(StoreQuery(tipo=TIPO, limit=STATUS_PLANS_READ))
    ended = [one for one in found if one.closed_at is not None]
    took = sorted((one.closed_at - one.created_at).total_seconds() * 1000 for one in ended if one.closed_at is not None)
    good = sum(1 for one in ended if one.status is Status.CONCLUIDA)
    return answered(
        {
            "total_processed": len(ended),
            "success_rate": good / len(ended) if ended else None,
            "average_latency_ms": sum(took) / len(took) if took else None,
            "p95_latency_ms": took[min(len(took) - 1, int(len(took) * 0.95))] if took else None,
            "active_executions": len(found) - len(ended),
            "cached": False,
        }
    )


def _task_queue(oraculo: Oraculo) -> str:
    """Where the workflow itself is worked on: Temporal's task queue, where there is one; else where its tickets go."""
    settings = oraculo.settings
    return settings.temporal.task_queue if settings.engine == "temporal" else settings.kafka.topics.tickets


def _workflow_status(state: Orchestration) -> str:
    if state.awaits_approval:
        return "awaiting_approval"
    if state.closed_at is None:
        return "consolidating_results" if state.undoes else "publishing_tickets" if state.open else "running"
    return {
        Status.CONCLUIDA: "completed",
        Status.PARCIAL: "completed",
        Status.CANCELADA: "cancelled",
    }.get(state.status, "failed")


def _tickets(oraculo: Oraculo, state: Orchestration) -> list[dict[str, Any]]:
    now = oraculo.now()
    return [execution_ticket(state, position, now) for position in range(len(state.tickets))]


async def state_of_workflow(oraculo: Oraculo, workflow_id: str) -> Orchestration:
    if workflow_id.startswith(CORRELATION_ID_PREFIX):
        try:
            state = await oraculo.state(workflow_id.removeprefix(CORRELATION_ID_PREFIX))
        except UnknownIdError:
            pass
        else:
            if flow_in(state.plan) is not None:
                return state
    if workflow_id.startswith(WORKFLOW_ID_PREFIX):
        return await oraculo.state(await desk_of(oraculo).run_of(workflow_id.removeprefix(WORKFLOW_ID_PREFIX)))
    raise UnknownIdError("workflow", workflow_id)
