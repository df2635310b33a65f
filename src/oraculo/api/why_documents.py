"""The shapes of what explains a run, for the OpenAPI document; see documents.py."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from oraculo.api.allocation_documents import AllocationAnswer
from oraculo.api.prediction_documents import Forecast
from oraculo.api.run_documents import Aberto


class RuleFinding(BaseModel):
    """One rule that was not kept."""

    politica: str
    regra: str
    gravidade: str
    campo: str
    mensagem: str
    esperado: str
    encontrado: str


class PolicyFindingAnswer(BaseModel):
    """What policies said of one ticket beyond yes; `ticket_id` is null: of the plan."""

    ticket_id: str | None
    permitido: bool
    violacoes: list[RuleFinding]
    avisos: list[RuleFinding]
    erro: str | None = Field(description="why the policies could not be asked")


class VerdictAnswer(BaseModel):
    """A verdict of the policies, and which they were."""

    ponto: str
    tickets: list[str]
    pareceres: list[PolicyFindingAnswer]
    motor: str
    politicas: str | None = Field(description="the version of the policies")
    decisao: str | None = Field(description="its number in the log of the engine")
    entrada: str | None = Field(description="a digest of what was asked")


class PredictionCame(BaseModel):
    """What was predicted of an attempt when it was given to a worker, and what came."""

    previsto_ms: int | None
    previsto_p90_ms: int
    levou_ms: int
    dentro_do_p90: bool


class JournalDecision(BaseModel):
    """One decision, as the journal has it."""

    seq: int = Field(description="the number of its event")
    em: datetime
    evento: str = Field(description="the name of its event")
    ticket_id: str | None = Field(description="the ticket that it is about; null: the run, or several")
    tarefa: str | None
    tentativa: int | None
    ator: str | None
    frase: str
    detalhes: list[str]
    alocacao: AllocationAnswer | None = None
    parecer: VerdictAnswer | None = None
    previsao: PredictionCame | None = None


class OpenTicket(BaseModel):
    """An open ticket and why it waits."""

    ticket_id: str
    tarefa: str
    destino: str | None
    status: Aberto
    tentativas: int
    desde: datetime
    prazo: datetime | None
    frase: str
    detalhes: list[str]


class Why(BaseModel):
    correlation_id: str
    ticket_id: str | None = Field(description="the ticket that was asked about")
    status: Aberto
    resumo: str = Field(description="what it waits for, or how it ended, in one sentence")
    abertos: list[OpenTicket] = Field(description="the first 50 open tickets")
    abertos_total: int
    previsao: Forecast | None = Field(
        description="when the run should end; null: it has ended, or nothing is predicted"
    )
    decisoes: list[JournalDecision] = Field(description="oldest first")
    next: int | None = Field(description="`after` of the next page; null: there is none")


WHY_MODELS: list[type[BaseModel]] = [
    RuleFinding,
    PolicyFindingAnswer,
    VerdictAnswer,
    PredictionCame,
    JournalDecision,
    OpenTicket,
    Why,
]
