"""One ticket by its id."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from oraculo.api import paths, problems, run_documents
from oraculo.api.access import GuardedRoute, needs
from oraculo.api.languages import ReaderLanguage
from oraculo.api.openapi import answer
from oraculo.api.serving import Running, answered
from oraculo.core.access import Scope
from oraculo.core.state import Orchestration
from oraculo.core.ticket_id import parse_ticket_id
from oraculo.errors import UnknownIdError
from oraculo.service import Oraculo
from oraculo.wire import views

router = APIRouter(
    route_class=GuardedRoute, prefix=f"{paths.API}/tickets", tags=["tickets"], responses=problems.COMMON_RESPONSES
)

TicketId = Annotated[
    str,
    Path(json_schema_extra={"minLength": 36, "maxLength": 36}, examples=["06721f3a-0000-8000-8000-000004b1c2d3"]),
]


@router.get(
    "/{ticket_id:segment}",
    summary="Look at a ticket",
    description="One piece of work: where it went, how often it was tried, how it ended.",
    response_class=Response,
    responses={200: answer(run_documents.Ticket, "The ticket"), **problems.documented(404, 422)},
)
@needs(Scope.RUN_READ)
async def show(oraculo: Running, ticket_id: TicketId, language: ReaderLanguage) -> Response:
    state, position = await state_and_position(oraculo, ticket_id)
    return answered(views.ticket(state, position, language))


async def state_and_position(oraculo: Oraculo, ticket_id: str) -> tuple[Orchestration, int]:
    """The run that a ticket is of, and its place in it; UnknownIdError when there is no such ticket."""
    found = parse_ticket_id(ticket_id)
    if found is None:
        raise UnknownIdError("ticket", ticket_id)
    try:
        state = await oraculo.state(found[0])
    except UnknownIdError:
        raise UnknownIdError("ticket", ticket_id) from None
    if found[1] >= len(state.tickets):
        raise UnknownIdError("ticket", ticket_id)
    return state, found[1]
