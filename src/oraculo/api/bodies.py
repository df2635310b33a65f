"""The bodies that routes take, besides the request of `wire.requests`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class LeaseRequest(BaseModel):
    """All of it is optional."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"max": 10, "wait": 20, "worker": "youtube-1"}]}
    )
    max: Annotated[int, Field(ge=1, le=1000, strict=True)] = 10
    wait: Annotated[float, Field(ge=0, le=300, allow_inf_nan=False, strict=True)] = 20.0
    worker: Annotated[str, Field(min_length=1, max_length=200)] = "anonimo"
    lease_s: Annotated[float, Field(ge=1, le=3600, allow_inf_nan=False, strict=True)] | None = None


class ExtendRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")
    lease_s: Annotated[float, Field(ge=1, le=3600, allow_inf_nan=False, strict=True)] | None = None


class ReleaseRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")
    delay_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False, strict=True)] = 0.0


class CancelRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"motivo": "pedido errado"}]})
    motivo: Annotated[str, Field(max_length=1000)] = ""


class ApprovalRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"por": "ana", "motivo": "revisado"}]})
    por: Annotated[str, Field(max_length=200)] = Field("", description="who decides")
    motivo: Annotated[str, Field(max_length=1000)] = ""


class WorkflowRequest(BaseModel):
    """What the Orchestrator Dynamic takes to start a workflow."""

    model_config = ConfigDict(extra="forbid")
    cognitive_plan: dict[str, Any]
    correlation_id: Annotated[str, Field(min_length=1, max_length=128)]
    priority: Annotated[int, Field(ge=1, le=10, strict=True)] = 5
    sla_deadline_seconds: Annotated[int, Field(ge=1, le=2_592_000, strict=True)] = 14_400


class WorkflowQuery(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"query_name": "get_tickets"}]})
    query_name: Literal["get_status", "get_tickets"]
    args: list[Any] = Field(default_factory=list, max_length=100)


class RequeueRequest(BaseModel):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"corpo": '{"correlation_id": "abc123"}'}]}
    )
    corpo: str | None = Field(None, description="the message to take in instead of the original bytes")


class Envelope(BaseModel):
    """The message of contracts §1; unknown fields are kept and ignored."""

    model_config = ConfigDict(extra="allow")
    correlation_id: Annotated[str, Field(min_length=1, max_length=128)]
    tipo_evento: Literal["iniciar_coleta", "resultado_coleta", "iniciar_execucao", "resultado_execucao"]
    payload: dict[str, Any]
    timestamp: datetime
    ticket_id: str | None = None
    tentativa: Annotated[int, Field(ge=1, le=2**31)] | None = None


class CognitivePlan(BaseModel):
    """A CognitivePlan, or a ConsolidatedDecision with one in `cognitive_plan`; `schema export avro` has all fields."""

    model_config = ConfigDict(extra="allow")
    plan_id: Annotated[str, Field(min_length=1, max_length=128)]
    intent_id: str | None = None
    tasks: list[dict[str, Any]] | None = None
    execution_order: list[str] | None = None
    risk_band: Literal["low", "medium", "high", "critical"] | None = None
    cognitive_plan: dict[str, Any] | str | None = None
    final_decision: Literal["approve", "reject", "review_required", "conditional"] | None = None


ALL: list[type[BaseModel]] = [
    LeaseRequest,
    ExtendRequest,
    ReleaseRequest,
    CancelRequest,
    ApprovalRequest,
    WorkflowRequest,
    WorkflowQuery,
    RequeueRequest,
    Envelope,
    CognitivePlan,
]
