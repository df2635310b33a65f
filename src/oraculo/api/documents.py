"""The shapes of answers, for the OpenAPI document. Answers are written straight from `wire.views`; a test holds the two
together by checking real answers against these."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from oraculo.api.bulk_documents import BULK_MODELS
from oraculo.api.destination_documents import DESTINATION_MODELS
from oraculo.api.key_documents import KEY_MODELS
from oraculo.api.policy_documents import PoliciesAnswer
from oraculo.api.prediction_documents import PREDICTION_MODELS
from oraculo.api.run_documents import Aggregate as Aggregate
from oraculo.api.run_documents import Orchestration as Orchestration
from oraculo.api.run_documents import RunPause
from oraculo.api.run_documents import Ticket as Ticket
from oraculo.api.schedule_documents import SCHEDULE_MODELS
from oraculo.api.schema_documents import DeclaredSchema
from oraculo.api.slo_documents import SLO_MODELS
from oraculo.api.ticket_documents import TICKET_MODELS
from oraculo.api.why_documents import WHY_MODELS
from oraculo.api.worker_documents import WORKER_MODELS
from oraculo.core.vocabulary import Status


class Erro(BaseModel):
    campo: str
    mensagem: str


class Problem(BaseModel):
    """RFC 9457. `type` is a page on this server that explains it; `code` is the same word for programs."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "/problems/unknown-id",
                    "title": "There is no such thing",
                    "status": 404,
                    "detail": "no orchestration 'abc123'",
                    "instance": "/api/v1/orchestrations/abc123",
                    "code": "unknown_id",
                }
            ]
        }
    )
    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    errors: list[Erro] | None = None


class Links(BaseModel):
    self: str
    result: str
    events: str
    stream: str
    cancel: str
    pause: str
    resume: str


class Submitted(BaseModel):
    correlation_id: str = Field(examples=["abc123"])
    status: Status | None = Field(description="null: it ended long ago, and only its key is remembered")
    links: Links
    juntada: bool | None = Field(None, description="true: an equal request came before, and this is its orchestration")


class RetryAccepted(Submitted):
    origem: str = Field(description="the run that is tried again")


class BatchItem(BaseModel):
    status: Literal[202]
    correlation_id: str
    juntada: bool | None = Field(None, description="true: it was merged into this orchestration of an equal request")


class Batch(BaseModel):
    itens: list[BatchItem | Problem] = Field(description="in the order of the requests")


class Running(Submitted):
    espera: str | None = Field(description="why it is not finished")


class Cancelled(BaseModel):
    correlation_id: str
    status: Status
    cancelada: bool = Field(description="false: it had ended before, and stays as it ended")


class RunPrioritised(BaseModel):
    correlation_id: str
    status: str
    prioridade: int | None
    mudou: bool = Field(description="false when it was so already")


class RunPaused(BaseModel):
    correlation_id: str
    status: Status
    pausada: bool
    pausa: RunPause | None = Field(description="who paused it, since when and why")
    prazo: datetime | None = Field(description="of the whole; it stands still while it is paused")
    mudou: bool = Field(description="false: it was so before")


class Summary(BaseModel):
    correlation_id: str
    status: Status
    tipo: str | None
    rotulos: list[str]
    inicio: datetime
    fim: datetime | None
    duracao_ms: int | None
    tickets_total: int
    tickets_abertos: int
    tickets_com_falha: int
    pausada: bool


class SummaryPage(BaseModel):
    orchestrations: list[Summary]
    next: str | None = Field(description="cursor of the next page; null on the last one")


class RetryList(BaseModel):
    correlation_id: str
    retentativas: list[Summary] = Field(description="the runs that try it again, the oldest first")


class PlanTaken(BaseModel):
    status: Literal["accepted", "awaiting_approval", "rejected"]
    plan_id: str
    correlation_id: str | None = None
    workflow_id: str | None = None
    motivo: str | None = None
    links: dict[str, str] | None = None


class Decided(BaseModel):
    correlation_id: str
    status: Status
    aplicada: bool = Field(description="false: it did not wait for a decision")
    decidido_por: str | None


class SignalAccepted(BaseModel):
    tarefa: str | None = Field(description="the task that took it; null: it is kept for the next wait of this name")


class WorkflowStarted(BaseModel):
    workflow_id: str
    status: Literal["started", "awaiting_approval", "rejected"]
    correlation_id: str


class Workflow(BaseModel):
    workflow_id: str
    status: str
    start_time: datetime
    close_time: datetime | None
    execution_time: datetime
    workflow_type: str
    task_queue: str
    correlation_id: str
    cached: bool
    result_summary: dict[str, Any] | None


class WorkflowAnswer(BaseModel):
    workflow_id: str
    query_name: str
    result: dict[str, Any]


class PlanTickets(BaseModel):
    tickets: list[dict[str, Any]] = Field(description="as ExecutionTicket")
    total: int
    has_more: bool
    cached: bool


class FlowStatus(BaseModel):
    total_processed: int
    success_rate: float | None
    average_latency_ms: float | None
    p95_latency_ms: float | None
    active_executions: int
    cached: bool


