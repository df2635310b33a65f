"""Tickets of Fluxo C, as the ticket service of the original has them over gRPC."""

from __future__ import annotations

from typing import Any

from oraculo.api.problems import invalid
from oraculo.api.ticket_deeds import tell_status, ticket_desk, token_of
from oraculo.api.ticket_service import TicketsQuery
from oraculo.apps.grpc_api.calls import Caller, Deed, asked
from oraculo.apps.grpc_api.messages import message
from oraculo.core.access import Scope
from oraculo.runtime.flow.tickets import Record, TicketFilter
from oraculo.wire.flow.ticket_requests import StatusRequest
from oraculo.wire.ticket_tokens import HEADER

SERVICE = "ticket_service.TicketService"
PACKAGE = "ticket_service"
LISTED_TICKETS = 100  # unless the caller says how many


async def get_ticket(caller: Caller, request: Any) -> Any:
    """Show one ticket."""
    record = await ticket_desk(caller.oraculo).record(request.ticket_id)
    return message(f"{PACKAGE}.GetTicketResponse")(ticket=_proto(record))


async def list_tickets(caller: Caller, request: Any) -> Any:
    """List tickets, those of the newest plan first. `total` is at least so many where not all plans were looked at."""
    query: TicketsQuery = asked(
        TicketsQuery,
        plan_id=request.plan_id or None,
        status=request.status.upper() or None,
        offset=request.offset,
        limit=request.limit or LISTED_TICKETS,
    )
    wanted = TicketFilter(query.plan_id, None, query.status)
    page = await ticket_desk(caller.oraculo).page(wanted, query.offset, query.limit)
    total = page.total if page.total is not None else query.offset + len(page.records) + 1
    return message(f"{PACKAGE}.ListTicketsResponse")(tickets=[_proto(one) for one in page.records], total=total)


async def update_status(caller: Caller, request: Any) -> Any:
    """Take what a worker says of its ticket. Its token, where one is needed, comes as metadata."""
    said: StatusRequest = asked(StatusRequest, status=request.status, error_message=request.error_message or None)
    token = caller.metadata.get(HEADER)
    record = await tell_status(caller.oraculo, caller.actor, request.ticket_id, said, token)
    return message(f"{PACKAGE}.UpdateTicketStatusResponse")(ticket=_proto(record))


async def generate_token(caller: Caller, request: Any) -> Any:
    """Give the token that an answer to the present attempt has to carry."""
    if not request.ticket_id:
        raise invalid("ticket_id", "it is missing", "invalid_request")
    made = await token_of(caller.oraculo, request.ticket_id)
    return message(f"{PACKAGE}.GenerateTokenResponse")(
        access_token=made["access_token"], expires_at=made["expires_at"] or 0
    )


def _proto(record: Record) -> Any:
    proto = message(f"{PACKAGE}.ExecutionTicketProto")
    found = {field.name: record[field.name] for field in proto.DESCRIPTOR.fields}
    return proto(**{name: value for name, value in found.items() if value is not None})


DEEDS = {
    "GetTicket": Deed(Scope.RUN_READ, get_ticket),
    "ListTickets": Deed(Scope.RUN_READ, list_tickets),
    "UpdateTicketStatus": Deed(Scope.RESULT_WRITE, update_status),
    "GenerateToken": Deed(Scope.KEY_ADMIN, generate_token),
}
