"""The shapes of one orchestration, its tickets and its result, for the OpenAPI document; see documents.py."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from oraculo.api.allocation_documents import AllocationAnswer
from oraculo.api.prediction_documents import Forecast
from oraculo.core.vocabulary import Status

Aberto = Literal["pendente", "em_execucao", "concluida", "parcial", "erro", "timeout", "cancelada", "ignorada"]


class Itens(BaseModel):
    """How the items of a map stand."""

    total: int
    concluidos: int
    falhas: int
    ignorados: int
    cancelados: int
    abertos: int


class Espera(BaseModel):
    """What a task waits for."""

    tipo: Literal["sinal", "aprovacao", "segundos", "ate"]
    sinal: str | None = Field(default=None, description="the name of the signal")
    pergunta: str | None = Field(default=None, description="of an approval")
    papeis: list[str] | None = Field(default=None, description="who may decide; empty: everybody who may approve")
    desde: datetime | None = Field(description="since when; null: not yet")
    prazo: datetime | None = Field(description="when it ends by itself")


class Ticket(BaseModel):
    ticket_id: str
    correlation_id: str
    tipo: Literal["coleta", "execucao", "mapa", "espera", "repete", "filha"]
    fonte: str | None = None
    executador: str | None = None
    espera: Espera | None = Field(default=None, description="what a task waits for that is a wait")
    filha: str | None = Field(
        default=None, description="of a child: its correlation_id; of a map or loop of them: their type"
    )
    destino: str | None = Field(description="its queue; null for a wait or a child")
    status: Aberto
    tentativas: int
    max_tentativas: int
    causas: list[str]
    timeout_s: float | None = Field(
        description="of one attempt; of a map or a loop: the whole of it; null for what has no limit"
    )
    criado_em: datetime
    despachado_em: datetime | None
    iniciado_em: datetime | None
    concluido_em: datetime | None
    prazo: datetime | None
    proxima_tentativa_em: datetime | None
    duracao_ms: int | None
    erro: str | None
    erros: list[dict[str, Any]]
    motivo: str | None
    respostas_tardias: list[dict[str, Any]]
    respostas_conflitantes: list[dict[str, Any]] = Field(
        description="second answers to an attempt that say something else; kept, without effect"
    )
    traceparent: str | None = Field(description="W3C trace context of its latest message")
    alocacao: AllocationAnswer | None = Field(
        default=None, description="the worker that was chosen for it last, out of whom, and why not the others"
    )
    reaproveitada: bool | None = Field(default=None, description="true: taken over from the run that is tried again")
    tarefa: str | None = Field(default=None, description="its name, in a plan of named tasks")
    prioridade: int | None = Field(default=None, description="from 1, the lowest, to 9, where the plan says it")
    indice: int | None = Field(default=None, description="of an item of a map or a round of a loop: its number")
    itens: Itens | None = Field(default=None, description="of a map; of a loop: its rounds")
    desfaz: str | None = Field(default=None, description="the ticket that this one undoes")
    desfeito_por: str | None = Field(default=None, description="the ticket that undoes this one")
    fluxo_c: dict[str, Any] | None = Field(default=None, description="of a ticket of Fluxo C")


class _Outcome(BaseModel):
    task_id: str | None = Field(default=None, description="of a plan of Fluxo C")
    tarefa: str | None = Field(default=None, description="its name, in a plan of named tasks")
    status: Aberto
    erros: list[dict[str, Any]]
    tentativas: int
    duracao_ms: int | None


class ColetaResult(_Outcome):
    fonte: str
    dados: Any


class ExecucaoResult(_Outcome):
    executador: str
    resultado: Any


class TarefaResult(BaseModel):
    status: Aberto
    dados: Any = Field(default=None, description="of a collect or a wait")
    resultado: Any = Field(default=None, description="of an execute or a child; of a loop: of its last round")
    resultados: list[Any] | None = Field(default=None, description="of a map, in the order of its items")
    total: int | None = Field(default=None, description="of a map: how many items it has")
    falhas: list[dict[str, Any]] | None = Field(default=None, description="of a map: its first items that failed")
    espera: Espera | None = Field(default=None, description="what it waits for, while it does")
    desfeita: Aberto | None = Field(default=None, description="how undoing it went, when it is undone")
    itens_desfeitos: dict[str, int] | None = Field(default=None, description="how undoing its items went")
    erros: list[dict[str, Any]]
    tentativas: int
    duracao_ms: int | None


class Aggregate(BaseModel):
    """The result; also the body of the webhook and of the message to `notificar.fila`."""

    correlation_id: str
    status: Status
    coletas: list[ColetaResult]
    execucoes: list[ExecucaoResult]
    tarefas: dict[str, TarefaResult] | None = Field(default=None, description="of a plan of named tasks, by name")
    saida: Any = Field(default=None, description="of a plan of named tasks: its output")
    erros: list[dict[str, Any]] | None = Field(default=None, description="why there is no output, when it failed")
    inicio: datetime
    fim: datetime | None
    duracao_ms: int | None
    fluxo_c: dict[str, Any] | None = Field(default=None, description="of a plan of Fluxo C: the consolidated result")


class RunPause(BaseModel):
    ator: str | None
    desde: datetime
    motivo: str


class Desfazendo(BaseModel):
    """How far undoing is."""

    desfecho: Status = Field(description="how the run ends when all is undone")
    motivo: str
    total: int
    concluidos: int
    falhas: int
    abertos: int


class Merge(BaseModel):
    em: datetime
    correlation_id: str | None = Field(description="the id that it asked for")
    ator: str | None


class Merges(BaseModel):
    total: int
    recentes: list[Merge] = Field(description="the last 20, the newest first")


class Orchestration(BaseModel):
    correlation_id: str
    status: Status
    tipo: str | None
    rotulos: list[str]
    inicio: datetime
    fim: datetime | None
    duracao_ms: int | None
    prazo: datetime | None
    fan_in: dict[str, Any]
    espera: str | None
    pausada: bool
    pausa: RunPause | None = Field(description="who paused it, since when and why")
    desfazendo: Desfazendo | None = Field(description="null: nothing is being undone")
    motivo_cancelamento: str | None
    ator: str | None = Field(None, description="who asked for it; not there when nobody knows")
    politicas: list[dict[str, Any]] | None = Field(
        None, description="what policies said beyond yes; not there when none were asked"
    )
    unica: dict[str, Any] | None = Field(None, description="of a request that exists once: what it said")
    juntadas: Merges | None = Field(None, description="of a request that exists once: what was merged into it")
    pai: dict[str, Any] | None = Field(None, description="of a child: the run and the ticket that it belongs to")
    origem: str | None = Field(None, description="the run that this one tries again; not there when it is none")
    de: str | None = Field(None, description="of a retry: what it does again, `falhas` or `inicio`")
    tarefa: str | None = Field(None, description="of a retry: the task from which on everything is done again")
    retentativas: list[str] = Field(default_factory=list, description="the runs that try this one again")
    previsao: Forecast | None = Field(None, description="when it will end; null: it has ended, or nothing is predicted")
    trace_id: str | None = Field(description="of the trace that it belongs to")
    tickets: list[Ticket]
    notificacoes: list[dict[str, Any]]
    fluxo_c: dict[str, Any] | None = Field(description="of a plan of Fluxo C: its ids, and where it stands")
    versao: int
    agregado: Aggregate
