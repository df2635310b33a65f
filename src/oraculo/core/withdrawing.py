"""An attempt is taken back from the worker that has it, and the ticket goes elsewhere (docs/adr/0058).

A withdrawn attempt did not fail: it uses up none of the ticket's attempts. The next one is owed at once, or after
a wait. When the worker answers the withdrawn attempt all the same and it went well, that counts while the ticket is
open: work is not thrown away. A failure of it counts no more; the next attempt is under way.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from oraculo.core import pausing
from oraculo.core.commands import WithdrawTicket
from oraculo.core.events import TicketWithdrawn
from oraculo.core.vocabulary import Cause, Phase, Status, Verdict

if TYPE_CHECKING:
    from oraculo.core.state import Orchestration
    from oraculo.core.ticket_state import Ticket

PREEMPTIONS_MAX = 2  # of one ticket: what is not urgent must end, too
WITHDRAWALS_MAX = 5  # of one ticket: an order that ends every worker that takes it must not go round for ever
LAPSES_MAX = 20  # offers of one ticket that nobody took, beside those: no worker had it


def withdraw(state: Orchestration, command: WithdrawTicket) -> tuple[TicketWithdrawn | None, Verdict]:
    """Decide on taking back an attempt. One that is over, or of a ticket that was withdrawn often enough, stays."""
    if not 0 <= command.position < len(state.tickets):
        return None, Verdict.UNKNOWN_TICKET
    ticket = state.tickets[command.position]
    if not state.wants_answer(command.position, command.attempt) or state.status.final:
        return None, Verdict.IDLE
    if not state.plan.tasks[command.position].kind.is_sent or not _is_left(ticket, command.cause):
        return None, Verdict.IDLE
    if command.cause is Cause.PREEMPTADO and not may_preempt(state, command.position):
        return None, Verdict.IDLE
    event = TicketWithdrawn(
        command.position, command.attempt, command.cause, command.worker, command.wait, command.actor, command.by
    )
    return event, Verdict.APPLIED


def _is_left(ticket: Ticket, cause: Cause) -> bool:
    """Return whether a ticket was not withdrawn too often for that."""
    lapses = (ticket.causes or []).count(Cause.OFERTA_VENCIDA)
    if cause is Cause.OFERTA_VENCIDA:
        return lapses < LAPSES_MAX
    return ticket.withdrawn.bit_count() - lapses < WITHDRAWALS_MAX


def may_preempt(state: Orchestration, position: int) -> bool:
    """Return whether a ticket may make room for a more urgent one: not more than twice, and never one that undoes
    another."""
    if position >= state.asked:
        return False
    return (state.tickets[position].causes or []).count(Cause.PREEMPTADO) < PREEMPTIONS_MAX


def take_back(state: Orchestration, event: TicketWithdrawn, at: datetime) -> None:
    """Make a TicketWithdrawn true: the next attempt is owed, or due when its wait is over."""
    ticket, position = state.tickets[event.ticket], event.ticket
    ticket.withdrawn |= 1 << event.attempt
    ticket.causes = [*(ticket.causes or ()), event.cause]
    ticket.status, ticket.started_at = Status.PENDENTE, None
    if event.wait is None:
        ticket.phase, ticket.attempt, ticket.due_at = Phase.OWED, event.attempt + 1, None
        state.owed.add(position)
        return
    ticket.phase, ticket.due_at = Phase.BACKOFF, pausing.clock(state, at) + event.wait
    state.owed.discard(position)
    state.arm(position, ticket.due_at)


def counts_after_all(state: Orchestration, position: int, attempt: int) -> bool:
    """Return whether a good answer to this attempt counts although it was withdrawn."""
    ticket = state.tickets[position]
    return bool(ticket.withdrawn >> attempt & 1) and ticket.phase is not Phase.CLOSED
