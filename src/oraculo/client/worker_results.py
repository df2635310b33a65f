"""What the server answers about workers, as the client hands it on."""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class RunningTicketStatus(TypedDict):
    """A ticket that a worker has now."""

    ticket_id: str
    tentativa: int
    inicio: str | None
    progresso: float | None


class WorkerErrorStatus(TypedDict):
    """How an order of a worker failed last."""

    codigo: Any
    mensagem: str
    em: str


class WorkerDrainStatus(TypedDict):
    """Who drains a worker, why and since when."""

    ator: str
    motivo: str
    desde: str


class WorkerStatus(TypedDict):
    """One worker that registered, or that the server has only seen (`situacao` is `visto`)."""

    nome: str
    transporte: Literal["http", "broker", "processo"]
    filas: list[str]
    visto_em: str
    em_andamento: int | None
    entregues: int | None
    respondidas: int | None
    situacao: Literal["visto", "ativo", "degradado", "doente", "drenando", "perdido"]
    falhas: int | None
    ultimo_erro: WorkerErrorStatus | None
    executando: list[RunningTicketStatus]
    registrado_em: str | None
    expira_em: str | None
    capacidades: list[str]
    concorrencia: int | None
    recursos: dict[str, int]
    rotulos: dict[str, str]
    versao: str
    host: str
    nivel: str | None
    cancelavel: bool
    telemetria: dict[str, Any]
    drenagem: WorkerDrainStatus | None
    pontuacao: float | None
