"""A ticket of Fluxo C as the outside reads it: the ExecutionTicket record, and how it was allocated."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from oraculo.core import allocation as c3
from oraculo.core import compensation, ticket
from oraculo.core.flow import Spec
from oraculo.core.state import Orchestration, Ticket
from oraculo.core.ticket_id import ticket_id
from oraculo.core.verdict import actual_duration_ms, answered, flow_of, ticket_status
from oraculo.core.vocabulary import Phase, Status
from oraculo.wire import strict_json, trace_context
from oraculo.wire.flow.instants import milliseconds, optional
from oraculo.wire.flow.texts import texts

GENERATED_BY = "oraculo"
SCHEMA_VERSION = 1
_MS = timedelta(milliseconds=1)


def execution_ticket(state: Orchestration, position: int, now: datetime) -> dict[str, Any]:
    """The record of the ticket at `position`, as it stands now."""
    flow, task, one = flow_of(state), state.plan.tasks[position], state.tickets[position]
    spec = flow.specs[position]
    undoing = state.undone.get(position)
    qos = ticket.qos(flow.risk_band)
    return {
        "ticket_id": ticket_id(state.run, position),
        "plan_id": flow.plan_id,
        "intent_id": flow.intent_id,
        "decision_id": flow.decision_id,
        "correlation_id": flow.correlation_id,
        **_trace(state, position),
        "task_id": spec.task_id,
        "task_type": spec.task_type.value,
        "description": spec.description,
        "dependencies": [ticket_id(state.run, need) for need in spec.dependencies],
        "status": ticket_status(state, position).value,
        "priority": flow.priority.value,
        "risk_band": flow.risk_band.value,
        "sla": {
            "deadline": milliseconds(_deadline(state, position, now)),
            "timeout_ms": task.timeout // _MS,
            "max_retries": task.max_attempts - 1,
        },
        "qos": {
            "delivery_mode": qos.delivery_mode,
            "consistency": qos.consistency,
            "durability": qos.durability,
        },
        "parameters": _parameters(state, position, spec),
        "required_capabilities": list(spec.capabilities),
        "security_level": flow.security_level.value,
        **_times(state, one),
        "estimated_duration_ms": spec.estimated_ms,
        "actual_duration_ms": actual_duration_ms(one),
        "retry_count": max(one.attempt - 1, 0),
        "error_message": _error(one),
        "compensation_ticket_id": None if undoing is None else ticket_id(state.run, undoing),
        "metadata": {
            **texts(strict_json.loads_trusted(spec.metadata)),
            "workflow_id": flow.workflow_id,
            "generated_by": GENERATED_BY,
            "attempt": str(one.attempt),
        },
        "schema_version": SCHEMA_VERSION,
    }


def allocation(state: Orchestration, position: int, now: datetime) -> dict[str, Any]:
    """What is kept beside the record. Workers take tickets themselves, so none is compared with others."""
    flow, task, one = flow_of(state), state.plan.tasks[position], state.tickets[position]
    created = _created(state, one)
    score = c3.priority_score(flow.risk_band, ticket.qos(flow.risk_band), created, created + task.timeout, now)
    return {
        "allocated_at": optional(one.dispatched_at),
        "agent_id": answered(one).get("agent_id"),
        "agent_type": "WORKER",
        "priority_score": round(score, 6),
        "agent_score": None,
        "composite_score": None,
        "allocation_method": "intelligent_scheduler",
        "workers_evaluated": 0,
        "ml_optimization_attempted": False,
        "predicted_duration_ms": None,
        "predicted_queue_ms": None,
        "predicted_load_pct": None,
        "ml_enriched": False,
        "anomaly_detected": False,
        "anomaly_type": None,
        "anomaly_score": None,
    }


def _created(state: Orchestration, one: Ticket) -> datetime:
    return one.dispatched_at or state.started_at


def _deadline(state: Orchestration, position: int, now: datetime) -> datetime:
    """Of the whole ticket; an attempt after the first has its own, or whoever gets it would be too late already."""
    one, timeout = state.tickets[position], state.plan.tasks[position].timeout
    if one.attempt > 1 and one.phase is Phase.RUNNING and one.due_at is not None:
        return one.due_at
    return now + timeout if one.attempt > 1 and one.phase is Phase.OWED else _created(state, one) + timeout


def _times(state: Orchestration, one: Ticket) -> dict[str, int | None]:
    """What has ended has ended after it began, if only by a millisecond."""
    started, completed = optional(one.started_at), optional(one.closed_at)
    if started is not None and completed is not None:
        completed = max(completed, started + 1)
    return {"created_at": milliseconds(_created(state, one)), "started_at": started, "completed_at": completed}


def _trace(state: Orchestration, position: int) -> dict[str, str | None]:
    """Of the decision, where it has one; else that of the orchestration."""
    flow, context, attempt = flow_of(state), state.traceparent, state.tickets[position].attempt
    if flow.trace_id is not None or context is None:
        return {"trace_id": flow.trace_id, "span_id": flow.span_id}
    span = trace_context.attempt_span(state.run, position, attempt) if attempt else trace_context.span_id(context)
    return {"trace_id": trace_context.trace_id(context), "span_id": span}


def _parameters(state: Orchestration, position: int, spec: Spec) -> dict[str, str]:
    given = texts(strict_json.loads_trusted(state.plan.tasks[position].parametros))
    if spec.compensates is None:
        return given
    undone = flow_of(state).specs[spec.compensates]
    return {
        **given,
        "original_ticket_id": ticket_id(state.run, spec.compensates),
        "action": compensation.action_of(undone.task_type),
        "reason": state.undo_reason or compensation.TASK_FAILED,
    }


def _error(one: Ticket) -> str | None:
    if one.status is Status.CONCLUIDA:
        return None
    said = "; ".join(str(erro.get("mensagem") or erro.get("codigo")) for erro in one.erros or ())
    return said or one.reason
