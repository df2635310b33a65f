"""Why a run or a ticket is as it is, as the client hands it on."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from oraculo.client.allocation_results import AllocationResult


class PredictionResult(TypedDict):
    """What was predicted of an attempt when it was given to a worker, and what came."""

    previsto_ms: int | None
    previsto_p90_ms: int
    levou_ms: int
    dentro_do_p90: bool


class DecisionDetails(TypedDict):
    """One decision as the journal has it, with its sentence."""

    seq: int
    em: str
    evento: str
    ticket_id: str | None
    tarefa: str | None
    tentativa: int | None
    ator: str | None
    frase: str
    detalhes: list[str]
    alocacao: NotRequired[AllocationResult]
    parecer: NotRequired[dict[str, Any]]
    previsao: NotRequired[PredictionResult]


class OpenTicketDetails(TypedDict):
    """An open ticket and why it waits."""

    ticket_id: str
    tarefa: str
    destino: str | None
    status: str
    tentativas: int
    desde: str
    prazo: str | None
    frase: str
    detalhes: list[str]


class Explanation(TypedDict):
    """What a run or a ticket waits for or how it ended, and every decision that made it so, oldest first."""

    correlation_id: str
    ticket_id: str | None
    status: str
    resumo: str
    abertos: list[OpenTicketDetails]
    abertos_total: int
    previsao: dict[str, Any] | None
    decisoes: list[DecisionDetails]
    next: int | None
