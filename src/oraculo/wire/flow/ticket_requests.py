"""What the ticket service is asked for: a ticket of its own, a new status, the compensation of another ticket.

The fields are those of the original's execution-ticket-service. A ticket that comes alone is a plan of one task, so it
is checked, policed, journalled and published like all others.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from oraculo.core.vocabulary import TaskType
from oraculo.wire import strict_json
from oraculo.wire.flow.plans import Id, Instant, Text, Whole, WholeOrText, Worker
from oraculo.wire.flow.texts import text_of

COMPENSATION_PREFIX = "compensate-"  # begins the plan_id of what compensates a ticket
TICKET_PREFIX = "ticket-"  # begins the plan_id of a ticket that came without one
WEBHOOK_FIELD = "webhook_url"  # of the metadata of a ticket
REASON_MAX_CHARS = 1000


def _upper(value: Any) -> Any:
    return value.strip().upper() if isinstance(value, str) else value


class Sla(BaseModel):
    model_config = ConfigDict(extra="ignore")
    deadline: Instant | None = Field(None, description="when the ticket has to be done, in ms or as text")
    timeout_ms: Annotated[WholeOrText, Field(ge=1)] | None = None
    max_retries: Annotated[WholeOrText, Field(ge=0, le=99)] | None = None


class TicketRequest(BaseModel):
    """An ExecutionTicket. What is not said here (ids, times, status) is filled in; what only the orchestrator can say
    (`status`, `created_at`, …) is passed over."""

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={
            "examples": [{"task_type": "BUILD", "description": "build the image", "parameters": {"ref": "main"}}]
        },
    )
    ticket_id: Id | None = Field(None, description="the same again is the same ticket; it gets an id of ours")
    plan_id: Annotated[str, Field(max_length=90)] | None = Field(None, description="the plan that it belongs to")
    intent_id: Id | None = None
    correlation_id: Id | None = None
    trace_id: Id | None = None
    span_id: Id | None = None
    task_id: Id = "task"
    task_type: Annotated[TaskType, BeforeValidator(_upper)] = TaskType.EXECUTE
    description: Text = ""
    dependencies: Annotated[list[Id], Field(max_length=0)] = Field(
        default_factory=list, description="none: a ticket that comes alone waits for no other"
    )
    priority: Annotated[Literal["LOW", "NORMAL", "HIGH", "CRITICAL"], BeforeValidator(_upper)] | None = None
    risk_band: Literal["low", "medium", "high", "critical"] = "medium"
    security_level: (
        Annotated[Literal["PUBLIC", "INTERNAL", "CONFIDENTIAL", "RESTRICTED"], BeforeValidator(_upper)] | None
    ) = None
    sla: Sla = Field(default_factory=lambda: Sla.model_validate({}))
    parameters: dict[str, Any] = Field(default_factory=dict)
    required_capabilities: Annotated[list[Id], Field(max_length=1000)] = Field(default_factory=list)
    estimated_duration_ms: Annotated[Whole, Field(ge=0)] | None = None
    worker: Worker | None = None
    metadata: dict[str, Any] = Field(
        default_factory=dict, description="`idempotency_key`, `webhook_url`, and whatever its worker is to see"
    )

    @property
    def idempotency_key(self) -> str | None:
        """What says that it is the same ticket again; None: every one is new."""
        return text_of(self.metadata.get("idempotency_key"))[:128] or self.ticket_id


class StatusRequest(BaseModel):
    """How a ticket stands, as its worker tells it."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"status": "COMPLETED", "actual_duration_ms": 1200}]}
    )
    status: Annotated[
        Literal["PENDING", "RUNNING", "COMPLETED", "FAILED", "COMPENSATING", "COMPENSATED"], BeforeValidator(_upper)
    ]
    error_message: Annotated[str, Field(max_length=100_000)] | None = None
    actual_duration_ms: Annotated[Whole, Field(ge=0)] | None = None
    result: dict[str, Any] = Field(default_factory=dict, description="`output`, `metadata` and `logs` of the work")
    agent_id: Annotated[str, Field(max_length=128)] = ""
    token: Annotated[str, Field(max_length=4096)] | None = Field(None, description="the token of the ticket")

    def execution_result(self, ticket: str) -> dict[str, Any]:
        """The same as the ExecutionResult that a worker would send to the topic."""
        said = {
            "ticket_id": ticket,
            "status": self.status,
            "error_message": self.error_message,
            "actual_duration_ms": self.actual_duration_ms,
            "result": self.result or None,
            "agent_id": self.agent_id or None,
            "token": self.token,
        }
        return {name: value for name, value in said.items() if value is not None}


