"""The types of what the client returns.

Answers of the server are plain dictionaries with the words of the wire, typed here so that a checker and an editor know
their keys. A test compares the keys with what the server documents. Instants are text in ISO 8601."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NotRequired, TypedDict, TypeVar

from oraculo.client.allocation_results import AllocationResult
from oraculo.client.pause_results import PauseDetails
from oraculo.client.queue_results import QueueStatus as QueueStatus
from oraculo.client.undo_results import UndoingCounts
from oraculo.client.worker_results import WorkerStatus as WorkerStatus

Item = TypeVar("Item")
TicketStatus = Literal["pendente", "em_execucao", "concluida", "erro", "timeout", "cancelada", "ignorada"]
RunStatus = Literal["pendente", "em_execucao", "concluida", "parcial", "erro", "timeout", "cancelada"]
RunEvent = dict[str, Any]  # an event of the journal: `seq`, `em`, `evento`, and the fields of its kind


@dataclass(frozen=True, slots=True)
class Submitted:
    """A request that was accepted and is durable. `document` is the answer of the server as it came."""

    correlation_id: str
    status: str
    location: str
    document: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def merged(self) -> bool:
        """True when the request exists once and this is the run of an equal one that came before."""
        return bool(self.document.get("juntada") or self.document.get("merged"))


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """Part of a list. `cursor` fetches the next one; None: the last. `groups` counts dead letters by queue, reason."""

    items: list[Item]
    cursor: str | None = None
    groups: list[DeadLetterCount] = field(default_factory=list)


class WorkFailure(TypedDict):
    """One failure that a worker reported; `definitivo` says that trying again cannot help."""

    codigo: str
    mensagem: str
    definitivo: NotRequired[bool]


class _TaskResult(TypedDict):
    task_id: NotRequired[str | None]
    tarefa: NotRequired[str]
    status: TicketStatus
    erros: list[WorkFailure]
    tentativas: int
    duracao_ms: int | None


class CollectResult(_TaskResult):
    """What came of one collection."""

    fonte: str
    dados: Any


class ExecuteResult(_TaskResult):
    """What came of one execution."""

    executador: str
    resultado: Any


class TaskResult(TypedDict):
    """What came of one named task, by what it does; `espera` says what it waits for, while it does."""

    status: TicketStatus
    dados: NotRequired[Any]
    resultado: NotRequired[Any]
    resultados: NotRequired[list[Any] | None]
    total: NotRequired[int]
    falhas: NotRequired[list[dict[str, Any]]]
    espera: NotRequired[dict[str, Any]]
    desfeita: NotRequired[TicketStatus]
    itens_desfeitos: NotRequired[dict[str, int]]
    erros: list[WorkFailure]
    tentativas: int
    duracao_ms: int | None


class RunAggregate(TypedDict):
    """The aggregate of an orchestration: the same document that webhooks and notification queues get."""

    correlation_id: str
    status: RunStatus
    coletas: list[CollectResult]
    execucoes: list[ExecuteResult]
    tarefas: NotRequired[dict[str, TaskResult]]
    saida: NotRequired[Any]
    erros: NotRequired[list[WorkFailure]]
    inicio: str
    fim: str | None
    duracao_ms: int | None
    fluxo_c: NotRequired[dict[str, Any] | None]


class RunResult(dict[str, Any]):
    """The aggregate of an orchestration, with the keys of `RunAggregate` in the words that the client asks for. The
    properties read it in either words."""

    @property
    def correlation_id(self) -> str:
        """The id of the orchestration."""
        return str(self["correlation_id"])

    @property
    def status(self) -> str:
        """How it ended."""
        return str(self["status"])

    @property
    def output(self) -> Any:
        """What the plan gave as its `saida` (`output`); None when it has none, or did not go through."""
        return self.get("saida", self.get("output"))

    @property
    def tasks(self) -> dict[str, TaskResult]:
        """What came of each named task; empty when the request names none."""
        found: dict[str, TaskResult] = self.get("tarefas") or self.get("tasks") or {}
        return found


class ItemCounts(TypedDict):
    """How the items of a map or the rounds of a loop stand."""

    total: int
    concluidos: int
    falhas: int
    ignorados: int
    cancelados: int
    abertos: int


class TicketDetails(TypedDict):
    """One ticket as it stands."""

    ticket_id: str
    correlation_id: str
    tipo: Literal["coleta", "execucao", "mapa", "espera", "repete", "filha"]
    fonte: NotRequired[str]
    executador: NotRequired[str]
    espera: NotRequired[dict[str, Any]]
    filha: NotRequired[str]
    destino: str | None
    status: TicketStatus
    tentativas: int
    max_tentativas: int
    causas: list[str]
    timeout_s: float | None
    criado_em: str
    despachado_em: str | None
    iniciado_em: str | None
    concluido_em: str | None
    prazo: str | None
    proxima_tentativa_em: str | None
    duracao_ms: int | None
    erro: str | None
    erros: list[WorkFailure]
    motivo: str | None
    respostas_tardias: list[dict[str, Any]]
    respostas_conflitantes: list[dict[str, Any]]
    traceparent: str | None
    tarefa: NotRequired[str]
    prioridade: NotRequired[int]
    desfaz: NotRequired[str]
    desfeito_por: NotRequired[str]
    indice: NotRequired[int]
    itens: NotRequired[ItemCounts]
    reaproveitada: NotRequired[bool]
    alocacao: NotRequired[AllocationResult]
    fluxo_c: NotRequired[dict[str, Any] | None]


class RunDetails(TypedDict):
    """One orchestration as it stands, with its tickets and the aggregate so far."""

    correlation_id: str
    status: RunStatus
    tipo: str | None
    rotulos: list[str]
    inicio: str
    fim: str | None
    duracao_ms: int | None
    prazo: str | None
    fan_in: dict[str, Any]
    espera: str | None
    pausada: bool
    pausa: PauseDetails | None
    desfazendo: UndoingCounts | None
    motivo_cancelamento: str | None
    ator: NotRequired[str]
    origem: NotRequired[str]
    de: NotRequired[str]
    tarefa: NotRequired[str]
    retentativas: NotRequired[list[str]]
    previsao: NotRequired[dict[str, Any] | None]
    politicas: NotRequired[list[dict[str, Any]]]
    unica: NotRequired[dict[str, Any]]
    juntadas: NotRequired[dict[str, Any]]
    pai: NotRequired[dict[str, Any]]
    trace_id: str | None
    tickets: list[TicketDetails]
    notificacoes: list[dict[str, Any]]
    fluxo_c: dict[str, Any] | None
    versao: int
    agregado: RunAggregate


class RunSummary(TypedDict):
    """One orchestration in a list."""

    correlation_id: str
    status: RunStatus
    tipo: str | None
    rotulos: list[str]
    inicio: str
    fim: str | None
    duracao_ms: int | None
    tickets_total: int
    tickets_abertos: int
    tickets_com_falha: int
    pausada: bool


class CancelAnswer(TypedDict):
    """`cancelada` is false when the orchestration had ended before."""

    correlation_id: str
    status: RunStatus
    cancelada: bool


class DecisionAnswer(TypedDict):
    """`aplicada` is false when the orchestration did not wait for a decision."""

    correlation_id: str
    status: RunStatus
    aplicada: bool
    decidido_por: str | None


class SignalAnswer(TypedDict):
    """`tarefa` is the task that took the signal; None: it is kept for the next one that waits for it."""

    tarefa: str | None


class DeadLetterDetails(TypedDict):
    """One message that could not be handled; its bytes are there when it was asked for alone."""

    id: int
    fila: str
    motivo: str
    detalhe: str
    tentativas: int
    correlation_id: str | None
    recebida_em: str
    tamanho: int
    corpo: NotRequired[str | None]
    codificacao: NotRequired[Literal["utf-8", "hex"] | None]
    cabecalhos: NotRequired[dict[str, str] | None]


class DeadLetterCount(TypedDict):
    """How many dead letters one queue has for one reason."""

    fila: str
    motivo: str
    total: int


class RequeueAnswer(TypedDict):
    """`removida` says that the message is no dead letter any more."""

    id: int
    situacao: str
    motivo: str
    correlation_id: str | None
    removida: bool


class BulkRequeueAnswer(TypedDict):
    """How many messages were handed in again, and how many were refused again."""

    reenviadas: int
    mantidas: int
    situacoes: dict[str, int]


class DiscardAnswer(TypedDict):
    """How many messages were discarded."""

    descartadas: int


class KeyLimitDetails(TypedDict):
    """How much a key may ask for; None: as much as it likes."""

    abertas: int | None
    por_segundo: float | None


class KeyDetails(TypedDict):
    """A key of the API, without its secret."""

    id: str
    role: str
    tenant: str
    queues: list[str]
    nota: str
    limites: KeyLimitDetails
    criada_em: str
    criada_por: str
    expira_em: str | None
    revogada_em: str | None
    usada_em: str | None
    situacao: Literal["ativa", "expirada", "revogada"]


class MadeKeyDetails(KeyDetails):
    """A key with its text, which the server shows this once."""

    key: str


class CallerDetails(TypedDict):
    """Who the server takes the caller for; `queues` are the only ones of a worker's key."""

    ator: str
    tipo: str
    tenant: str
    scopes: list[str]
    queues: list[str] | None


