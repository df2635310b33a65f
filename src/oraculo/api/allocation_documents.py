"""The shapes of choices of workers, for the OpenAPI document; see documents.py."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from oraculo.core.allocations import AllocationMethod, NotChosen


class CandidateAnswer(BaseModel):
    """A worker that was looked at, and the parts of its score."""

    agent_id: str
    nota: float
    saude: float
    sucesso: float
    rapidez: float
    folga: float
    fator: float = Field(description="what the score was multiplied by")
    afinidade: float | None = Field(
        description="it did others of the same plan, or of the same intent; the score is multiplied by 0.5 and this; "
        "null where affinity is off"
    )
    duracao_ms: int | None = Field(description="how long an order takes it; null before it has finished one")
    em_andamento: int
    motivo: NotChosen | None = Field(description="why it did not get the ticket; null: it did")


class AllocationAnswer(BaseModel):
    """Who got a ticket, out of whom."""

    tentativa: int
    em: datetime
    agent_id: str
    metodo: AllocationMethod
    nota_prioridade: float = Field(description="how urgent the ticket was")
    nota_worker: float
    nota_composta: float = Field(description="0.6 of the worker's and 0.4 of the ticket's; it orders nothing")
    previsto_ms: int | None = Field(description="how long half of such tasks take at most, as it was thought then")
    previsto_p90_ms: int | None = Field(description="how long nine of ten take at most")
    avaliados: int = Field(description="workers that were looked at")
    candidatos: list[CandidateAnswer] = Field(description="the best five; the one that got it first")
    recusados: dict[NotChosen, int] = Field(description="all others, by why they did not get it")
