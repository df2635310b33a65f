"""What must hold when an attempt is taken back from its worker, said again without a line of the core."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from oraculo.core import events as ev
from oraculo.core.vocabulary import Cause, Status, Verdict

if TYPE_CHECKING:
    from oraculo.simulation.invariants import CheckedJournal

RULE = "a withdrawn attempt is no failure"
PREEMPTED_RULE = "a ticket makes room for others twice at most, and never one that undoes another"
WITHDRAWALS_MAX, PREEMPTIONS_MAX, LAPSES_MAX = 5, 2, 20


def expected(journal: CheckedJournal, position: int, attempt: int, cause: Cause = Cause.REALOCADO) -> Verdict:
    """What must become of taking back this attempt."""
    allowed = cause is not Cause.PREEMPTADO or may_preempt(journal, position)
    return Verdict.APPLIED if allowed and may_withdraw(journal, position, attempt, cause) else Verdict.IDLE


def may_preempt(journal: CheckedJournal, position: int) -> bool:
    """True while it made room for others less than twice, and does not undo another ticket."""
    undoes = 0 < journal.undoes <= position
    return journal.tickets[position].preempted < PREEMPTIONS_MAX and not undoes


def may_withdraw(journal: CheckedJournal, position: int, attempt: int, cause: Cause) -> bool:
    """True while a worker may have it, and it was not taken back too often."""
    ticket = journal.tickets[position]
    if journal.status is not None or not journal.plan.tasks[position].kind.is_sent:
        return False
    open_now = ticket.attempt == attempt and ticket.phase in ("owed", "running")
    if cause is Cause.OFERTA_VENCIDA:
        return open_now and ticket.lapsed < LAPSES_MAX
    return open_now and len(ticket.withdrawn) - ticket.lapsed < WITHDRAWALS_MAX


def counts(journal: CheckedJournal, position: int, attempt: int, *, ok: bool) -> bool:
    """True when an answer to an attempt that was taken back counts: a good one, while the ticket is open."""
    ticket = journal.tickets[position]
    return ok and attempt in ticket.withdrawn and ticket.phase != "closed"


def check(journal: CheckedJournal, event: ev.TicketWithdrawn, at: datetime) -> None:
    ticket = journal.tickets[event.ticket]
    if not may_withdraw(journal, event.ticket, event.attempt, event.cause):
        journal.wrong(RULE, f"ticket {event.ticket} attempt {event.attempt} withdrawn while {ticket.phase}")
    if event.cause is Cause.PREEMPTADO:
        if not may_preempt(journal, event.ticket):
            journal.wrong(PREEMPTED_RULE, f"ticket {event.ticket} attempt {event.attempt}")
        ticket.preempted += 1
    ticket.lapsed += event.cause is Cause.OFERTA_VENCIDA
    ticket.withdrawn.add(event.attempt)
    ticket.status, ticket.confirmed_at = Status.PENDENTE, None
    if event.wait is None:
        ticket.phase, ticket.attempt, ticket.retry_at = "owed", event.attempt + 1, None
    else:
        ticket.phase, ticket.retry_at = "backoff", at + event.wait