class BrokerStatus(TypedDict):
    """One broker as the server sees it."""

    nome: str
    publica: bool
    conectado: bool
    ok: bool | None
    aberto: bool
    durabilidade: Literal["power-safe", "crash-safe", "best-effort"] | None
    sonda_em: str | None
    sonda_ms: float | None
    reconexoes: int
    erro: str | None
    aguardando: dict[str, int]
    drenando: bool


class BrokersStatus(TypedDict):
    """Every broker, and when publishing switched between them."""

    brokers: list[BrokerStatus]
    route_epoch: int
    eventos: list[dict[str, Any]]


class ReplicaStatus(TypedDict):
    """One process on the server's database."""

    nome: str
    vaga: int
    epoca: int
    desde: str
    ate: str
    esta: bool


class ReplicasStatus(TypedDict):
    """Every process on the server's database."""

    replicas: list[ReplicaStatus]
    assumidas: int
    cercas: int


class WorkersStatus(TypedDict):
    """Every worker, and every queue."""

    workers: list[WorkerStatus]
    filas: list[QueueStatus]


class ServerHealth(TypedDict):
    """The server answers; with its version."""

    status: Literal["ok"]
    version: str


class ServerReadiness(TypedDict):
    """Whether the server can work, and what each check found."""

    status: Literal["ok", "degraded", "unavailable"]
    checks: dict[str, dict[str, Any]]
