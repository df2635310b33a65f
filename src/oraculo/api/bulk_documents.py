"""What the route for many orchestrations answers."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class BulkError(BaseModel):
    correlation_id: str | None
    codigo: str
    mensagem: str


class BulkDone(BaseModel):
    acao: Literal["cancel", "retry", "pause", "resume"]
    simular: bool = Field(description="true: it was only counted")
    total: int = Field(description="that the filter names and the action can be done to, when it began")
    feitas: int
    inalteradas: int = Field(description="were so before, had ended meanwhile, or have been tried again already")
    recusadas: int
    restantes: int = Field(description="that were not reached: ask again")
    erros: list[BulkError] = Field(description="the first of those that were refused")
    parou: BulkError | None = Field(description="why not all were reached, when something stopped it")


BULK_MODELS: list[type[BaseModel]] = [BulkDone]
