"""Asking a human about a plan, and the answer.

The original's approval service reads a request as JSON where there is no schema registry, and as a CognitivePlan in
Avro where there is one; so it is written in both forms. Its models refuse null: what a plan did not say is left out of
JSON, and in Avro it is the schema's default, or empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from oraculo.core.commands import Approve
from oraculo.core.flow.profile import Flow
from oraculo.errors import WireError
from oraculo.wire import strict_json
from oraculo.wire.flow import schemas
from oraculo.wire.flow.instants import milliseconds
from oraculo.wire.flow.texts import text_of

MAX_NAME = 200
MAX_REASON = 1000
DEFAULT_DOMAIN = "OPERATIONAL"  # of a plan that names none; the schema has no word for that
_TOLD = ("risk_score", "is_destructive", "destructive_tasks", "risk_matrix")
_REASONS = ("rejection_reason", "reason", "comments")  # the first that says something counts
_ZERO: dict[str, Any] = {"string": "", "boolean": False, "int": 0, "long": 0, "float": 0.0, "double": 0.0, "null": None}
_BITS = {"int": 32, "long": 64}


def request(flow: Flow, at: datetime) -> dict[str, Any]:
    """The question as JSON has it."""
    document = strict_json.loads_trusted(flow.document)
    told = {name: document[name] for name in _TOLD if document.get(name) is not None}
    return {
        "plan_id": flow.plan_id,
        "intent_id": flow.intent_id,
        "decision_id": flow.decision_id or None,
        "correlation_id": flow.correlation_id,
        "risk_band": flow.risk_band.value,
        **told,
        "cognitive_plan": document,
        "requested_at": milliseconds(at),
        "status": "pending",
    }


def plan_record(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The same question as a CognitivePlan, every field of it."""
    known = {
        "created_at": asked["requested_at"],
        "original_domain": DEFAULT_DOMAIN,
        **{name: item for name, item in asked["cognitive_plan"].items() if item is not None},
        **{name: asked[name] for name in ("plan_id", "intent_id", "correlation_id", "risk_band")},
        "requires_approval": True,
        "approval_status": "pending",
    }
    found: dict[str, Any] = _fitted(schemas.schema(schemas.COGNITIVE_PLAN), known)
    return found


def answer(value: Mapping[str, Any]) -> tuple[str, Approve]:
    """The plan that an answer is about, and what it says. WireError when it says neither yes nor no."""
    plan_id = value.get("plan_id")
    if not isinstance(plan_id, str) or not plan_id:
        raise WireError("missing_field", "an approval is an object with plan_id and decision")
    said = str(value.get("decision") or value.get("status") or "").lower()
    if said not in ("approved", "rejected"):
        raise WireError("invalid_field", f"decision is {said[:40]!r}; allowed: approved, rejected")
    reason = next((text for name in _REASONS if (text := text_of(value.get(name)).strip())), "")
    by = text_of(value.get("approved_by"))
    return plan_id, Approve(said == "approved", by[:MAX_NAME], reason[:MAX_REASON])


def _fitted(schema: Any, value: Any) -> Any:
    """A value as a schema wants it, and nothing where there is none of that type."""
    if isinstance(schema, str):
        return _simple(schema, value)
    if isinstance(schema, list):
        return None if value is None else _fitted(next(branch for branch in schema if branch != "null"), value)
    match schema["type"]:
        case "record":
            given = value if isinstance(value, dict) else {}
            return {field["name"]: _field(field, given.get(field["name"])) for field in schema["fields"]}
        case "enum":
            symbols: dict[str, str] = {symbol.lower(): symbol for symbol in schema["symbols"]}
            return symbols.get(str(value).lower(), schema["symbols"][0])
        case "array":
            return [_fitted(schema["items"], item) for item in value] if isinstance(value, list) else []
        case _:
            return (
                {key: _fitted(schema["values"], item) for key, item in value.items()} if isinstance(value, dict) else {}
            )


def _field(field: Mapping[str, Any], value: Any) -> Any:
    if value is None and "default" in field:
        return field["default"]
    return _fitted(field["type"], value)


def _simple(kind: str, value: Any) -> Any:
    if kind == "string":
        return text_of(value)
    if kind == "boolean":
        return value is True
    if type(value) not in (int, float):
        return _ZERO[kind]
    if kind in ("float", "double"):
        return float(value)
    return int(value) if kind in _BITS and abs(int(value)) < 2 ** (_BITS[kind] - 1) else _ZERO[kind]
