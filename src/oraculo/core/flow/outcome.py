"""C5 and C6 of Fluxo C: what came of a plan as a whole, judged from its final state.

`consolidated` is the result document, `frame` the telemetry of it, `incidents` what an operator should look at. They
are readings of a state: the same state gives the same documents, however often they are made.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from oraculo.core.consolidation import milliseconds
from oraculo.core.flow.profile import Flow, flow_in
from oraculo.core.sentences import errors_of, say_optional
from oraculo.core.state import Orchestration
from oraculo.core.ticket_id import ticket_id
from oraculo.core.ticket_state import Ticket
from oraculo.core.vocabulary import Phase, Status, TicketStatus

DEADLINE_WARNING_SHARE = 0.8  # share of the time that is used up: the deadline approaches
BUDGET_CRITICAL_SHARE = 0.2  # share that is left
BUDGET_WARNING_SHARE = 0.5
FRAME_SOURCE = "oraculo"
_POLL_SECONDS_BY_SHARE = ((0.25, 10), (0.5, 20), (0.75, 40))  # share that is done, seconds below it
_POLL_MAX_SECONDS = 60


class IncidentType(StrEnum):
    INCONSISTENCY = "INCONSISTENCY"
    SLA_VIOLATION = "SLA_VIOLATION"
    TICKET_TIMEOUT = "TICKET_TIMEOUT"
    WORKER_FAILURE = "WORKER_FAILURE"


PLAYBOOKS: dict[IncidentType, str | None] = {
    IncidentType.TICKET_TIMEOUT: "ticket_timeout_recovery",
    IncidentType.WORKER_FAILURE: "worker_failure_recovery",
    IncidentType.SLA_VIOLATION: "sla_violation_mitigation",
    IncidentType.INCONSISTENCY: None,
}
_CRITICAL_INCIDENTS = frozenset((IncidentType.SLA_VIOLATION, IncidentType.WORKER_FAILURE))
_INCIDENT_TYPES = list(IncidentType)
_INCIDENT_POSITION = 2**32 - 2  # positions from here down are no task's: ids of what is not a ticket
_OVERALL_STATUS = {Status.CONCLUIDA: "SUCCESS", Status.PARCIAL: "PARTIAL"}


@dataclass(frozen=True, slots=True)
class Incident:
    """`incident_id` is the same whenever the same incident is seen again."""

    incident_id: str
    incident_type: IncidentType
    details: tuple[str, ...]
    affected: tuple[str, ...]  # ticket ids
    positions: tuple[int, ...] = ()  # of the same tickets

    @property
    def severity(self) -> str:
        return "CRITICAL" if self.incident_type in _CRITICAL_INCIDENTS else "WARNING"

    @property
    def escalation_required(self) -> bool:
        return self.incident_type in _CRITICAL_INCIDENTS


def flow_of(state: Orchestration) -> Flow:
    """What the plan is in Fluxo C; ValueError for any other plan."""
    flow = flow_in(state.plan)
    if flow is None:
        raise ValueError(f"{state.correlation_id} is not an orchestration of Fluxo C")
    return flow


def ticket_status(state: Orchestration, position: int) -> TicketStatus:
    """As Fluxo C calls it. A ticket that was cancelled failed: its reason says why. One that could not be undone is
    what it was before."""
    ticket = state.tickets[position]
    if position in state.undone:
        undoing = state.tickets[state.undone[position]]
        if undoing.phase is not Phase.CLOSED:
            return TicketStatus.COMPENSATING
        if undoing.status is Status.CONCLUIDA:
            return TicketStatus.COMPENSATED
    if ticket.status is Status.CONCLUIDA:
        return TicketStatus.COMPLETED
    if ticket.phase is Phase.CLOSED:
        return TicketStatus.FAILED
    return TicketStatus.RUNNING if ticket.phase is Phase.RUNNING else TicketStatus.PENDING


def answered(ticket: Ticket) -> dict[str, Any]:
    """What the last answer held."""
    found = json.loads(ticket.dados)
    return found if isinstance(found, dict) else {}


def actual_duration_ms(ticket: Ticket) -> int | None:
    """What the worker said, else the time between start and end."""
    said = answered(ticket).get("actual_duration_ms")
    return said if type(said) is int else milliseconds(ticket.started_at or ticket.dispatched_at, ticket.closed_at)


def actual_ms(state: Orchestration, position: int) -> int:
    """How long a ticket took; its estimate when it never started."""
    taken = actual_duration_ms(state.tickets[position])
    return flow_of(state).specs[position].estimated_ms if taken is None else taken


def violated(state: Orchestration, position: int) -> bool:
    """It did not complete, and had more time than its service level allows."""
    ticket, task = state.tickets[position], state.plan.tasks[position]
    if ticket.status is Status.TIMEOUT:
        return True
    failed = ticket.status is Status.ERRO and ticket.attempt > 0
    return failed and actual_ms(state, position) > task.timeout / timedelta(milliseconds=1)


def overall(state: Orchestration) -> str:
    return _OVERALL_STATUS.get(state.status, "FAILED")


def integrity(state: Orchestration) -> list[str]:
    """What does not fit together, ticket by ticket."""
    found = []
    specs = flow_of(state).specs
    for position in range(state.asked):
        ticket, name = state.tickets[position], specs[position].task_id
        if ticket.phase is not Phase.CLOSED:
            found.append(f"{name} is not closed")
        if ticket.status is Status.CONCLUIDA:
            for need in specs[position].dependencies:
                if state.tickets[need].status is not Status.CONCLUIDA:
                    found.append(f"{name} completed although {specs[need].task_id} did not")
        if ticket.closed_at is not None and ticket.started_at is not None and ticket.closed_at < ticket.started_at:
            found.append(f"{name} completed before it started")
    return found


def _deadline(state: Orchestration) -> datetime:
    assert state.deadline is not None, "a plan of Fluxo C has a deadline"
    return state.deadline


def used_share(state: Orchestration, now: datetime) -> float:
    """The share of the whole plan's time that is used up."""
    whole = _deadline(state) - state.started_at
    return 1.0 if whole <= timedelta() else (now - state.started_at) / whole


