"""A ticket is given to a worker that asked: the rule and its fact (docs/scheduler.md).

The choice is made outside, where workers ask; the journal keeps it with all that it was made of, so that replaying asks
no registry. It is a fence as well: an attempt that is over is not given to any worker.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from oraculo.core.allocations import AllocatedAttempt
from oraculo.core.commands import AllocateTicket
from oraculo.core.events import TicketAllocated
from oraculo.core.vocabulary import Verdict

if TYPE_CHECKING:
    from oraculo.core.state import Orchestration


def allocate(state: Orchestration, command: AllocateTicket) -> tuple[TicketAllocated | None, Verdict]:
    """Decide on giving an attempt to a worker. IDLE: its answer would not count, or nothing may go out now."""
    if not 0 <= command.position < len(state.tickets):
        return None, Verdict.UNKNOWN_TICKET
    if state.status.final or state.paused is not None or not state.wants_answer(command.position, command.attempt):
        return None, Verdict.IDLE
    return TicketAllocated(command.position, command.attempt, command.allocation), Verdict.APPLIED


def note(state: Orchestration, event: TicketAllocated, at: datetime) -> None:
    """Make a TicketAllocated true. A lease that ended may be followed by another of the same attempt."""
    state.tickets[event.ticket].allocated = AllocatedAttempt(event.attempt, at, event.allocation)
