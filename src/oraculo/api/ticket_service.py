"""The ticket service of the original: the same routes and fields, as views and commands of the same core."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from oraculo.api import body, paging, paths, problems, ticket_documents
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.openapi import answer
from oraculo.api.plans import desk_of, traceparent_of
from oraculo.api.problems import ProblemError, invalid
from oraculo.api.serving import Running, answered
from oraculo.api.workers import judged, settle
from oraculo.core.access import Scope
from oraculo.core.tenants import local_name
from oraculo.core.ticket_id import ticket_id as id_of
from oraculo.core.vocabulary import TicketStatus
from oraculo.errors import WireError
from oraculo.ports.work import Fate
from oraculo.runtime.bound_answers import FORBIDDEN_QUEUE, answer_of
from oraculo.runtime.flow.tickets import TicketDesk, TicketFilter, TicketPlace, open_attempt
from oraculo.service import Oraculo
from oraculo.wire.flow.instants import milliseconds
from oraculo.wire.flow.ticket_requests import CompensationRequest, StatusRequest, TicketRequest, encoded
from oraculo.wire.ticket_tokens import HEADER, UNAUTHENTICATED, TicketClaim

router = APIRouter(
    route_class=GuardedRoute, prefix=f"{paths.API}/tickets", tags=["fluxo c"], responses=problems.COMMON_RESPONSES
)

TOLD_STATUSES = ("RUNNING", "COMPLETED", "FAILED")  # what a worker may say
TicketId = Annotated[
    str,
    Path(json_schema_extra={"minLength": 36, "maxLength": 36}, examples=["06721f3a-0000-8000-8000-000004b1c2d3"]),
]


class TicketsQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    plan_id: Annotated[str, Field(min_length=1, max_length=140)] | None = None
    intent_id: Annotated[str, Field(min_length=1, max_length=140)] | None = None
    status: TicketStatus | None = None
    offset: int = Field(0, ge=0, le=1_000_000)
    limit: int = Field(100, ge=1, le=1000)
    cursor: Annotated[str, Field(max_length=120)] | None = Field(None, description="`next` of the page before")


def _desk(oraculo: Oraculo) -> TicketDesk:
    return TicketDesk(desk_of(oraculo), oraculo.store, oraculo.state, oraculo.now)


@router.get(
    "",
    summary="List tickets of Fluxo C",
    description="As ExecutionTicket, those of the newest plan first. `total` is null while not all plans were looked "
    "at; go on with `next` then.",
    response_class=Response,
    responses={200: answer(ticket_documents.TicketList, "A page of them"), **problems.documented(404, 409, 422)},
)
@needs(Scope.RUN_READ)
async def find(oraculo: Running, query: Annotated[TicketsQuery, Query()]) -> Response:
    wanted = TicketFilter(query.plan_id, query.intent_id, query.status)
    found = await _desk(oraculo).page(wanted, query.offset, query.limit, _place(query.cursor))
    return answered(
        {
            "tickets": found.records,
            "total": found.total,
            "offset": query.offset,
            "limit": query.limit,
            "next": None if found.last is None else _cursor(found.last),
        }
    )


def _cursor(place: TicketPlace) -> str:
    return f"{paging.encode('t', place.run)}.{paging.encode('p', place.position)}"


def _place(cursor: str | None) -> TicketPlace | None:
    if cursor is None:
        return None
    run, _, position = cursor.partition(".")
    found = paging.decode("t", run), paging.decode("p", position)
    return None if found[0] is None or found[1] is None else TicketPlace(found[0], found[1])


@router.post(
    "",
    status_code=201,
    summary="Start a ticket that comes alone",
    description="An ExecutionTicket; what it does not say is filled in. It is a plan of one task: checked, policed and "
    "published like all others. The same `metadata.idempotency_key`, or the same `ticket_id`, again is the same "
    "ticket (200), with another content 409. `metadata.webhook_url` is told how it goes.",
    response_class=Response,
    responses={
        201: answer(ticket_documents.ExecutionTicket, "Started", headers={"Location": "where the ticket is"}),
        200: answer(ticket_documents.ExecutionTicket, "There already"),
        **problems.documented(408, 409, 413, 415, 422),
    },
    openapi_extra=body.documented(TicketRequest),
)
@needs(Scope.RUN_SUBMIT)
async def bring(request: Request, oraculo: Running) -> Response:
    desk = _desk(oraculo)
    record, new = await desk.bring(
        await body.required(request, TicketRequest), actor_of(request), traceparent_of(request)
    )
    return _started(record, new)


@router.post(
    "/compensation",
    status_code=201,
    summary="Compensate a ticket",
    description="Starts a ticket of type COMPENSATE for one that was begun (RUNNING, FAILED or COMPLETED), once: "
    "asking again is answered with the same one. The original shows COMPENSATING and COMPENSATED, and its "
    "`compensation_ticket_id`; its orchestration stays as it ended.",
    response_class=Response,
    responses={
        201: answer(ticket_documents.Compensation, "Started", headers={"Location": "where the ticket is"}),
        200: answer(ticket_documents.Compensation, "There already"),
        **problems.documented(404, 408, 409, 413, 415, 422),
    },
    openapi_extra=body.documented(CompensationRequest),
)
@needs(Scope.RUN_SUBMIT)
async def compensate(request: Request, oraculo: Running) -> Response:
    desk = _desk(oraculo)
    asked = await body.required(request, CompensationRequest)
    record, new = await desk.compensate(asked, actor_of(request))
    document = {
        "ticket_id": record["ticket_id"],
        "original_ticket_id": asked.original_ticket_id,
        "status": record["status"],
        "action": asked.compensation_action,
        "reason": asked.reason,
    }
    return _started(document, new)


@router.patch(
    "/{ticket_id:segment}/status",
    summary="Tell how a ticket stands",
    description="As its worker: COMPLETED and FAILED are the result of the attempt that runs, RUNNING changes nothing. "
    "409 when no attempt is open. With `ORACULO_RESULT_TOKENS` the ticket's token is needed, as `token` or in the "
    f"header `{HEADER}`.",
    response_class=Response,
    responses={
        200: answer(ticket_documents.ExecutionTicket, "How it stands now"),
        **problems.documented(403, 404, 408, 409, 413, 415, 422),
    },
    openapi_extra=body.documented(StatusRequest),
)
@needs(Scope.RESULT_WRITE)
async def tell(request: Request, oraculo: Running, ticket_id: TicketId) -> Response:
    plans, desk, actor = desk_of(oraculo), _desk(oraculo), actor_of(request)
    asked = await body.required(request, StatusRequest)
    if asked.status not in TOLD_STATUSES:
        raise invalid("status", f"{asked.status}: a worker says {', '.join(TOLD_STATUSES)}", "invalid_request")
    state, position = await desk.find(ticket_id)
    open_attempt(state, position)
    if not actor.may_use(state.plan.tasks[position].queue):
        raise ProblemError(
            "forbidden", "this key may not answer for the queue of this ticket", scope=Scope.RESULT_WRITE
        )
    raw = encoded(asked.execution_result(ticket_id))
    given = request.headers.get(HEADER)
    headers = {} if given is None else {HEADER: given}
    [work] = await judged(oraculo, [plans.result_from_message(raw, oraculo.settings.kafka.topics.results, headers)])
    work = await answer_of(actor, work, oraculo.engine.state_of)
    if work.dead is not None:
        if work.dead.reason not in (UNAUTHENTICATED, FORBIDDEN_QUEUE):
            raise WireError(work.dead.reason, work.dead.detail)
        await oraculo.submit_work([work], actor=actor)  # kept and counted, as from any queue
        raise ProblemError(UNAUTHENTICATED, work.dead.detail)
    if work.command is not None:
        outcomes = await oraculo.submit_work([work], actor=actor)
        if outcomes[0].fate is not Fate.APPLIED:
            open_attempt(*await desk.find(ticket_id))
        await settle(oraculo, [work], outcomes)
    return answered(await desk.record(ticket_id))


@router.get(
    "/{ticket_id:segment}/token",
    summary="The token of a ticket",
    description="What an answer to its present attempt has to carry. Workers have it with their order; this is for "
    "administrators of keys, who hand out tickets otherwise. Good until the ticket closes. 409 where tickets have no "
    "tokens, or when the ticket has ended.",
    response_class=Response,
    responses={200: answer(ticket_documents.TicketToken, "The token"), **problems.documented(403, 404, 409)},
)
@needs(Scope.KEY_ADMIN)
async def token(oraculo: Running, ticket_id: TicketId) -> Response:
    state, position = await _desk(oraculo).find(ticket_id)
    ring = oraculo.kernel_ports.tokens
    if ring is None:
        raise ProblemError("tokens_off", "ORACULO_RESULT_TOKENS is off")
    attempt = open_attempt(state, position)
    name = id_of(state.run, position)
    until = state.tickets[position].due_at or state.deadline
    made = ring.issue(TicketClaim(name, attempt, local_name(state.correlation_id)))
    left = None if until is None else max(0, round((until - oraculo.now()).total_seconds()))
    return answered(
        {
            "access_token": made,
            "token_type": "Bearer",
            "expires_in": left,
            "expires_at": None if until is None else milliseconds(until),
            "ticket_id": name,
            "scopes": ["ticket:update"],
        }
    )


def _started(document: dict[str, object], new: bool) -> Response:
    headers = {"Location": f"{paths.API}/tickets/{document['ticket_id']}"}
    return answered(document, 201 if new else 200, headers if new else {**headers, "Idempotent-Replayed": "true"})