def budget_status(left: float) -> str:
    if left <= 0:
        return "EXHAUSTED"
    return "CRITICAL" if left < BUDGET_CRITICAL_SHARE else "WARNING" if left < BUDGET_WARNING_SHARE else "HEALTHY"


def sla(state: Orchestration, now: datetime) -> dict[str, Any]:
    used = used_share(state, now)
    return {
        "deadline_approaching": used >= DEADLINE_WARNING_SHARE,
        "budget_critical": 1 - used < BUDGET_CRITICAL_SHARE,
        "violations_count": sum(violated(state, position) for position in range(state.asked)),
    }


def metrics(state: Orchestration) -> dict[str, int]:
    count = state.asked
    done = sum(1 for one in state.tickets[:count] if one.status is Status.CONCLUIDA)
    undone = sum(1 for one in state.tickets[count:] if one.status is Status.CONCLUIDA)
    return {
        "total_tickets": count,
        "successful_tickets": done,
        "failed_tickets": count - done,
        "compensated_tickets": undone,
        "total_duration_ms": milliseconds(state.started_at, state.closed_at) or 0,
        "total_retries": sum(max(0, one.attempt - 1) for one in state.tickets[:count]),
        "sla_violations": sum(violated(state, position) for position in range(count)),
    }


def consolidated(state: Orchestration, now: datetime) -> dict[str, Any]:
    """The result of C5, complete when the orchestration has ended."""
    flow = flow_of(state)
    errors = integrity(state) if state.closed_at is not None else []
    left = (_deadline(state) - now).total_seconds()
    return {
        "workflow_id": flow.workflow_id,
        "plan_id": flow.plan_id,
        "intent_id": flow.intent_id,
        "decision_id": flow.decision_id or None,
        "correlation_id": flow.correlation_id,
        "status": overall(state),
        "consistent": not errors,
        "errors": errors,
        "metrics": metrics(state),
        "tickets_summary": [
            {
                "ticket_id": ticket_id(state.run, position),
                "task_id": flow.specs[position].task_id,
                "status": ticket_status(state, position),
                "duration": milliseconds(state.tickets[position].dispatched_at, state.tickets[position].closed_at),
            }
            for position in range(state.asked)
        ],
        "sla_status": sla(state, now),
        "sla_remaining_seconds": max(0.0, left),
        "budget_status": budget_status(1 - used_share(state, now)),
        "consolidated_at": state.closed_at,
        "compensation_triggered": bool(state.undoes),
        "compensation_reason": state.undo_reason,
        "compensation_results": [
            {
                "ticket_id": ticket_id(state.run, position),
                "original_ticket_id": ticket_id(state.run, flow.specs[position].compensates or 0),
                "status": ticket_status(state, position),
            }
            for position in range(state.asked, len(state.tickets))
        ],
    }


