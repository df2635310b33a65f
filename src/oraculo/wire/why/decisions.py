"""The decisions of a run, one after the other, as its journal has them: each a sentence, with what it stands on.

Every event of the journal has its place here, so that a new one cannot be forgotten: either its sentence, or None when
it decides nothing that another event does not tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, assert_never

from oraculo.core import events as ev
from oraculo.core.ticket_id import ticket_id
from oraculo.ports.journal import Recorded
from oraculo.wire import event_views
from oraculo.wire.why import of_attempts, of_runs, of_tickets
from oraculo.wire.why.telling import DecisionTold, Telling


def decisions(telling: Telling, recorded: Iterable[Recorded], after: int = 0) -> Iterator[dict[str, Any]]:
    """The decisions of these steps that are numbered above `after`; of one ticket, those that are about it."""
    for step in recorded:
        for number, event in enumerate(step.events, step.first):
            told = _told(telling, event, step.at) if number > after else None
            if told is not None:
                yield _document(telling, event, told, number, step.at)


def _document(telling: Telling, event: ev.Event, told: DecisionTold, number: int, at: datetime) -> dict[str, Any]:
    position, state = told.ticket, telling.state
    return {
        "seq": number,
        "em": at,
        "evento": event_views.event_name(type(event)),
        "ticket_id": None if position is None else ticket_id(state.run, position),
        "tarefa": None if position is None else telling.name(position),
        "tentativa": told.attempt,
        "ator": ev.actor_of(event),
        "frase": told.sentence,
        "detalhes": told.details,
        **told.documents,
    }


def _told(telling: Telling, event: ev.Event, at: datetime) -> DecisionTold | None:
    if isinstance(event, _OfAttempt):
        return _of_attempt(telling, event, at) if telling.concerns((event.ticket,)) else None
    if isinstance(event, _OfTicket):
        return _of_ticket(telling, event)
    return _of_run(telling, event)


_OfAttempt = (
    ev.TicketAllocated | ev.TicketConcluded | ev.AttemptFailed | ev.TicketFailed | ev.TicketWithdrawn
    | ev.TicketRequeued | ev.LateAnswerKept | ev.ConflictingAnswerKept | ev.AnswerHeld | ev.ChildEnded | ev.MapEnded
    | ev.LoopEnded | ev.WaitStarted | ev.WaitEnded
)  # fmt: skip


def _of_attempt(telling: Telling, event: _OfAttempt, at: datetime) -> DecisionTold | None:
    match event:
        case ev.TicketAllocated():
            return of_attempts.allocated(telling, event, at)
        case ev.TicketConcluded():
            told = of_attempts.concluded(telling, event, at)
            return told if telling.only is not None or event.attempt > 1 or told.documents else None
        case ev.AttemptFailed():
            return of_attempts.failed(telling, event)
        case ev.TicketFailed():
            return of_attempts.gave_up(telling, event, at)
        case ev.TicketWithdrawn():
            return of_attempts.withdrawn(telling, event)
        case ev.TicketRequeued():
            return of_attempts.requeued(telling, event)
        case ev.LateAnswerKept() | ev.ConflictingAnswerKept():
            return of_attempts.without_effect(telling, event)
        case ev.AnswerHeld():
            return of_attempts.held(telling, event)
        case ev.ChildEnded():
            return of_tickets.child_ended(telling, event)
        case ev.MapEnded() | ev.LoopEnded():
            return of_tickets.growth_ended(telling, event)
        case ev.WaitStarted():
            return of_tickets.wait_started(telling, event)
        case ev.WaitEnded():
            return of_tickets.wait_ended(telling, event)
        case _:
            assert_never(event)


_OfTicket = (
    ev.TicketsDispatched | ev.FanInClosed | ev.TicketsClosed | ev.TicketsReused | ev.MapRestored | ev.PlanGrown
    | ev.ChildrenCancelled | ev.PolicyEvaluated
)  # fmt: skip


def _of_ticket(telling: Telling, event: _OfTicket) -> DecisionTold | None:
    match event:
        case ev.TicketsDispatched():
            return of_tickets.released(telling, event)
        case ev.FanInClosed():
            return of_tickets.fan_in(telling, event)
        case ev.TicketsClosed():
            return of_tickets.closed(telling, event)
        case ev.TicketsReused():
            return of_tickets.reused(telling, event)
        case ev.MapRestored():
            return of_tickets.restored(telling, event)
        case ev.PlanGrown():
            return of_tickets.grown(telling, event)
        case ev.ChildrenCancelled():
            return of_tickets.children_cancelled(telling, event)
        case ev.PolicyEvaluated():
            return of_tickets.judged(telling, event)
        case _:
            assert_never(event)


_OfRun = (
    ev.OrchestrationStarted | ev.ResultsReused | ev.DispatchConfirmed | ev.TasksAsked | ev.Resolved | ev.PolicyAsked
    | ev.Woken | ev.CancelRequested | ev.OrchestrationPaused | ev.OrchestrationResumed | ev.PriorityChanged
    | ev.ApprovalAsked | ev.ApprovalGiven | ev.ApprovalRefused | ev.SignalReceived | ev.CompensationStarted
    | ev.OrchestrationClosed | ev.NoticeSent | ev.NoticeDelivered | ev.NoticeFailed | ev.NoticeGivenUp
)  # fmt: skip


def _of_run(telling: Telling, event: _OfRun) -> DecisionTold | None:
    match event:
        case ev.OrchestrationStarted():
            return of_runs.started(telling, event)
        case ev.ResultsReused():
            return of_runs.taken_over(telling, event)
        case ev.CancelRequested():
            return of_runs.cancelled(telling, event)
        case ev.OrchestrationPaused() | ev.OrchestrationResumed():
            return of_runs.paused(telling, event)
        case ev.PriorityChanged():
            return of_runs.prioritised(telling, event)
        case ev.ApprovalAsked():
            return DecisionTold(telling.say("approval.asked"))
        case ev.ApprovalGiven() | ev.ApprovalRefused():
            return of_runs.decided(telling, event)
        case ev.SignalReceived():
            return of_runs.signalled(telling, event)
        case ev.CompensationStarted():
            return of_runs.undoing(telling, event)
        case ev.OrchestrationClosed(status):
            return of_runs.ended(telling, status) if telling.only is None else None
        case ev.NoticeGivenUp():
            return of_runs.notice_given_up(telling, event) if telling.only is None else None
        case ev.DispatchConfirmed() | ev.Woken() | ev.NoticeSent() | ev.NoticeDelivered() | ev.NoticeFailed():
            return None  # carried out, not decided
        case ev.TasksAsked() | ev.Resolved() | ev.PolicyAsked():
            return None  # what came of it is told
        case _:
            assert_never(event)
