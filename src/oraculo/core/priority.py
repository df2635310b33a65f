"""How urgent a ticket is beside all the others: what orders tickets when not all of them may go.

A score is made of what a plan says of its tickets, recorded with it, and of how much of its time a ticket has used up:
what waits becomes more urgent. Each kind of plan says in its own way how important its tickets are
(`Profile.score_of`); tasks of a request do it with a priority from 1 to 9.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from oraculo.core.vocabulary import Priority

if TYPE_CHECKING:
    from oraculo.core.state import Orchestration

RISK_SHARE, QOS_SHARE, URGENCY_SHARE = 0.4, 0.3, 0.3  # what each part counts
PRIORITY_SHARE = 0.2  # of what a plan asks for above or below the usual
FRESH_URGENCY = 0.3  # of a ticket that has used up less than half of its time
USUAL_PRIORITY = 5  # of a task that says none
_CLASSES = ((Priority.CRITICAL, 0.99), (Priority.HIGH, 0.65), (Priority.NORMAL, 0.45), (Priority.LOW, -1.0))
_WEIGHTS = (0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.85, 1.0)  # of the priorities from 1 to 9


def urgency(created: datetime, deadline: datetime, now: datetime) -> float:
    """By the share of its time that is used up."""
    whole = deadline - created
    if whole <= timedelta() or now >= deadline:
        return 1.0
    used = (now - created) / whole
    return FRESH_URGENCY if used < 0.5 else 0.7 if used < 0.8 else 1.0


@dataclass(frozen=True, slots=True)
class PriorityScore:
    """How urgent the tickets of a plan are, and what that is made of. `value` is between 0 and 1."""

    value: float
    risk: float
    qos: float
    lift: float
    urgency: float

    def at_urgency(self, urgency: float) -> PriorityScore:
        """The score of a ticket that has waited: all but its urgency stays as it was recorded."""
        return replace(self, value=_value(self.risk, self.qos, self.lift, urgency), urgency=urgency)


def fresh_score(risk: float, qos: float, lift: float = 0.0) -> PriorityScore:
    """The score of a ticket that has not waited."""
    return PriorityScore(_value(risk, qos, lift, FRESH_URGENCY), risk, qos, lift, FRESH_URGENCY)


def score_of_priority(priority: int | None) -> PriorityScore:
    """The score of a task with a priority from 1 to 9; None: the usual one."""
    weight = _WEIGHTS[(priority or USUAL_PRIORITY) - 1]
    return fresh_score(weight, weight)


def priority_class(score: PriorityScore) -> Priority:
    """How important a ticket is, however long it waits: the priority that a plan of Fluxo C has, or the part of the
    priorities from 1 to 9 that a task's belongs to."""
    weight = score.risk + score.lift
    return next(name for name, least in _CLASSES if weight >= least)


def _value(risk: float, qos: float, lift: float, urgency: float) -> float:
    score = RISK_SHARE * risk + QOS_SHARE * qos + URGENCY_SHARE * urgency + PRIORITY_SHARE * lift
    return round(min(1.0, max(0.0, score)), 6)


def fresh_score_of(state: Orchestration, position: int, priority: int | None = None) -> PriorityScore:
    """How urgent a ticket is when it is released: by `priority`, or that which an operator gave its orchestration, else
    as its plan says."""
    given = state.priority if priority is None else priority
    return state.plan.profile.score_of(position) if given is None else score_of_priority(given)


def ticket_score(state: Orchestration, position: int, now: datetime | None = None) -> PriorityScore:
    """How urgent a ticket was when it was sent; before that, how urgent it is at `now`, or was when it was released.
    Another attempt begins anew."""
    ticket, fresh = state.tickets[position], fresh_score_of(state, position)
    since = ticket.dispatched_at if ticket.attempt == 1 else None
    at = ticket.started_at or now
    if since is None or at is None:
        return fresh
    return fresh.at_urgency(urgency(since, since + state.plan.tasks[position].timeout, at))
