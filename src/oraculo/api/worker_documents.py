"""The shapes of answers about workers, for the OpenAPI document; see documents.py."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field


class RunningInfo(BaseModel):
    ticket_id: str
    tentativa: int
    inicio: datetime | None
    progresso: float | None


class DrainInfo(BaseModel):
    ator: str
    motivo: str
    desde: datetime


class WorkerErrorInfo(BaseModel):
    codigo: Any
    mensagem: str
    em: datetime


class WorkerInfo(BaseModel):
    nome: str
    transporte: Literal["http", "broker", "grpc", "service-registry", "processo"]
    filas: list[str]
    visto_em: datetime
    em_andamento: int | None
    entregues: int | None
    respondidas: int | None
    situacao: Literal["visto", "ativo", "degradado", "doente", "drenando", "perdido"] = Field(
        description="`visto`: it has not registered; `degradado`, `doente`: many of its answers are failures; "
        "`drenando`: it gets nothing more; `perdido`: its lease has ended"
    )
    falhas: int | None = Field(description="answers that were failures")
    ultimo_erro: WorkerErrorInfo | None
    executando: list[RunningInfo] = Field(description="what it does now, as far as that is known")
    registrado_em: datetime | None = Field(description="null: it has not registered")
    expira_em: datetime | None = Field(description="silent until then, it is lost")
    capacidades: list[str]
    concorrencia: int | None
    recursos: dict[str, int]
    rotulos: dict[str, str]
    versao: str
    host: str
    nivel: str | None
    cancelavel: bool
    telemetria: dict[str, Any] = Field(description="what it says about itself")
    drenagem: DrainInfo | None
    pontuacao: float | None = Field(
        description="rank among registered workers: how well it works, how much room it has"
    )


class TrailInfo(BaseModel):
    """What answers left behind, as far as it has not faded."""

    pontuacao: float = Field(description="0.1 to 0.95; 0.5 when nothing is left")
    fator: float = Field(description="what the score of a worker is multiplied by; 1 when nothing is left")
    sucesso: float = Field(description="done at the first attempt")
    aviso: float = Field(description="done after a retry")
    falha: float
    duracao_ms: int | None = Field(description="the mean of what was done")
    em: datetime


class WorkerTrail(TrailInfo):
    fila: str
    worker: str | None = Field(description="null: of all workers of the queue")


class TrailList(BaseModel):
    ativas: bool = Field(description="false: ORACULO_TRAILS is not set")
    meia_vida_s: float | None
    trilhas: list[WorkerTrail]


class QueueInfo(BaseModel):
    fila: str
    aguardando: int | None
    em_andamento: int | None = Field(description="taken and not settled, where the broker can say")
    mais_antiga_s: float | None = Field(description="how long the oldest one waits, where the broker can say")
    consumidores: int = Field(
        description="who consumes it, as the broker says; where it cannot (in-process, NATS, Kafka), workers that were "
        "seen within a minute"
    )
    enviadas_por_s: float = Field(description="orders that this process has sent there, over the last minute")
    respondidas_por_s: float = Field(description="answers to them that counted here, over the last minute")
    trilha: TrailInfo | None = Field(description="what its answers left behind; null where nothing is followed")


class Workers(BaseModel):
    workers: list[WorkerInfo]
    filas: list[QueueInfo]


class Registered(BaseModel):
    worker: str
    registrado_em: datetime
    expira_em: datetime
    drenar: bool = Field(description="take nothing more, and finish what you have")
    proximo_s: float = Field(description="when to send the next heartbeat")


class StopInfo(BaseModel):
    ticket_id: str
    tentativa: int
    por: str = Field(description="the more urgent ticket for which its place is needed")
    prazo_s: float = Field(description="after so long the lease ends; give it back before")


class Beat(BaseModel):
    worker: str
    drenar: bool
    proximo_s: float
    parar: list[StopInfo] = Field(description="work to stop and give back, for a more urgent ticket; usually empty")


class Beats(BaseModel):
    itens: list[Beat | dict[str, Any]] = Field(description="a problem with its `worker` where one is not registered")


WORKER_MODELS: list[type[BaseModel]] = [Workers, WorkerInfo, Registered, Beat, Beats, TrailList]
