"""A ticket whose attempts are used up gets another one, because an operator asks for it (docs/adr/0040).

What has ended stays ended: an orchestration, and what a fan-in has decided. Only a failure that has had no consequence
yet can be taken back: the orchestration is open, and every fan-in that the ticket feeds still waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oraculo.core import undoing
from oraculo.core.commands import RequeueTicket
from oraculo.core.events import TicketFailed, TicketRequeued
from oraculo.core.vocabulary import Cause, Phase, Status, Verdict

if TYPE_CHECKING:
    from oraculo.core.state import Orchestration

_FAILED = (Status.ERRO, Status.TIMEOUT)


def requeue(state: Orchestration, command: RequeueTicket) -> tuple[TicketRequeued | None, Verdict]:
    """Decide on a further attempt for a ticket that used up `command.attempt` of them."""
    if not 0 <= command.position < len(state.tickets):
        return None, Verdict.UNKNOWN_TICKET
    if state.status.final:
        return None, Verdict.RUN_ENDED
    ticket = state.tickets[command.position]
    if ticket.phase is not Phase.CLOSED or ticket.attempt != command.attempt:
        return None, Verdict.DUPLICATE  # requeued before
    if ticket.status not in _FAILED or ticket.reason is not None or _has_consequence(state, command.position):
        return None, Verdict.ALREADY_DECIDED
    return TicketRequeued(command.position, command.attempt + 1, command.actor), Verdict.APPLIED


def _has_consequence(state: Orchestration, position: int) -> bool:
    """True when something was decided with the end of this ticket."""
    if position < state.undoes:
        return True
    if not state.open and (state.asks_output or state.output_resolved):
        return True
    if not state.plan.tasks[position].kind.is_sent:
        return True  # maps and loops end by what became of their items and rounds
    block = None if state.blocks is None else state.blocks.of(position)
    if block is not None and state.tickets[block.owner].phase is Phase.CLOSED:
        return True
    return any(state.gates[number].passed is not None for number in state.plan.tasks[position].feeds)


def is_exhausted(state: Orchestration, event: TicketFailed) -> bool:
    """True when a ticket failed because no attempt was left, and not because its worker said that none would help."""
    task = state.plan.tasks[event.ticket]
    return task.kind.is_sent and state.tickets[event.ticket].used >= task.max_attempts and not event.definitivo


def reopen(state: Orchestration, position: int, attempt: int) -> None:
    """Make a TicketRequeued true: the ticket is owed again, and counts as closed nowhere."""
    ticket = state.tickets[position]
    if ticket.status is Status.ERRO:
        ticket.earlier = {**(ticket.earlier or {}), ticket.attempt: ticket.digest}
    cause = Cause.TIMEOUT if ticket.status is Status.TIMEOUT else Cause.ERRO
    ticket.causes = [*(ticket.causes or ()), cause]
    ticket.status, ticket.phase, ticket.attempt = Status.PENDENTE, Phase.OWED, attempt
    ticket.closed_at = ticket.due_at = ticket.started_at = None
    state.owed.add(position)
    state.open += 1
    if state.blocks is not None:
        state.blocks.reopened(position)
    if state.windows:
        undoing.reopened(state, position)
    optional = state.plan.profile.optional(position)
    for number in state.plan.tasks[position].feeds:
        gate = state.gates[number]
        gate.closed -= 1
        if optional:
            gate.skipped -= 1
