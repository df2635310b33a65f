"""The bodies that routes take, besides the request of `wire.requests`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AliasChoices, AwareDatetime, BaseModel, ConfigDict, Field, field_validator, model_validator

from oraculo.api.run_filter import RunFilter
from oraculo.api.schema_documents import ParameterSchema
from oraculo.core.access import AccessRole
from oraculo.plans.words import value_to_portuguese
from oraculo.runtime.bulk import BulkAction


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
    motivo: Annotated[str, Field(max_length=1000)] = Field("", validation_alias=AliasChoices("motivo", "reason"))


class PauseRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"motivo": "a fonte está fora"}]})
    motivo: Annotated[str, Field(max_length=1000)] = Field(
        "", description="why, for the record", validation_alias=AliasChoices("motivo", "reason")
    )


class PriorityRequest(BaseModel):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"prioridade": 9, "motivo": "cliente espera"}]}
    )
    prioridade: Annotated[int, Field(ge=1, le=9, strict=True)] = Field(
        description="from 1, the least, to 9", validation_alias=AliasChoices("prioridade", "priority")
    )
    motivo: Annotated[str, Field(max_length=1000)] = Field(
        "", description="why, for the record", validation_alias=AliasChoices("motivo", "reason")
    )


class CancelRunRequest(CancelRequest):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"motivo": "pedido errado", "desfazer": True}]}
    )
    desfazer: Annotated[bool, Field(strict=True)] = Field(
        False, description="undo the tasks that concluded and say how (`desfaz`), then end"
    )


class ApprovalRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"por": "ana", "motivo": "revisado"}]})
    por: Annotated[str, Field(max_length=200)] = Field("", description="who decides")
    motivo: Annotated[str, Field(max_length=1000)] = Field("", validation_alias=AliasChoices("motivo", "reason"))
    tarefa: Annotated[str, Field(max_length=100)] | None = Field(
        None,
        description="the task that waits for it, where several do",
        validation_alias=AliasChoices("tarefa", "task"),
    )


class RetryRequest(BaseModel):
    """What is done again: `de` or `tarefa`, not both; without either, what did not conclude."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"de": "falhas"}, {"tarefa": "envio"}]})
    de: Literal["falhas", "inicio"] | None = Field(
        None, description="what did not conclude, or everything", validation_alias=AliasChoices("de", "from")
    )
    tarefa: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None, description="this task and all behind it", validation_alias=AliasChoices("tarefa", "task")
    )

    @field_validator("de", mode="before")
    @classmethod
    def _either_word(cls, given: Any) -> Any:
        return value_to_portuguese("de", given) if isinstance(given, str) else given

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if self.de is not None and self.tarefa is not None:
            raise ValueError("give de or tarefa, not both")
        return self


class BulkRequest(BaseModel):
    """What is done to which. `desfazer` goes with `cancel`, `de` with `retry`."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"filtro": {"status": ["erro"], "since": "2026-01-31T00:00:00Z"}, "acao": "retry"}]
        },
    )
    filtro: RunFilter = Field(validation_alias=AliasChoices("filtro", "filter"))
    acao: BulkAction = Field(validation_alias=AliasChoices("acao", "action"))
    simular: Annotated[bool, Field(strict=True)] = Field(
        False, description="only count", validation_alias=AliasChoices("simular", "dry_run")
    )
    motivo: Annotated[str, Field(max_length=1000)] = Field(
        "", description="why, for the record", validation_alias=AliasChoices("motivo", "reason")
    )
    desfazer: Annotated[bool, Field(strict=True)] = Field(
        False, description="undo the tasks that concluded and say how (`desfaz`)"
    )
    de: Literal["falhas", "inicio"] | None = Field(
        None, description="what did not conclude, or everything", validation_alias=AliasChoices("de", "from")
    )

    @field_validator("de", mode="before")
    @classmethod
    def _either_word(cls, given: Any) -> Any:
        return value_to_portuguese("de", given) if isinstance(given, str) else given

    @model_validator(mode="after")
    def _fits_the_action(self) -> Self:
        if self.desfazer and self.acao is not BulkAction.CANCEL:
            raise ValueError("desfazer goes with the action cancel")
        if self.de is not None and self.acao is not BulkAction.RETRY:
            raise ValueError("de goes with the action retry")
        return self


class SignalRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"dados": {"nota": 7}}]})
    dados: Any = Field(
        None, description="any JSON; what the wait offers", validation_alias=AliasChoices("dados", "data")
    )


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


class KeyLimits(BaseModel):
    """How much a key may ask for; what is not given has no limit."""

    model_config = ConfigDict(extra="forbid")
    abertas: Annotated[int, Field(ge=1, le=100_000_000, strict=True)] | None = Field(
        default=None, description="orchestrations that are open at once"
    )
    por_segundo: Annotated[float, Field(ge=0.001, le=1_000_000, allow_inf_nan=False, strict=True)] | None = Field(
        default=None, description="submissions in a second, for each process"
    )


class KeyRequest(BaseModel):
    """A new key. Only the role `trabalhador` has `queues`; without `expires_s` the key does not expire."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"role": "operador", "expires_s": 7776000, "nota": "CI"}]}
    )
    role: AccessRole
    tenant: Annotated[str, Field(max_length=100)] | None = Field(
        default=None, description="the tenant that it belongs to; that of the caller unless it is given"
    )
    queues: Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=100)] = Field(default_factory=list)
    expires_s: Annotated[float, Field(ge=60, le=316_224_000, allow_inf_nan=False, strict=True)] | None = None
    nota: Annotated[str, Field(max_length=200)] = ""
    limites: KeyLimits = Field(default_factory=KeyLimits)
    public_key: Annotated[str, Field(max_length=64)] | None = Field(
        default=None, description="the public half (Ed25519, base64url) of the pair that its owner signs messages with"
    )


class RotateRequest(BaseModel):
    """`overlap_s` is how long the secret before stays good; `expires_s` says anew how long the key lasts."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"overlap_s": 3600}]})
    overlap_s: Annotated[float, Field(ge=0, le=2_592_000, allow_inf_nan=False, strict=True)] = 86_400.0
    expires_s: Annotated[float, Field(ge=60, le=316_224_000, allow_inf_nan=False, strict=True)] | None = None


class BackfillRequest(BaseModel):
    """The instants from `de` to `ate`, both included."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"de": "2026-01-31T00:00:00Z", "ate": "2026-01-31T06:00:00Z"}]}
    )
    de: AwareDatetime = Field(validation_alias=AliasChoices("de", "from"))
    ate: AwareDatetime = Field(validation_alias=AliasChoices("ate", "until"))


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


BODY_MODELS: list[type[BaseModel]] = [
    ParameterSchema,
    LeaseRequest,
    ExtendRequest,
    ReleaseRequest,
    CancelRequest,
    CancelRunRequest,
    PauseRequest,
    ApprovalRequest,
    PriorityRequest,
    RetryRequest,
    BulkRequest,
    SignalRequest,
    WorkflowRequest,
    WorkflowQuery,
    RequeueRequest,
    KeyRequest,
    RotateRequest,
    BackfillRequest,
    Envelope,
    CognitivePlan,
]
