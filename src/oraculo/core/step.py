"""`step`: the only way in. One command in, what became true and what the world is owed out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from oraculo.core import policing
from oraculo.core.advance import advance
from oraculo.core.commands import Command, Start
from oraculo.core.decide import decide
from oraculo.core.effects import (
    AskPolicies,
    Effect,
    EndChildren,
    Evaluate,
    Notify,
    Publish,
    Recall,
    orders,
    owed_orders,
)
from oraculo.core.events import (
    AnswerHeld,
    Event,
    NoticeSent,
    OrchestrationPaused,
    OrchestrationResumed,
    OrchestrationStarted,
    PlanGrown,
    PolicyAsked,
    PolicyEvaluated,
    Resolved,
    TasksAsked,
    TicketFailed,
    TicketRequeued,
    TicketsClosed,
    TicketsDispatched,
    TicketWithdrawn,
)
from oraculo.core.state import Orchestration, begin, evolve
from oraculo.core.vocabulary import Verdict


@dataclass(slots=True)
class Step:
    """`state` is the state that was given, changed in place; `first` is the number of the first event."""

    cause: Command
    at: datetime
    verdict: Verdict
    first: int
    events: list[Event]
    state: Orchestration
    effects: list[Effect]


def step(state: Orchestration | None, command: Command, now: datetime) -> Step:
    """What `command` makes of `state` at `now`. A state that does not exist yet takes Start, and nothing else."""
    if state is None:
        if not isinstance(command, Start):
            raise ValueError(f"{type(command).__name__} for an orchestration that does not exist")
        started = OrchestrationStarted(
            command.run,
            command.correlation_id,
            command.plan,
            None if command.plan.timeout is None else now + command.plan.timeout,
            command.fingerprint,
            command.traceparent,
            command.actor,
            command.origin,
        )
        state = begin(started, now)
        first, verdict = 1, Verdict.APPLIED
        events: list[Event] = [started]
    else:
        first = state.version + 1
        events, verdict = decide(state, command, now)
        for event in events:
            evolve(state, event, now)
    for event in events:  # the list grows while we go through it
        for caused in advance(state, event, now):
            evolve(state, caused, now)
            events.append(caused)
    return Step(command, now, verdict, first, events, state, react(events, state))


_EVENTS_WITH_EFFECTS = frozenset(
    (
        TicketsDispatched,
        TicketRequeued,
        TicketWithdrawn,
        OrchestrationPaused,
        OrchestrationResumed,
        TasksAsked,
        Resolved,
        PlanGrown,
        PolicyAsked,
        AnswerHeld,
        PolicyEvaluated,
        TicketsClosed,
        TicketFailed,
        NoticeSent,
    )
)


def react(events: list[Event], state: Orchestration) -> list[Effect]:
    """Events → effects. A message that the same step made unnecessary is not owed; while the orchestration is paused
    none may go, and when it is resumed all that are owed go."""
    effects: list[Effect] = []
    for event in events:
        if type(event) not in _EVENTS_WITH_EFFECTS:
            continue
        if isinstance(event, TicketsDispatched):
            if state.paused is not None:
                continue
            owed, attempt = state.owed, event.attempt
            tickets = [(p, attempt) for p in event.tickets if p in owed]
            effects += orders(state, tickets)
        elif isinstance(event, TicketRequeued):
            if state.paused is None:
                effects.append(Publish([(event.ticket, event.attempt)]))
        elif isinstance(event, TicketWithdrawn):
            if state.paused is None and event.wait is None:
                effects.append(Publish([(event.ticket, event.attempt + 1)]))
        elif isinstance(event, OrchestrationPaused):
            effects.append(Recall())
        elif isinstance(event, OrchestrationResumed):
            effects += orders(state, owed_orders(state))
        elif isinstance(event, TasksAsked | Resolved | PlanGrown):
            if state.asks_anything:
                effects.append(Evaluate())
        elif isinstance(event, PolicyAsked | AnswerHeld | PolicyEvaluated):
            if policing.owed(state):
                effects.append(AskPolicies())
        elif isinstance(event, TicketsClosed | TicketFailed):
            closed = event.tickets if isinstance(event, TicketsClosed) else (event.ticket,)
            left = [(p, state.to_end[p]) for p in closed if p in state.to_end] if state.to_end else []
            if left:
                effects.append(EndChildren(left))
        elif isinstance(event, NoticeSent):
            effects.append(Notify(event.notice, event.attempt))
    return effects
