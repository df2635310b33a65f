"""What Fluxo C adds to general documents; nothing where a plan is not of Fluxo C."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from oraculo.core.flow import outcome, score_sentences
from oraculo.core.flow.profile import Flow, flow_in
from oraculo.core.plan import Plan
from oraculo.core.priority import PriorityScore, ticket_score
from oraculo.core.sentences import DEFAULT_LANGUAGE, Language
from oraculo.core.state import Orchestration
from oraculo.core.ticket_id import ticket_id


def of_result(state: Orchestration, now: datetime) -> dict[str, Any]:
    """The consolidated result of C5, under its name."""
    return {} if flow_in(state.plan) is None else {"fluxo_c": outcome.consolidated(state, now)}


def of_orchestration(state: Orchestration, language: Language = DEFAULT_LANGUAGE) -> dict[str, Any] | None:
    """What a plan is called by others, and where it stands."""
    one = flow_in(state.plan)
    if one is None:
        return None
    return {
        "workflow_id": one.workflow_id,
        "plan_id": one.plan_id,
        "intent_id": one.intent_id,
        "decision_id": one.decision_id or None,
        "correlation_id": one.correlation_id,
        "risk_band": one.risk_band,
        "priority": one.priority,
        **({} if one.score is None else _score(one, one.score, language)),
        "aguarda_aprovacao": state.awaits_approval,
        "decidido_por": state.approved_by,
        "compensacao": state.undo_reason,
    }


def of_ticket(state: Orchestration, position: int, language: Language = DEFAULT_LANGUAGE) -> dict[str, Any]:
    """What a ticket is in Fluxo C, under its name."""
    flow = flow_in(state.plan)
    if flow is None:
        return {}
    spec = flow.specs[position]
    undone_by, undoes = state.undone.get(position), spec.compensates
    shown = {
        "task_id": spec.task_id,
        "task_type": spec.task_type,
        "description": spec.description,
        "status": outcome.ticket_status(state, position),
        "dependencies": [ticket_id(state.run, need) for need in spec.dependencies],
        "compensation_ticket_id": None if undone_by is None else ticket_id(state.run, undone_by),
        "original_ticket_id": None if undoes is None else ticket_id(state.run, undoes),
    }
    if flow.score is not None:
        shown |= _score(flow, ticket_score(state, position), language)
    return {"fluxo_c": shown}


def of_plan(plan: Plan) -> dict[str, Any]:
    """What the event that began an orchestration tells of its plan."""
    flow = flow_in(plan)
    return {} if flow is None or flow.score is None else {"priority_score": flow.score.value}


def _score(flow: Flow, score: PriorityScore, language: Language) -> dict[str, Any]:
    """The score and what it is made of; left out where a journal of before has none."""
    explained = score_sentences.explain(score, flow.risk_band, flow.priority, language)
    return {"priority_score": score.value, "priority_score_explanation": explained}
