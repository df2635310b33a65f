"""A CognitivePlan as it comes → the plan of the core. Tolerant where its producers differ, strict where it matters.

Whether it makes sense (cycles, expiry, unknown ids, ranges) is for core/flow/cognitive.py to say; here it is only read.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from oraculo.core.flow.cognitive import SCHEMA_VERSION, CognitivePlan, TaskNode
from oraculo.core.plan import MAX_TASKS
from oraculo.core.vocabulary import Priority, RiskBand, SecurityLevel
from oraculo.wire import names, requests, strict_json
from oraculo.wire.flow.instants import instant
from oraculo.wire.flow.texts import texts

INVALID = "invalid_plan"
MAX_ID = 128
MAX_TEXT = 10_000
WHOLE_END = 2**63
_OFF = ("off", "false", "no", "0")


def _whole(value: Any) -> Any:
    """A whole number of 64 bits, also as languages without integers write it."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not int or not -WHOLE_END <= value < WHOLE_END:
        raise ValueError("a whole number is needed")
    return value


def _whole_or_text(value: Any) -> Any:
    """Maps of texts hold numbers as texts."""
    if isinstance(value, str) and value.isascii() and value.removeprefix("-").isdigit() and len(value) < 20:
        return int(value)
    return _whole(value)


def _priority(value: Any) -> Any:
    """By name in either spelling, or by the number from 1 to 10 that older producers write."""
    text = value.strip().upper() if isinstance(value, str) else value
    if isinstance(text, str) and text.isascii() and text.isdigit():
        text = int(text)
    if type(text) is int:
        if text < 0:
            raise ValueError("a priority is not negative")
        return "LOW" if text <= 2 else "NORMAL" if text <= 5 else "HIGH" if text <= 8 else "CRITICAL"
    return "NORMAL" if text == "MEDIUM" else text


def _upper(value: Any) -> Any:
    return value.strip().upper() if isinstance(value, str) else value


def _lower(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


Id = Annotated[str, Field(min_length=1, max_length=MAX_ID, strict=True)]
Text = Annotated[str, Field(max_length=MAX_TEXT, strict=True)]
Whole = Annotated[int, BeforeValidator(_whole)]
WholeOrText = Annotated[int, BeforeValidator(_whole_or_text)]
Score = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
Instant = Annotated[datetime, BeforeValidator(instant)]
Worker = Annotated[str, Field(pattern=names.NAME_PATTERN)]


class Model(BaseModel):
    model_config = ConfigDict(extra="ignore")


class Task(Model):
    """Its own keys go before those of its metadata."""

    task_id: Id
    task_type: Annotated[str, Field(min_length=1, max_length=MAX_ID, strict=True)]
    description: Text = ""
    dependencies: Annotated[list[Id], Field(max_length=MAX_TASKS)] = Field(default_factory=list)
    estimated_duration_ms: Whole | None = None
    required_capabilities: Annotated[list[Id], Field(max_length=1000)] = Field(default_factory=list)
    parameters: dict[str, Any] = Field(default_factory=dict)
    metadata: dict[str, Any] = Field(default_factory=dict)
    timeout_ms: WholeOrText | None = None
    max_retries: WholeOrText | None = None
    worker: Worker | None = None

    @model_validator(mode="before")
    @classmethod
    def _overrides(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        found = {key: item for key, item in value.items() if item is not None}
        said = found.get("metadata")
        metadata = said if isinstance(said, dict) else {}
        for name, others in (("timeout_ms", ()), ("max_retries", ()), ("worker", ("executador",))):
            for source in (found, metadata):
                first = next((source[key] for key in (name, *others) if source.get(key) not in (None, "")), None)
                if first is not None:
                    found[name] = first
                    break
        return found

    def node(self) -> TaskNode:
        return TaskNode(
            self.task_id,
            self.task_type,
            self.description,
            tuple(self.dependencies),
            self.estimated_duration_ms,
            tuple(self.required_capabilities),
            strict_json.compact(self.parameters),
            strict_json.compact(texts(self.metadata)),
            self.timeout_ms,
            self.max_retries,
            self.worker,
        )


class Document(Model):
    """`priority` and `security_level` are what older producers call them."""

    plan_id: Id
    intent_id: Id
    tasks: Annotated[list[Task], Field(max_length=MAX_TASKS)]
    execution_order: Annotated[list[Id], Field(max_length=MAX_TASKS)]
    risk_band: Annotated[Literal["low", "medium", "high", "critical"], BeforeValidator(_lower)]
    correlation_id: Id | None = None
    trace_id: Id | None = None
    span_id: Id | None = None
    risk_score: Score | None = None
    complexity_score: Score | None = None
    status: Literal["draft", "validated", "approved", "rejected"] = "draft"
    valid_until: Instant | None = None
    original_priority: Annotated[Literal["LOW", "NORMAL", "HIGH", "CRITICAL"], BeforeValidator(_priority)] | None = None
    original_security_level: (
        Annotated[Literal["PUBLIC", "INTERNAL", "CONFIDENTIAL", "RESTRICTED"], BeforeValidator(_upper)] | None
    ) = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    requires_approval: Annotated[bool, Field(strict=True)] = False
    approval_status: Literal["pending", "approved", "rejected"] | None = None
    schema_version: Whole = SCHEMA_VERSION

    @model_validator(mode="before")
    @classmethod
    def _older_names(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        found = {key: item for key, item in value.items() if item is not None and item != ""}
        for name, older in (("original_priority", "priority"), ("original_security_level", "security_level")):
            if name not in found and older in found:
                found[name] = found[older]
        return found

    @property
    def rejected(self) -> bool:
        return "rejected" in (self.status, self.approval_status)

    @property
    def compensates(self) -> bool:
        return str(self.metadata.get("compensation", "on")).strip().lower() not in _OFF


def read(value: Mapping[str, Any], under: tuple[str, ...] = ()) -> Document:
    try:
        return Document.model_validate(value)
    except ValidationError as error:
        raise requests.invalid(error, INVALID, under) from None


def plan_of(
    value: Mapping[str, Any],
    shared: Mapping[str, Any] = {},
    *,
    decision_id: str = "",
    under: tuple[str, ...] = (),
) -> tuple[CognitivePlan, Document]:
    """The plan, and how it was read. What it does not say is taken from `shared`. WireError `invalid_plan` lists every
    fault; `under` says where in the message the plan was."""
    missing = {name: item for name, item in shared.items() if item and not value.get(name)}
    found = read({**value, **missing} if missing else value, under)
    plan = CognitivePlan(
        plan_id=found.plan_id,
        intent_id=found.intent_id,
        tasks=tuple(task.node() for task in found.tasks),
        execution_order=tuple(found.execution_order),
        risk_band=RiskBand(found.risk_band),
        decision_id=decision_id,
        correlation_id=found.correlation_id,
        trace_id=found.trace_id,
        span_id=found.span_id,
        priority=None if found.original_priority is None else Priority(found.original_priority),
        security_level=SecurityLevel(found.original_security_level or SecurityLevel.INTERNAL),
        valid_until=found.valid_until,
        requires_approval=found.requires_approval,
        says_approved=found.approval_status == "approved",
        compensate=found.compensates,
        schema_version=found.schema_version,
        document=strict_json.compact(value),
    )
    return plan, found
