"""Orders whose attempts are used up, as dead letters: reason, attempts, origin, last error.

They are written in the transaction that ends the ticket, so there is one for each, whatever dies. The body is the order
as its queue would get it, written again from the journal; requeueing reads no more of it than which ticket it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from oraculo.core import sentences
from oraculo.core.events import TicketFailed
from oraculo.core.requeue import is_exhausted
from oraculo.core.state import Orchestration
from oraculo.core.step import Step
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import Kind
from oraculo.ports.dead_letters import DeadLetter
from oraculo.wire import payloads, quarantine

DATA_MAX_BYTES = 64 * 1024  # of collected data that the letter carries; the orchestration has them all


def letters(done: Step) -> Iterator[DeadLetter]:
    """The dead letters of a step."""
    for event in done.events:
        if type(event) is TicketFailed and is_exhausted(done.state, event):
            yield _letter(done.state, event, done.at)


def _letter(state: Orchestration, event: TicketFailed, at: datetime) -> DeadLetter:
    position = event.ticket
    [(queue, _, body)] = payloads.orders(state, [(position, event.attempt)], at, _leave_out)
    detail = sentences.message(sentences.errors_said(event, "en"))
    headers = {
        quarantine.ATTEMPTS: str(event.attempt),
        quarantine.TICKET: ticket_id(state.run, position),
    }
    reason = quarantine.ATTEMPTS_USED_UP
    return DeadLetter(queue, reason, quarantine.one_line(detail), body, state.correlation_id, headers)


def _leave_out(state: Orchestration, position: int, _until: datetime) -> dict[str, Any] | None:
    """What stands in the place of collected data that are too large for a letter."""
    if state.plan.tasks[position].kind is not Kind.EXECUCAO:
        return None
    size = sum(len(state.tickets[one].dados) for one in payloads.data_of(state, position))
    return {"bytes": size, "omitidos": True} if size > DATA_MAX_BYTES else None