class Event(BaseModel):
    model_config = ConfigDict(extra="allow")
    seq: int
    em: datetime
    evento: str = Field(examples=["orchestration_started"])


class EventPage(BaseModel):
    correlation_id: str
    events: list[Event]
    next: int | None = Field(description="`after` of the next page; null when these are all there are so far")


class TaskTypes(BaseModel):
    task_types: dict[str, Any]


class DeadLetter(BaseModel):
    id: int
    fila: str
    motivo: str
    detalhe: str
    tentativas: int = Field(description="how many attempts it had; 1 for a message that is no order")
    correlation_id: str | None
    recebida_em: datetime
    tamanho: int
    corpo: str | None = None
    codificacao: Literal["utf-8", "hex"] | None = None
    cabecalhos: dict[str, str] | None = None


class DeadLetterGroup(BaseModel):
    fila: str
    motivo: str
    total: int


class DeadLetterPage(BaseModel):
    dead_letters: list[DeadLetter]
    groups: list[DeadLetterGroup]
    next: str | None


class Requeued(BaseModel):
    id: int
    situacao: str = Field(
        description="applied, duplicate, late, conflicting_answer, idle, published; quarantined or conflict: it stays "
        "where it is"
    )
    motivo: str
    correlation_id: str | None
    removida: bool = Field(description="it is no dead letter any more")


class BulkRequeued(BaseModel):
    reenviadas: int
    mantidas: int = Field(description="were refused again and stay where they are")
    situacoes: dict[str, int]


class Discarded(BaseModel):
    descartadas: int


class Leased(BaseModel):
    lease_id: str
    expira_em: datetime
    mensagem: Any = Field(description="the envelope, as it came from the queue")


class Leases(BaseModel):
    mensagens: list[Leased]


class Extended(BaseModel):
    lease_id: str
    expira_em: datetime


class Refused(BaseModel):
    indice: int
    motivo: str
    detalhe: str
    correlation_id: str | None


class ResultFate(BaseModel):
    correlation_id: str
    ticket_id: str | None
    situacao: str = Field(description="applied, duplicate, late, conflicting_answer")


class Results(BaseModel):
    aceitos: int
    recusados: list[Refused]
    resultados: list[ResultFate]


class BrokerInfo(BaseModel):
    nome: str
    publica: bool = Field(description="messages are published there")
    conectado: bool
    ok: bool | None = Field(description="how the last probe went; null: none yet")
    aberto: bool = Field(description="its breaker is open: nothing is published there for now")
    durabilidade: Literal["power-safe", "crash-safe", "best-effort"] | None
    sonda_em: datetime | None
    sonda_ms: float | None
    reconexoes: int
    erro: str | None
    aguardando: dict[str, int] = Field(description="queue → messages that wait there")
    drenando: bool


class Brokers(BaseModel):
    brokers: list[BrokerInfo]
    route_epoch: int = Field(description="how often publishing switched since the start")
    eventos: list[dict[str, Any]]


class ReplicaInfo(BaseModel):
    nome: str
    vaga: int = Field(description="its place among the replicas")
    epoca: int = Field(description="grows with every start of any of them")
    desde: datetime
    ate: datetime = Field(description="its lease, by the database's clock")
    esta: bool = Field(description="the one that answers")


class Replicas(BaseModel):
    replicas: list[ReplicaInfo]
    assumidas: int = Field(description="dead replicas that this one took over from")
    cercas: int = Field(description="how often this one was taken over itself and had to begin anew")


class SystemEvents(BaseModel):
    eventos: list[dict[str, Any]]


class Health(BaseModel):
    status: Literal["ok"]
    version: str


class Ready(BaseModel):
    status: Literal["ok", "degraded", "unavailable"]
    checks: dict[str, dict[str, Any]]


class Jwk(BaseModel):
    kty: Literal["OKP"]
    crv: Literal["Ed25519"]
    use: Literal["sig"]
    alg: Literal["EdDSA"]
    kid: str
    x: str


class Jwks(BaseModel):
    keys: list[Jwk]


ANSWER_MODELS: list[type[BaseModel]] = [
    Problem, Submitted, RetryAccepted, RetryList, Batch, Running, Cancelled, RunPaused, RunPrioritised,
    SummaryPage, Ticket, Aggregate, Orchestration, EventPage, TaskTypes,
    DeadLetter, DeadLetterPage, Requeued, BulkRequeued, Discarded, Leases, Extended, Results, Brokers, *SLO_MODELS,
    Replicas, SystemEvents, Health, Ready, Jwks, PlanTaken, Decided, SignalAccepted, WorkflowStarted, Workflow,
    WorkflowAnswer, PlanTickets, FlowStatus, *TICKET_MODELS, *KEY_MODELS, *SCHEDULE_MODELS, *BULK_MODELS,
    *PREDICTION_MODELS, *WHY_MODELS, *DESTINATION_MODELS, *WORKER_MODELS, PoliciesAnswer, DeclaredSchema,
]  # fmt: skip
