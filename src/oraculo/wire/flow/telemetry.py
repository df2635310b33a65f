"""What is told of plans of Fluxo C, event by event: telemetry, the frame at the end, incidents, requests for approval.

All of it is read from the journal, so a step says the same whenever it is read, and every message has an id of its own
by which a repeated one is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from oraculo.core import events as ev
from oraculo.core import sentences
from oraculo.core.consolidation import milliseconds as between
from oraculo.core.flow import outcome
from oraculo.core.flow.profile import Flow
from oraculo.core.state import Orchestration
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import Status
from oraculo.wire import strict_json, trace_context
from oraculo.wire.flow import approvals, schemas
from oraculo.wire.flow.instants import milliseconds
from oraculo.wire.flow.texts import texts

PARAMETERS = "parameters="  # begins the detail that holds those of a playbook, as JSON
APPROVAL_REQUEST = "ApprovalRequest"  # no record of its own: in Avro it is a CognitivePlan


@dataclass(frozen=True, slots=True)
class Told:
    """One message: which record it is, its value, its key, and the id by which a repeated one is known."""

    record: str
    value: dict[str, Any]
    key: str
    message_id: str


def tell(state: Orchestration, first: int, at: datetime, events: list[ev.Event]) -> Iterator[Told]:
    """Everything that one step of the journal is worth telling, in order. `state` is as it is after the step."""
    flow = outcome.flow_of(state)
    for number, event in enumerate(events, first):
        for part, (record, value, key) in enumerate(_of(state, flow, event, at)):
            yield Told(record, value, key, f"{state.run:x}.{number}.{part}")


def _of(state: Orchestration, flow: Flow, event: ev.Event, at: datetime) -> Iterator[tuple[str, dict[str, Any], str]]:
    def said(event_type: str, **more: Any) -> tuple[str, dict[str, Any], str]:
        return schemas.TELEMETRY_EVENT, _event(state, flow, event_type, at, **more), flow.plan_id

    match event:
        case ev.OrchestrationStarted():
            yield said("FLOW_C_STARTED", metadata={"tickets": len(event.plan.tasks), "risk_band": flow.risk_band.value})
            made = [ticket_id(state.run, position) for position in range(len(event.plan.tasks))]
            yield said("STEP_COMPLETED", step="C1", success=True)
            yield said("STEP_COMPLETED", step="C2", success=True, ticket_ids=made)
            yield said("STEP_COMPLETED", step="C3", success=True)
        case ev.ApprovalAsked():
            yield APPROVAL_REQUEST, approvals.request(flow, at), flow.plan_id
        case ev.TicketsDispatched(positions, attempt):
            for position in positions:
                yield said("TICKET_ASSIGNED", **_ticket(state, flow, position), metadata={"attempt": attempt})
        case ev.TicketConcluded(position):
            yield said("TICKET_COMPLETED", **_ticket(state, flow, position), status="COMPLETED", success=True)
        case ev.TicketFailed(position, attempt, status):
            error = sentences.message(sentences.errors_said(event))
            yield said("TICKET_FAILED", **_ticket(state, flow, position), **_failure(status, error))
            if status is Status.TIMEOUT:
                yield said("SLA_VIOLATION", **_ticket(state, flow, position), sla_compliant=False)
        case ev.TicketsClosed(positions, status, reason):
            for position in positions:
                yield said("TICKET_FAILED", **_ticket(state, flow, position), **_failure(status, sentences.say(reason)))
        case ev.CompensationStarted(undone, why):
            ids = [ticket_id(state.run, position) for position in undone]
            yield said("STEP_STARTED", step="C5", ticket_ids=ids, metadata={"compensation": why})
        case ev.OrchestrationClosed():
            yield from _closed(state, flow, at)
        case _:
            pass


def _closed(state: Orchestration, flow: Flow, at: datetime) -> Iterator[tuple[str, dict[str, Any], str]]:
    good = state.status is Status.CONCLUIDA
    word = outcome.overall(state)
    judged = outcome.sla(state, at)

    def said(event_type: str, **more: Any) -> tuple[str, dict[str, Any], str]:
        return schemas.TELEMETRY_EVENT, _event(state, flow, event_type, at, **more), flow.plan_id

    done = "STEP_COMPLETED" if good else "STEP_FAILED"
    yield said(done, step="C4", success=good, duration_ms=between(state.started_at, at))
    yield said("STEP_COMPLETED", step="C5", success=True, status=word)
    for incident in outcome.incidents(state):
        yield schemas.INCIDENT, incident_record(state, incident, at), incident.incident_id
    yield schemas.TELEMETRY_FRAME, frame(state, at), flow.plan_id
    yield said("STEP_COMPLETED", step="C6", success=True)
    yield said(
        "FLOW_C_COMPLETED",
        status=word,
        success=good,
        duration_ms=between(state.started_at, at),
        sla_compliant=not judged["violations_count"] and state.status is not Status.TIMEOUT,
        ticket_ids=[ticket_id(state.run, position) for position in range(len(state.tickets))],
        result=texts(outcome.metrics(state)),
    )


def frame(state: Orchestration, at: datetime) -> dict[str, Any]:
    """The telemetry frame of C6 as it travels."""
    flow, found = outcome.flow_of(state), outcome.frame(state, at)
    found["timestamp"] = milliseconds(at)
    found["correlation"] |= {"decision_id": flow.decision_id or None, "trace_id": _trace(state, flow)[0]}
    return {**found, "schema_version": 1}


def _event(state: Orchestration, flow: Flow, event_type: str, at: datetime, **more: Any) -> dict[str, Any]:
    trace, span = _trace(state, flow)
    empty = dict.fromkeys(
        ("step", "ticket_id", "task_type", "worker_id", "duration_ms", "status", "success", "sla_compliant", "error",
         "error_type", "result")
    )  # fmt: skip
    return {
        "event_type": event_type,
        "timestamp": milliseconds(at),
        "intent_id": flow.intent_id,
        "plan_id": flow.plan_id,
        "decision_id": flow.decision_id or None,
        "workflow_id": flow.workflow_id,
        "correlation_id": flow.correlation_id,
        "trace_id": trace,
        "span_id": span,
        **empty,
        "ticket_ids": [],
        "metadata": {},
        "schema_version": 1,
        **more,
    }


def _trace(state: Orchestration, flow: Flow) -> tuple[str | None, str | None]:
    """Of the decision, where it has one; else that of the orchestration."""
    if flow.trace_id is not None or state.traceparent is None:
        return flow.trace_id, flow.span_id
    return trace_context.trace_id(state.traceparent), trace_context.span_id(state.traceparent)


def _ticket(state: Orchestration, flow: Flow, position: int) -> dict[str, Any]:
    one = state.tickets[position]
    answered = strict_json.loads_trusted(one.dados) if one.dados != b"null" else None
    worker = answered.get("agent_id") if isinstance(answered, dict) else None
    return {
        "step": "C5" if state.undoes and position >= state.undoes else "C4",
        "ticket_id": ticket_id(state.run, position),
        "task_type": flow.specs[position].task_type.value,
        "worker_id": worker if isinstance(worker, str) else None,
        "duration_ms": between(one.dispatched_at, one.closed_at),
    }


def _failure(status: Status, text: str) -> dict[str, Any]:
    return {"status": "FAILED", "success": False, "error": text, "error_type": status.value}


def incident_record(state: Orchestration, found: outcome.Incident, at: datetime) -> dict[str, Any]:
    """An incident as it travels. Its record has no field for what a playbook needs: that is the last of its details."""
    flow, parameters = outcome.flow_of(state), outcome.playbook_parameters(state, found, at)
    value: dict[str, Any] = {
        "incident_id": found.incident_id,
        "workflow_id": flow.workflow_id,
        "incident_type": found.incident_type.value,
        "severity": found.severity,
        "details": [*found.details, f"{PARAMETERS}{strict_json.canonical(parameters).decode()}"],
        "affected_tickets": list(found.affected),
        "correlation_id": flow.correlation_id,
        "trace_id": _trace(state, flow)[0] or "",
        "recommended_playbook": outcome.PLAYBOOKS[found.incident_type],
        "auto_remediation_enabled": outcome.PLAYBOOKS[found.incident_type] is not None,
        "escalation_required": found.escalation_required,
        "created_at": milliseconds(at),
    }
    return {**value, "hash": sha256(strict_json.canonical(value)).hexdigest()}
