"""What must hold when a worker was chosen for a ticket, said again without a line of the core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oraculo.core import events as ev
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Verdict

if TYPE_CHECKING:
    from oraculo.simulation.invariants import CheckedJournal

RULE = "only an open attempt is given to a worker"


def expected(journal: CheckedJournal, position: int, attempt: int) -> Verdict:
    """What must become of giving this attempt to a worker."""
    return Verdict.APPLIED if may_allocate(journal, position, attempt) else Verdict.IDLE


def may_allocate(journal: CheckedJournal, position: int, attempt: int) -> bool:
    """True while its answer would count and orders may go."""
    ticket = journal.tickets[position]
    if journal.status is not None or journal.pauses.paused:
        return False
    return ticket.attempt == attempt and ticket.phase in ("owed", "running")


def check(journal: CheckedJournal, event: ev.TicketAllocated) -> None:
    ticket, chosen = journal.tickets[event.ticket], event.allocation
    if not may_allocate(journal, event.ticket, event.attempt):
        journal.wrong(RULE, f"ticket {event.ticket} attempt {event.attempt} given while {ticket.phase}")
    if chosen.candidates[0].agent_id != chosen.agent_id or chosen.candidates[0].reason is not None:
        journal.wrong("every choice is explained", f"ticket {event.ticket}: {chosen.agent_id} is not its candidate")
    if any(one.reason is None for one in chosen.candidates[1:]):
        journal.wrong("every choice is explained", f"ticket {event.ticket}: one was not chosen for no reason")
    ticket.allocated = (event.attempt, chosen.agent_id)


def check_state(journal: CheckedJournal, state: Orchestration, position: int) -> None:
    """The state names the worker that the journal does."""
    known = state.tickets[position].allocated
    named = None if known is None else (known.attempt, known.allocation.agent_id)
    if named != journal.tickets[position].allocated:
        journal.wrong("every choice is explained", f"ticket {position}: {named} in the state")