class CompensationRequest(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "original_ticket_id": "06721f3a-0000-8000-8000-000004b1c2d3",
                    "reason": "the image was withdrawn",
                    "compensation_action": "rollback",
                    "parameters": {"to": "v1"},
                }
            ]
        },
    )
    original_ticket_id: Id
    reason: Annotated[str, Field(min_length=1, max_length=REASON_MAX_CHARS)]
    compensation_action: Id = Field("rollback", validation_alias=AliasChoices("compensation_action", "action"))
    parameters: dict[str, Any] = Field(default_factory=dict)


def plan_of_ticket(asked: TicketRequest, plan_id: str, key: str | None) -> dict[str, Any]:
    """The CognitivePlan of one task that a ticket is."""
    metadata = dict(asked.metadata)
    if asked.plan_id is not None and asked.plan_id != plan_id:
        metadata["parent_plan_id"] = asked.plan_id
    if key is not None:
        metadata["idempotency_key"] = key
    task = {
        "task_id": asked.task_id,
        "task_type": asked.task_type.value,
        "description": asked.description,
        "dependencies": [],
        "estimated_duration_ms": asked.estimated_duration_ms,
        "required_capabilities": asked.required_capabilities,
        "parameters": asked.parameters,
        "metadata": metadata,
        "timeout_ms": asked.sla.timeout_ms,
        "max_retries": asked.sla.max_retries,
        "worker": asked.worker,
    }
    return {
        "plan_id": plan_id,
        "intent_id": asked.intent_id or plan_id,
        "correlation_id": asked.correlation_id,
        "trace_id": asked.trace_id,
        "span_id": asked.span_id,
        "tasks": [{name: value for name, value in task.items() if value is not None}],
        "execution_order": [asked.task_id],
        "risk_band": asked.risk_band,
        "original_priority": asked.priority,
        "original_security_level": asked.security_level,
        "metadata": {"source": "ticket_service"},
    }


def plan_of_compensation(asked: CompensationRequest, original: dict[str, Any], worker: str | None) -> dict[str, Any]:
    """The CognitivePlan of one task that compensates the ticket of this record. `worker` is the class of workers that
    did it."""
    task = {
        "task_id": f"{COMPENSATION_PREFIX}{original['task_id']}"[:128],
        "task_type": TaskType.COMPENSATE.value,
        "description": f"{asked.compensation_action}: {original['description'] or original['task_id']}"[:1000],
        "dependencies": [],
        "estimated_duration_ms": original["estimated_duration_ms"],
        "required_capabilities": original["required_capabilities"],
        "parameters": {
            **asked.parameters,
            "original_ticket_id": original["ticket_id"],
            "action": asked.compensation_action,
            "reason": asked.reason,
        },
        "metadata": {**({} if worker is None else {"worker": worker}), "original_plan_id": original["plan_id"]},
    }
    return {
        "plan_id": compensation_plan_id(original["ticket_id"]),
        "intent_id": original["intent_id"],
        "correlation_id": original["correlation_id"],
        "tasks": [task],
        "execution_order": [task["task_id"]],
        "risk_band": original["risk_band"],
        "original_priority": original["priority"],
        "original_security_level": original["security_level"],
        "metadata": {"source": "ticket_service", "compensation": "off"},
    }


def compensation_plan_id(ticket: str) -> str:
    """The plan that compensates a ticket: there is one for each, however often it is asked for."""
    return f"{COMPENSATION_PREFIX}{ticket}"


def encoded(document: dict[str, Any]) -> bytes:
    return strict_json.compact(document)


TICKET_BODIES: list[type[BaseModel]] = [TicketRequest, StatusRequest, CompensationRequest]
