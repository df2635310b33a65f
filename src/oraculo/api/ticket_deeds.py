"""What is done to tickets of Fluxo C, whatever protocol asks for it."""

from __future__ import annotations

from typing import Any

from oraculo.api.plans import desk_of
from oraculo.api.problems import ProblemError, invalid
from oraculo.api.workers import judged, settle
from oraculo.core.access import Actor, Scope
from oraculo.core.tenants import local_name
from oraculo.core.ticket_id import ticket_id as id_of
from oraculo.errors import WireError
from oraculo.ports.work import Fate
from oraculo.runtime.bound_answers import FORBIDDEN_QUEUE, answer_of
from oraculo.runtime.flow.tickets import Record, TicketDesk, open_attempt
from oraculo.service import Oraculo
from oraculo.wire.flow.instants import milliseconds
from oraculo.wire.flow.ticket_requests import StatusRequest, encoded
from oraculo.wire.ticket_tokens import HEADER, UNAUTHENTICATED, TicketClaim

TOLD_STATUSES = ("RUNNING", "COMPLETED", "FAILED")  # what a worker may say


def ticket_desk(oraculo: Oraculo) -> TicketDesk:
    """The tickets of the tenant. ProblemError: it has no plans of Fluxo C."""
    return TicketDesk(desk_of(oraculo), oraculo.store, oraculo.state, oraculo.now)


async def tell_status(
    oraculo: Oraculo, actor: Actor, ticket_id: str, asked: StatusRequest, token: str | None = None
) -> Record:
    """Take what a worker says of its ticket, and return the ticket as it stands now. `token` came beside the words."""
    plans, desk = desk_of(oraculo), ticket_desk(oraculo)
    if asked.status not in TOLD_STATUSES:
        raise invalid("status", f"{asked.status}: a worker says {', '.join(TOLD_STATUSES)}", "invalid_request")
    state, position = await desk.find(ticket_id)
    open_attempt(state, position)
    if not actor.may_use(state.plan.tasks[position].queue):
        raise ProblemError(
            "forbidden", "this key may not answer for the queue of this ticket", scope=Scope.RESULT_WRITE
        )
    raw = encoded(asked.execution_result(ticket_id))
    headers = {} if token is None else {HEADER: token}
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
    return await desk.record(ticket_id)


async def token_of(oraculo: Oraculo, ticket_id: str) -> dict[str, Any]:
    """The token of the present attempt of a ticket. ProblemError: tickets have none here."""
    state, position = await ticket_desk(oraculo).find(ticket_id)
    ring = oraculo.kernel_ports.tokens
    if ring is None:
        raise ProblemError("tokens_off", "ORACULO_RESULT_TOKENS is off")
    attempt = open_attempt(state, position)
    name = id_of(state.run, position)
    until = state.tickets[position].due_at or state.deadline
    made = ring.issue(TicketClaim(name, attempt, local_name(state.correlation_id)))
    left = None if until is None else max(0, round((until - oraculo.now()).total_seconds()))
    return {
        "access_token": made,
        "token_type": "Bearer",
        "expires_in": left,
        "expires_at": None if until is None else milliseconds(until),
        "ticket_id": name,
        "scopes": ["ticket:update"],
    }
