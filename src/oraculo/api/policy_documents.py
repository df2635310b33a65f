"""The shapes of what is said about policies, for the OpenAPI document; see documents.py."""

from __future__ import annotations

from pydantic import BaseModel, Field


class PolicyRefusals(BaseModel):
    """A rule that refused something."""

    politica: str
    regra: str
    gravidade: str
    vezes: int


class PolicyRefusal(BaseModel):
    """One plan, ticket or answer that was refused."""

    ponto: str
    ticket_id: str | None = Field(description="null: the plan")
    correlation_id: str
    mensagem: str
    decisao: str = Field(description="the number of the decision, as in the journal and in the log")


class PoliciesAnswer(BaseModel):
    motor: str | None = Field(description="embedded or opa; null: policies are off")
    politicas: str | None = Field(description="the version of the policies; null when it is not known")
    pontos: dict[str, list[str]] = Field(description="point → packages that are asked")
    circuito: str = Field(description="closed, half_open or open")
    erro: str | None = Field(description="the last error of the engine")
    reinicios: int = Field(description="evaluations that had to be stopped")
    perguntas: int
    da_memoria: int = Field(description="verdicts that were not asked for again")
    erros: dict[str, int] = Field(description="packages that could not be evaluated, by the kind of error")
    recusas: list[PolicyRefusals]
    ultimas: list[PolicyRefusal] = Field(description="the latest refusals, newest first")
