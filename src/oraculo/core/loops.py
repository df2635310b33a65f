"""The rules of loops: when the next round is there and starts, and how a loop ends.

A loop asks for its first round like any task for its expressions, and asks again when a round has concluded: whether
that is enough, and what the next one gets. A round comes as `Grow`, one at a time; that the loop is over comes as
`Resolve`. Between two rounds there may be a pause: the next one is a ticket by then, and starts when it is due.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from oraculo.core import pausing, policing
from oraculo.core.blocks import Rounds, loop_at
from oraculo.core.commands import Grow
from oraculo.core.events import Event, LoopEnded, PlanGrown, Resolved, TasksAsked, TicketsClosed
from oraculo.core.plan import MAX_TASKS
from oraculo.core.reasons import ReasonCode, because
from oraculo.core.resolution import Obstacle, Outcome, Resolution
from oraculo.core.state import Orchestration
from oraculo.core.ticket_state import Ticket
from oraculo.core.vocabulary import Phase, Status, Verdict

_GOOD = (Status.CONCLUIDA, Status.PARCIAL)


def refusal(tickets: int, owner: int) -> Resolution | None:
    """Why there cannot be another round in a run that has so many tickets; None when there can."""
    if tickets < MAX_TASKS:
        return None
    detail = f"the run has {tickets} tickets and may have {MAX_TASKS} in all"
    return Resolution(owner, Outcome.FAIL, word="repete", detail=detail, obstacle=Obstacle.ITEMS)


def grow(state: Orchestration, command: Grow, now: datetime) -> tuple[list[Event], Verdict]:
    """A round counts when it is the next one of a loop that asks for it."""
    owner, spec = command.owner, loop_at(state.plan, command.owner)
    assert spec is not None, f"task {owner} is no loop"
    known = len(state.items(owner))
    wanted = owner in state.asks and command.offset == known and command.count == 1 and spec.has_room(known)
    if not wanted or state.status.final:
        return [], Verdict.IDLE
    refused = refusal(len(state.tickets), owner)
    if refused is not None:
        return [Resolved([refused])], Verdict.APPLIED
    due_at = pausing.clock(state, now) + spec.pause if known and spec.pause else None
    grown = PlanGrown(owner, len(state.tickets), known, 1, known + 1, command.rows, command.template, due_at=due_at)
    return [grown], Verdict.APPLIED


def begun(state: Orchestration, event: PlanGrown) -> list[Event]:
    """A round without a pause before it starts at once."""
    return [policing.released(state, [event.first])] if event.due_at is None else []


def following(state: Orchestration, closed: Iterable[int]) -> list[Event]:
    """What becomes of the loops whose rounds have closed: they ask whether that is enough, or have failed."""
    if state.blocks is None or not state.blocks.loops:
        return []
    events: list[Event] = []
    for position in closed:
        rounds = state.blocks.of(position)
        if isinstance(rounds, Rounds) and state.tickets[rounds.owner].phase is Phase.GROWN:
            ticket = state.tickets[position]
            events.append(TasksAsked([rounds.owner]) if ticket.status in _GOOD else _failed(rounds, position, ticket))
    return events


def _failed(rounds: Rounds, position: int, ticket: Ticket) -> LoopEnded:
    said = next(iter(ticket.erros or ()), {})
    text = str(said.get("mensagem") or said.get("codigo") or "")
    index = str(rounds.number(position))
    why = because(ReasonCode.ROUND_FAILED, index=index, status=ticket.status.value, text=text)
    return LoopEnded(rounds.owner, Status.ERRO, why)


def stopped(state: Orchestration, one: Resolution) -> LoopEnded:
    """The condition of a loop is true, or no round is left."""
    rounds, spec = state.items(one.ticket), loop_at(state.plan, one.ticket)
    assert spec is not None, f"task {one.ticket} is no loop"
    if one.outcome is Outcome.SPENT and not spec.continues:
        return LoopEnded(one.ticket, Status.ERRO, because(ReasonCode.LOOP_SPENT, rounds=str(len(rounds))))
    return LoopEnded(one.ticket, state.tickets[rounds[-1]].status)


def timed_out(state: Orchestration, owner: int) -> LoopEnded:
    """The whole of a loop took longer than it may."""
    spec = loop_at(state.plan, owner)
    limit = 0.0 if spec is None or spec.limit is None else spec.limit.total_seconds()
    return LoopEnded(owner, Status.TIMEOUT, because(ReasonCode.NOT_IN_TIME, seconds=f"{limit:g}"))


def rest(state: Orchestration, ended: LoopEnded) -> list[Event]:
    """Cancel the round that a loop which is out of time leaves open."""
    last = state.items(ended.ticket)[-1:]
    left = [position for position in last if state.tickets[position].phase is not Phase.CLOSED]
    why = ended.reason or because(ReasonCode.CANCELLED, text="")
    return [TicketsClosed(left, Status.CANCELADA, why)] if left else []
