"""What must hold when an operator gives a ticket another attempt, said again without a line of the core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oraculo.core import events as ev
from oraculo.core.plan import Task
from oraculo.core.vocabulary import Status, Verdict
from oraculo.simulation.facts import Seen

if TYPE_CHECKING:
    from oraculo.simulation.invariants import CheckedJournal

_FAILED = (Status.ERRO, Status.TIMEOUT)


def is_exhausted(task: Task, ticket: Seen, event: ev.TicketFailed) -> bool:
    """True when this failure makes a dead letter: it was the last attempt, and not declared final."""
    return task.kind.is_sent and not event.definitivo and ticket.used(event.attempt) >= task.max_attempts


def expected(journal: CheckedJournal, position: int, attempt: int) -> Verdict:
    """What must become of asking for an attempt behind `attempt`."""
    if journal.status is not None:
        return Verdict.RUN_ENDED
    ticket = journal.tickets[position]
    if ticket.phase != "closed" or ticket.attempt != attempt:
        return Verdict.DUPLICATE
    return Verdict.APPLIED if may_reopen(journal, position) else Verdict.ALREADY_DECIDED


def may_reopen(journal: CheckedJournal, position: int) -> bool:
    """True while the failure of a ticket has had no consequence."""
    ticket = journal.tickets[position]
    if position < journal.undoes or not ticket.attempt or ticket.status not in _FAILED:
        return False
    if all(one.phase == "closed" for one in journal.tickets):
        return False  # its output is being evaluated
    if not journal.plan.tasks[position].kind.is_sent or journal.maps.may_cancel(position, journal.tickets):
        return False  # a map or a loop, or an item of a map that has ended
    if journal.loops.is_round(position):
        return False  # its loop has failed with it
    return all(journal.gates[number] is None for number in journal.plan.tasks[position].feeds)


def check(journal: CheckedJournal, event: ev.TicketRequeued) -> None:
    ticket = journal.tickets[event.ticket]
    if ticket.phase != "closed" or ticket.status not in _FAILED:
        journal.wrong("a closed ticket never moves", f"ticket {event.ticket} requeued while {ticket.phase}")
    if not may_reopen(journal, event.ticket):
        journal.wrong("what was decided stays", f"ticket {event.ticket} requeued after its end was counted")
    if event.attempt != ticket.attempt + 1:
        journal.wrong("explained attempts", f"ticket {event.ticket} requeued as attempt {event.attempt}")
    ticket.phase, ticket.status, ticket.attempt = "owed", Status.PENDENTE, event.attempt
    ticket.confirmed_at = ticket.closed_at = ticket.retry_at = None
    journal.maps.reopened.add(event.ticket)
