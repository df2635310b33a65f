"""Answers of a worker whose key is bound to queues: it answers for tickets of those, and for no others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from oraculo.core import matching
from oraculo.core.access import Actor
from oraculo.core.commands import RecordResult
from oraculo.core.state import Orchestration
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import Verdict
from oraculo.errors import WireError
from oraculo.ports.work import Work
from oraculo.runtime.consumer import quarantined

FORBIDDEN_QUEUE: Final = "forbidden_queue"
StateOf = Callable[[str], Awaitable[Orchestration | None]]


async def answer_of(actor: Actor, work: Work, state_of: StateOf) -> Work:
    """The work as this actor may hand it in: as it is when no queue binds the actor; fixed to its ticket when that is
    of one of the actor's queues; a dead letter when it is not, or when the ticket cannot be told."""
    if actor.queues is None or work.dead is not None or not isinstance(work.command, RecordResult):
        return work
    state = await state_of(work.correlation_id)
    if state is None:
        return work  # nobody's: the engine keeps it as a dead letter
    position = matching.match(state, work.command)
    if isinstance(position, Verdict):
        return _dead(work, position.value, "it cannot be told which ticket it answers")
    queue = state.plan.tasks[position].queue
    if not actor.may_use(queue):
        return _dead(work, FORBIDDEN_QUEUE, f"the key {actor.id} may not answer for {queue}")
    return replace(work, command=replace(work.command, ticket=ticket_id(state.run, position)))


def _dead(work: Work, reason: str, detail: str) -> Work:
    return quarantined(work.body, work.queue, WireError(reason, detail), work.correlation_id)
