"""What the server answers about tickets of Fluxo C, as the client hands it on."""

from __future__ import annotations

from typing import Any, TypedDict


class ExecutionTickets(TypedDict):
    """A page of tickets as ExecutionTicket; `total` is null while not all plans were looked at."""

    tickets: list[dict[str, Any]]
    total: int | None
    offset: int
    limit: int
    next: str | None


class CompensationAnswer(TypedDict):
    """What compensates a ticket."""

    ticket_id: str
    original_ticket_id: str
    status: str
    action: str
    reason: str


class TicketTokenAnswer(TypedDict):
    """The token of a ticket, and until when its attempt lasts (epoch milliseconds)."""

    access_token: str
    token_type: str
    expires_in: int | None
    expires_at: int | None
    ticket_id: str
    scopes: list[str]
