"""Why an open ticket waits now, and why one that is closed ended so: from the state alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oraculo.core.blocks import Block
from oraculo.core.flow.profile import specs_in
from oraculo.core.sentences import errors_of, message, say
from oraculo.core.state import Orchestration
from oraculo.core.ticket_id import ticket_id
from oraculo.core.ticket_state import Ticket
from oraculo.core.vocabulary import Kind, Phase, Status
from oraculo.wire import hold_views, views, wait_views
from oraculo.wire.hold_views import HoldOf
from oraculo.wire.why import words
from oraculo.wire.why.telling import DecisionTold, Telling, instant

OPEN_SHOWN = 50


def summary(telling: Telling, hold: HoldOf) -> str:
    """One sentence: what the run, or the ticket that is asked about, waits for or how it ended."""
    state = telling.state
    if telling.only is not None:
        return of_ticket(telling, telling.only, hold).sentence
    if state.closed_at is not None:
        return telling.say("ended", status=telling.status(state.status))
    return views.waiting_for(state, telling.language, hold) or telling.status(state.status)


def open_tickets(telling: Telling, hold: HoldOf) -> tuple[list[dict[str, Any]], int]:
    """The first open tickets with the reason why each waits, those that are furthest first; and how many there are."""
    if telling.state.closed_at is not None:
        return [], 0
    positions = list(_open(telling))
    shown = positions[:OPEN_SHOWN]
    return [_document(telling, position, hold) for position in shown], len(positions)


def _open(telling: Telling) -> Iterator[int]:
    tickets = telling.state.tickets
    if telling.only is not None:
        if tickets[telling.only].phase is not Phase.CLOSED:
            yield telling.only
        return
    positions = [position for position, one in enumerate(tickets) if one.phase is not Phase.CLOSED]
    yield from sorted(positions, key=lambda position: tickets[position].phase is Phase.WAITING)


def _document(telling: Telling, position: int, hold: HoldOf) -> dict[str, Any]:
    state, told = telling.state, of_ticket(telling, position, hold)
    ticket = state.tickets[position]
    return {
        "ticket_id": ticket_id(state.run, position),
        "tarefa": telling.name(position),
        "destino": state.plan.tasks[position].queue or None,
        "status": ticket.status,
        "tentativas": ticket.attempt,
        "desde": ticket.started_at or ticket.dispatched_at or state.started_at,
        "prazo": ticket.due_at,
        "frase": told.sentence,
        "detalhes": told.details,
    }


def of_ticket(telling: Telling, position: int, hold: HoldOf) -> DecisionTold:
    """Why one ticket stands as it does."""
    state, name = telling.state, telling.name(position)
    ticket = state.tickets[position]
    match ticket.phase:
        case Phase.CLOSED:
            return DecisionTold(_ended(telling, name, ticket))
        case Phase.WAITING:
            return _not_begun(telling, position, name)
        case Phase.OWED:
            return _owed(telling, position, name, hold)
        case Phase.RUNNING:
            return _running(telling, position, name)
        case Phase.BACKOFF:
            return _backing_off(telling, ticket, name)
        case Phase.GROWN:
            statuses = [state.tickets[item].status for item in state.items(position)]
            done = sum(status.final for status in statuses)
            return DecisionTold(telling.say("now.items", names=name, done=done, total=len(statuses)))
        case Phase.HELD:
            return DecisionTold(telling.say("now.held", what=wait_views.sentence(state, position, telling.language)))
        case Phase.JUDGED:
            return DecisionTold(telling.say("now.judged", names=name))


def _ended(telling: Telling, name: str, ticket: Ticket) -> str:
    if ticket.status is Status.CONCLUIDA and ticket.attempt:
        return telling.say("ticket.done", names=name, n=ticket.attempt)
    why = message(errors_of(ticket, telling.language))
    if not why and ticket.reason is not None:
        why = say(ticket.reason, telling.language)
    word = "ticket.ended" if why else "ticket.over"
    return telling.say(word, names=name, status=telling.status(ticket.status), why=why)


def _not_begun(telling: Telling, position: int, name: str) -> DecisionTold:
    """What has to happen before a ticket starts."""
    state = telling.state
    if position in state.asks:
        return DecisionTold(telling.say("now.asks", names=name))
    block = None if state.blocks is None else state.blocks.of(position)
    if isinstance(block, Block) and block.at_once is not None:
        return DecisionTold(telling.say("now.turn", names=name, live=block.live, most=block.at_once))
    after = state.plan.tasks[position].after
    if after is None:
        held = views.waiting_for(state, telling.language)
        return DecisionTold(telling.say("now.start", names=name), [held] if held else [])
    gate = state.plan.gates[after]
    open_inputs = [one for one in gate.inputs if state.tickets[one].phase is not Phase.CLOSED]
    others = ", ".join(telling.name(one) for one in open_inputs[:3])
    if len(open_inputs) > 3:
        others = telling.say("more", names=others, n=len(open_inputs) - 3)
    told = telling.say(
        "now.gate",
        names=name,
        open=len(open_inputs),
        n=len(gate.inputs),
        mode=words.mode(telling.language, gate.mode),
        others=others or "–",
    )
    return DecisionTold(told)


def _owed(telling: Telling, position: int, name: str, hold: HoldOf) -> DecisionTold:
    """An order that did not go out yet; what holds it back, where something does."""
    state, ticket = telling.state, telling.state.tickets[position]
    queue = state.plan.tasks[position].queue
    if state.plan.tasks[position].kind is Kind.FILHA:
        return DecisionTold(telling.say("now.start", names=name))
    details = [hold_views.sentence(queue, hold, telling.language)] if queue else []
    if state.paused is not None:
        details.append(views.waiting_for(state, telling.language) or "")
    return DecisionTold(
        telling.say("now.owed", names=name, n=ticket.attempt, queue=queue), [one for one in details if one]
    )


def _running(telling: Telling, position: int, name: str) -> DecisionTold:
    state, ticket = telling.state, telling.state.tickets[position]
    if state.plan.tasks[position].kind is Kind.FILHA:
        return DecisionTold(telling.say("now.child", names=name))
    details = []
    given = ticket.allocated
    if given is not None and given.attempt == ticket.attempt:
        details.append(telling.say("now.given", worker=given.allocation.agent_id, since=instant(given.at)))
    if ticket.due_at is not None:
        details.append(telling.say("now.until", until=instant(ticket.due_at)))
    since = "–" if ticket.started_at is None else instant(ticket.started_at)
    queue = state.plan.tasks[position].queue
    return DecisionTold(telling.say("now.running", names=name, n=ticket.attempt, queue=queue, since=since), details)


def _backing_off(telling: Telling, ticket: Ticket, name: str) -> DecisionTold:
    until = "–" if ticket.due_at is None else instant(ticket.due_at)
    if not ticket.attempt:
        return DecisionTold(telling.say("now.round", names=name, until=until))
    cause = words.cause(telling.language, ticket.causes[-1]) if ticket.causes else "–"
    said = message(errors_of(ticket, telling.language))
    return DecisionTold(telling.say("now.backoff", names=name, until=until, cause=cause), [said] if said else [])


def id_of(state: Orchestration, position: int) -> str:
    return ticket_id(state.run, position)


def position_named(state: Orchestration, name: str) -> int:
    """The first ticket that goes by this name: of its task, of its source or executor, or of its queue; -1 when there
    is none."""
    specs = specs_in(state.plan)
    for position, task in enumerate(state.plan.tasks):
        spec = specs[position].task_id if position < len(specs) else None
        if name in (spec, state.plan.profile.name_of(position), task.name, task.queue):
            return position
    return -1
