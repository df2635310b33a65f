"""The call plans of the ticket service of Fluxo C; see calls.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oraculo.client.calls import API, CallPlan, HttpAnswer, HttpCall, JsonObject, path_segment
from oraculo.client.ticket_results import CompensationAnswer, ExecutionTickets, TicketTokenAnswer


def tickets(query: Mapping[str, Any]) -> CallPlan[ExecutionTickets]:
    """List tickets as records; what is None in the query is not asked for."""
    asked = {name: value for name, value in query.items() if value is not None}
    got: HttpAnswer = yield HttpCall("GET", f"{API}/tickets", query=asked)
    found: ExecutionTickets = got.body
    return found


def submit_ticket(ticket: Mapping[str, Any]) -> CallPlan[JsonObject]:
    """Start a ticket that comes alone."""
    got: HttpAnswer = yield HttpCall("POST", f"{API}/tickets", body=dict(ticket))
    record: JsonObject = got.body
    return record


def tell_ticket(
    ticket_id: str, status: str, error: str | None, duration_ms: int | None, result: Any, token: str | None
) -> CallPlan[JsonObject]:
    """Tell how a ticket stands."""
    said = {
        "status": status,
        "error_message": error,
        "actual_duration_ms": duration_ms,
        "result": result,
        "token": token,
    }
    body = {name: value for name, value in said.items() if value is not None}
    got: HttpAnswer = yield HttpCall("PATCH", f"{API}/tickets/{path_segment(ticket_id)}/status", body=body)
    record: JsonObject = got.body
    return record


def compensate_ticket(
    ticket_id: str, reason: str, action: str, parameters: Mapping[str, Any] | None
) -> CallPlan[CompensationAnswer]:
    """Compensate a ticket."""
    body = {
        "original_ticket_id": ticket_id,
        "reason": reason,
        "compensation_action": action,
        "parameters": dict(parameters or {}),
    }
    got: HttpAnswer = yield HttpCall("POST", f"{API}/tickets/compensation", body=body)
    answer: CompensationAnswer = got.body
    return answer


def ticket_token(ticket_id: str) -> CallPlan[TicketTokenAnswer]:
    """Ask for the token of a ticket."""
    got: HttpAnswer = yield HttpCall("GET", f"{API}/tickets/{path_segment(ticket_id)}/token")
    answer: TicketTokenAnswer = got.body
    return answer
