"""A ConsolidatedDecision, or a CognitivePlan that came by itself → what the core decides about (C0)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError

from oraculo.core.flow.cognitive import CognitivePlan
from oraculo.core.flow.decision import Decision, FinalDecision
from oraculo.errors import WireError
from oraculo.wire import requests, strict_json
from oraculo.wire.flow import plans
from oraculo.wire.flow.codec import MAX_BYTES
from oraculo.wire.flow.plans import Id, Instant, Model

INVALID = "invalid_decision"
PLAN = "cognitive_plan"
_SHARED = ("plan_id", "intent_id", "correlation_id", "trace_id", "span_id")  # what a plan takes from its decision


def _lower(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


class Document(Model):
    decision_id: Id
    plan_id: Id
    final_decision: Annotated[Literal["approve", "reject", "review_required", "conditional"], BeforeValidator(_lower)]
    intent_id: Id | None = None
    correlation_id: Id | None = None
    trace_id: Id | None = None
    span_id: Id | None = None
    requires_human_review: Annotated[bool, Field(strict=True)] = False
    reasoning_summary: Annotated[str, Field(max_length=100_000, strict=True)] = ""
    valid_until: Instant | None = None


def decision_of(value: Any) -> Decision:
    """WireError `invalid_decision` or `invalid_plan`, with the place of every fault."""
    if not isinstance(value, Mapping):
        raise WireError(
            INVALID, "a decision or a plan is a JSON object", [_fault("(corpo)", "a JSON object is needed")]
        )
    if value.get("decision_id") is None and value.get("final_decision") is None:
        if "tasks" in value or PLAN in value:
            return _by_itself(value)
        raise WireError(
            INVALID,
            "neither a decision (decision_id, plan_id, final_decision) nor a plan (tasks)",
            [{"campo": "decision_id", "mensagem": "required"}],
        )
    try:
        found = Document.model_validate({key: item for key, item in value.items() if item is not None and item != ""})
    except ValidationError as error:
        raise requests.invalid(error, INVALID) from None
    content = value.get(PLAN)
    final = FinalDecision(found.final_decision)
    plan: CognitivePlan | None = None
    if content is not None and content != "":
        plan, document = _plan(content, found)
        if document.rejected:
            final = FinalDecision.REJECT
    return Decision(
        plan,
        found.plan_id,
        found.intent_id or (plan.intent_id if plan is not None else ""),
        found.decision_id,
        final,
        found.requires_human_review,
        found.correlation_id or (plan.correlation_id if plan is not None else None),
        found.valid_until,
        found.reasoning_summary,
    )


def plan_document(value: Mapping[str, Any]) -> CognitivePlan:
    """A plan by itself. WireError `invalid_plan` with the place of every fault."""
    return plans.plan_of(_flat(value, ()))[0]


def _by_itself(value: Mapping[str, Any]) -> Decision:
    plan, document = plans.plan_of(_flat(value, ()))
    final = FinalDecision.REJECT if document.rejected else FinalDecision.APPROVE
    return Decision(plan, plan.plan_id, plan.intent_id, final_decision=final, correlation_id=plan.correlation_id)


def _plan(content: Any, decision: Document) -> tuple[CognitivePlan, plans.Document]:
    given = _flat(_object(content, (PLAN,)), (PLAN,))
    shared = {name: getattr(decision, name) for name in _SHARED}
    plan, document = plans.plan_of(given, shared, decision_id=decision.decision_id, under=(PLAN,))
    if plan.plan_id != decision.plan_id:
        raise WireError(
            INVALID,
            f"the decision is about plan {decision.plan_id!r} and carries plan {plan.plan_id!r}",
            [{"campo": f"{PLAN}.plan_id", "mensagem": "differs from plan_id of the decision"}],
        )
    return plan, document


def _flat(value: Mapping[str, Any], under: tuple[str, ...]) -> Mapping[str, Any]:
    """Some producers put the plan one level deeper than where it belongs."""
    if "tasks" in value or value.get(PLAN) is None:
        return value
    inner = _object(value[PLAN], (*under, PLAN))
    return {**{key: item for key, item in value.items() if key != PLAN}, **inner}


def _object(content: Any, under: tuple[str, ...]) -> dict[str, Any]:
    """A plan is an object, or one as JSON text."""
    where = ".".join(under)
    if isinstance(content, str):
        try:
            content = strict_json.loads(content.encode(), max_bytes=MAX_BYTES)
        except WireError as error:
            raise WireError(plans.INVALID, f"{where}: {error.detail}", [_fault(where, error.detail)]) from None
    if not isinstance(content, dict):
        raise WireError(plans.INVALID, f"{where}: a JSON object is needed", [_fault(where, "a JSON object is needed")])
    return content


def _fault(where: str, what: str) -> dict[str, str]:
    return {"campo": where, "mensagem": what}