def frame(state: Orchestration, now: datetime) -> dict[str, Any]:
    """The telemetry frame of C6: who belongs to whom, and how it went."""
    flow = flow_of(state)
    judged = sla(state, now)
    return {
        "correlation": {
            "intent_id": flow.intent_id,
            "plan_id": flow.plan_id,
            "workflow_id": flow.workflow_id,
            "correlation_id": flow.correlation_id,
            "ticket_ids": [ticket_id(state.run, position) for position in range(len(state.tickets))],
        },
        "metrics": {
            **metrics(state),
            "sla_metrics": {
                **judged,
                "remaining_seconds": max(0.0, (_deadline(state) - now).total_seconds()),
                "budget_status": budget_status(1 - used_share(state, now)),
            },
        },
        "status": overall(state),
        "timestamp": now,
        "source": FRAME_SOURCE,
    }


def incidents(state: Orchestration) -> list[Incident]:
    """At most one of each type, of a plan that has ended."""
    count = state.asked
    late = [p for p in range(count) if violated(state, p)]
    broken = [p for p in range(count) if state.tickets[p].status is Status.ERRO]
    silent = [p for p in range(count) if state.tickets[p].status is Status.TIMEOUT]
    found = []
    if integrity(state):
        found.append(_incident(state, IncidentType.INCONSISTENCY, integrity(state), []))
    if silent:
        found.append(_incident(state, IncidentType.TICKET_TIMEOUT, _said(state, silent), silent))
    if broken:
        found.append(_incident(state, IncidentType.WORKER_FAILURE, _said(state, broken), broken))
    if late or state.status is Status.TIMEOUT:
        whole = ["the deadline of the plan passed"] if state.status is Status.TIMEOUT else []
        found.append(_incident(state, IncidentType.SLA_VIOLATION, whole + _said(state, late), late))
    return found


def _said(state: Orchestration, positions: list[int]) -> list[str]:
    specs = flow_of(state).specs
    said = []
    for position in positions:
        ticket = state.tickets[position]
        erros = errors_of(ticket) or [{}]
        reason = erros[-1].get("mensagem") or say_optional(ticket.reason) or ticket.status.value
        said.append(f"{specs[position].task_id}: {reason}")
    return said


def _incident(state: Orchestration, kind: IncidentType, details: list[str], positions: list[int]) -> Incident:
    identity = ticket_id(state.run, _INCIDENT_POSITION - _INCIDENT_TYPES.index(kind))
    return Incident(identity, kind, tuple(details), tuple(ticket_id(state.run, p) for p in positions), tuple(positions))


def playbook_parameters(state: Orchestration, found: Incident, at: datetime) -> dict[str, str]:
    """What a playbook that heals needs, as far as it is known: the run, its first affected ticket with the agent of its
    last attempt, what was violated and by how much."""
    flow = flow_of(state)
    delay = milliseconds(_deadline(state), at) or 0
    known = {
        "incident_id": found.incident_id,
        "workflow_id": flow.workflow_id,
        "plan_id": flow.plan_id,
        "correlation_id": state.correlation_id,
        "violation_type": found.incident_type.value,
    }
    if found.positions:
        position = found.positions[0]
        task = state.plan.tasks[position]
        agent = answered(state.tickets[position]).get("agent_id")
        delay = max(delay, actual_ms(state, position) - round(task.timeout / timedelta(milliseconds=1)))
        known |= {
            "ticket_id": found.affected[0],
            "task_id": flow.specs[position].task_id,
            "service_name": task.name,
            "queue": task.queue,
            "attempts": str(state.tickets[position].attempt),
        }
        if isinstance(agent, str) and agent:
            known["worker_id"] = agent
    return {**known, "delay_ms": str(max(0, delay))}


def look_again_s(done: int, total: int) -> int:
    """The seconds after which to poll again, by how many tickets are done."""
    return next((wait for share, wait in _POLL_SECONDS_BY_SHARE if done < total * share), _POLL_MAX_SECONDS)
