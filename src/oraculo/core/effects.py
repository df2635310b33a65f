"""What the world is owed because of events. Orders; the runtime performs them after the commit.

Effects are not stored: the state says what is owed (`state.owed`, `state.notices`), so a crash collects on the journal
itself, and `owed_effects` gives back whatever was not confirmed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from oraculo.core import policing
from oraculo.core.notice_state import NoticePhase
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Kind


@dataclass(slots=True)
class Publish:
    """Send the message of each (position, attempt); the broker's confirmation comes back as ConfirmDispatch."""

    tickets: list[tuple[int, int]]


@dataclass(slots=True)
class Notify:
    """Try to deliver a notice once; the outcome comes back as RecordDelivery."""

    notice: int
    attempt: int


@dataclass(slots=True)
class Begin:
    """Begin the child of each (position, attempt); that it is there comes back as ConfirmDispatch."""

    tickets: list[tuple[int, int]]


@dataclass(slots=True)
class EndChildren:
    """Cancel the child of each (position, attempt), as far as it is there; it comes back as ConfirmCancel."""

    tickets: list[tuple[int, int]]


@dataclass(slots=True)
class Evaluate:
    """Evaluate the expressions that the state asks for; what they give comes back as Resolve."""


@dataclass(slots=True)
class AskPolicies:
    """Ask the policies for the verdicts that the state waits for; they come back as Judge."""


@dataclass(slots=True)
class Recall:
    """Do not send the orders that were asked for and are not on their way yet; they are asked for anew later."""


Effect = Publish | Notify | Evaluate | AskPolicies | Recall | Begin | EndChildren


def owed_orders(state: Orchestration) -> list[tuple[int, int]]:
    """(position, attempt) of every order that no broker has confirmed."""
    return [(position, state.tickets[position].attempt) for position in sorted(state.owed)]


def orders(state: Orchestration, tickets: list[tuple[int, int]]) -> list[Effect]:
    """What it takes that these (position, attempt) are under way: messages for workers, and children that begin."""
    if not state.plan.profile.has_expressions:
        return [Publish(tickets)] if tickets else []
    tasks = state.plan.tasks
    children = [(p, attempt) for p, attempt in tickets if tasks[p].kind is Kind.FILHA]
    sent = [one for one in tickets if tasks[one[0]].kind is not Kind.FILHA] if children else tickets
    return [*([Publish(sent)] if sent else []), *([Begin(children)] if children else [])]


def owed_effects(state: Orchestration, forgotten: Callable[[str], bool] | None = None) -> list[Effect]:
    """All that this orchestration still owes the world, and may give it: during a pause orders are recalled. Also the
    messages of tickets that are running, when they were in queues that a broker without memory has forgotten."""
    effects: list[Effect] = []
    tickets = owed_orders(state) if state.paused is None else []
    if forgotten is not None and not state.status.final:
        tickets += [
            (position, ticket.attempt)
            for position, ticket in enumerate(state.tickets)
            if ticket.running
            and state.plan.tasks[position].kind.is_sent
            and forgotten(state.plan.tasks[position].queue)
        ]
    effects += orders(state, tickets)
    if state.to_end:
        effects.append(EndChildren(list(state.to_end.items())))
    if state.paused is not None:
        effects.append(Recall())
    if state.asks_anything:
        effects.append(Evaluate())
    if policing.owed(state):
        effects.append(AskPolicies())
    for number, notice in enumerate(state.notices):
        if notice.phase is NoticePhase.OWED:
            effects.append(Notify(number, notice.attempt))
    return effects
