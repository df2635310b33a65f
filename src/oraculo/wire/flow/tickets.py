"""A ticket of Fluxo C as the outside reads it: the ExecutionTicket record, and how it was allocated."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from oraculo.core import sentences
from oraculo.core.flow import score_sentences, service_levels
from oraculo.core.flow.outcome import actual_duration_ms, answered, flow_of, ticket_status
from oraculo.core.flow.profile import Spec
from oraculo.core.priority import ticket_score
from oraculo.core.state import Orchestration
from oraculo.core.ticket_id import ticket_id
from oraculo.core.ticket_state import Ticket
from oraculo.core.vocabulary import Phase, Status, UndoCause
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
    qos = service_levels.qos(flow.risk_band)
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
            **_score(state, position, now),
        },
        "schema_version": SCHEMA_VERSION,
    }


def allocation(state: Orchestration, position: int, now: datetime) -> dict[str, Any]:
    """What is kept beside the record, under the original's names. Without a scheduler workers take tickets themselves:
    what would be a decision about workers is null, because none was taken."""
    flow, one = flow_of(state), state.tickets[position]
    score = ticket_score(state, position, now)
    chosen = None if one.allocated is None else one.allocated.allocation
    return {
        "allocated_at": None if one.allocated is None else milliseconds(one.allocated.at),
        "agent_id": answered(one).get("agent_id") or (None if chosen is None else chosen.agent_id),
        "agent_type": None,
        "priority_score": score.value,
        "priority_score_parts": {
            "risk": score.risk,
            "qos": score.qos,
            "urgency": score.urgency,
            "priority": score.lift,
        },
        "priority_score_explanation": score_sentences.explain(score, flow.risk_band, flow.priority, "en"),
        "agent_score": None if chosen is None else chosen.agent_score,
        "composite_score": None if chosen is None else chosen.composite_score,
        "allocation_method": None if chosen is None else chosen.method.value,
        "workers_evaluated": None if chosen is None else chosen.evaluated,
        "ml_optimization_attempted": False,
        "predicted_duration_ms": None,
        "predicted_queue_ms": None,
        "predicted_load_pct": None,
        "ml_enriched": False,
        "anomaly_detected": None,
        "anomaly_type": None,
        "anomaly_score": None,
    }


def _score(state: Orchestration, position: int, now: datetime) -> dict[str, str]:
    """The score, where the record has a place for texts of any kind; a plan of before has none recorded."""
    flow = flow_of(state)
    if flow.score is None:
        return {}
    score = ticket_score(state, position, now)
    return {
        "priority_score": str(score.value),
        "priority_score_explanation": score_sentences.explain(score, flow.risk_band, flow.priority, "en"),
    }


def _created(state: Orchestration, one: Ticket) -> datetime:
    return one.dispatched_at or state.started_at


def _deadline(state: Orchestration, position: int, now: datetime) -> datetime:
    """The deadline of the whole ticket; an attempt after the first has its own, or it would be too late already."""
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
        "action": undone.undo,
        "reason": state.undo_reason or UndoCause.TASK_FAILED.value,
    }


def _error(one: Ticket) -> str | None:
    if one.status is Status.CONCLUIDA:
        return None
    return sentences.message(sentences.errors_of(one)) or sentences.say_optional(one.reason)
