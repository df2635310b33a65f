"""The ticket service of the original: the same routes and fields, as views and commands of the same core."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from oraculo.api import body, paging, paths, problems, ticket_documents
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.openapi import answer
from oraculo.api.plans import traceparent_of
from oraculo.api.serving import Running, answered
from oraculo.api.ticket_deeds import tell_status, ticket_desk, token_of
from oraculo.core.access import Scope
from oraculo.core.vocabulary import TicketStatus
from oraculo.runtime.flow.tickets import TicketFilter, TicketPlace
from oraculo.wire.flow.ticket_requests import CompensationRequest, StatusRequest, TicketRequest
from oraculo.wire.ticket_tokens import HEADER

router = APIRouter(
    route_class=GuardedRoute, prefix=f"{paths.API}/tickets", tags=["fluxo c"], responses=problems.COMMON_RESPONSES
)

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
    found = await ticket_desk(oraculo).page(wanted, query.offset, query.limit, _place(query.cursor))
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
    desk = ticket_desk(oraculo)
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
    desk = ticket_desk(oraculo)
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
    asked = await body.required(request, StatusRequest)
    return answered(await tell_status(oraculo, actor_of(request), ticket_id, asked, request.headers.get(HEADER)))


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
    return answered(await token_of(oraculo, ticket_id))


def _started(document: dict[str, object], new: bool) -> Response:
    headers = {"Location": f"{paths.API}/tickets/{document['ticket_id']}"}
    return answered(document, 201 if new else 200, headers if new else {**headers, "Idempotent-Replayed": "true"})
