"""What the world is owed because of events. Orders; the runtime performs them after the commit.

Effects are not stored: the state says what is owed (`state.owed`, `state.notices`), so a crash collects on the journal
itself, and `owed_effects` gives back whatever was not confirmed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from oraculo.core.state import NoticePhase, Orchestration


@dataclass(slots=True)
class Publish:
    """Send the message of each (position, attempt); the broker's confirmation comes back as ConfirmDispatch."""

    tickets: list[tuple[int, int]]


@dataclass(slots=True)
class Notify:
    """Try to deliver a notice once; the outcome comes back as RecordDelivery."""

    notice: int
    attempt: int


Effect = Publish | Notify


def owed_effects(state: Orchestration, forgotten: Callable[[str], bool] | None = None) -> list[Effect]:
    """All that this orchestration still owes the world; also the messages of tickets that are running, when they were
    in queues that a broker without memory has forgotten."""
    effects: list[Effect] = []
    tickets = [(position, state.tickets[position].attempt) for position in sorted(state.owed)]
    if forgotten is not None and not state.status.final:
        tickets += [
            (position, ticket.attempt)
            for position, ticket in enumerate(state.tickets)
            if ticket.running and forgotten(state.plan.tasks[position].queue)
        ]
    if tickets:
        effects.append(Publish(tickets))
    for number, notice in enumerate(state.notices):
        if notice.phase is NoticePhase.OWED:
            effects.append(Notify(number, notice.attempt))
    return effects
