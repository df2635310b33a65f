"""Who got a ticket and why not the others, as the client hands it on."""

from __future__ import annotations

from typing import TypedDict


class CandidateResult(TypedDict):
    """A worker that was looked at, and the parts of its score."""

    agent_id: str
    nota: float
    saude: float
    sucesso: float
    rapidez: float
    folga: float
    fator: float
    afinidade: float | None
    duracao_ms: int | None
    em_andamento: int
    motivo: str | None


class AllocationResult(TypedDict):
    """The choice of a worker for a ticket."""

    tentativa: int
    em: str
    agent_id: str
    metodo: str
    nota_prioridade: float
    nota_worker: float
    nota_composta: float
    avaliados: int
    candidatos: list[CandidateResult]
    recusados: dict[str, int]
