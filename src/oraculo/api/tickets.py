"""One ticket by its id."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from oraculo.api import documents, paths, problems
from oraculo.api.openapi import answer
from oraculo.api.serving import Running, answered
from oraculo.core.ticket_id import parse_ticket_id
from oraculo.errors import UnknownIdError
from oraculo.wire import views

router = APIRouter(prefix=f"{paths.API}/tickets", tags=["tickets"], responses=problems.COMMON)

TicketId = Annotated[
    str,
    Path(json_schema_extra={"minLength": 36, "maxLength": 36}, examples=["06721f3a-0000-8000-8000-000004b1c2d3"]),
]


@router.get(
    "/{ticket_id:segment}",
    summary="Look at a ticket",
    description="One piece of work: where it went, how often it was tried, how it ended.",
    response_class=Response,
    responses={200: answer(documents.Ticket, "The ticket"), **problems.documented(404, 422)},
)
async def show(oraculo: Running, ticket_id: TicketId) -> Response:
    found = parse_ticket_id(ticket_id)
    state = None if found is None else await oraculo.engine.handler.state(found[0])
    if found is None or state is None or found[1] >= len(state.tickets):
        raise UnknownIdError("ticket", ticket_id)
    return answered(views.ticket(state, found[1]))
