"""The shapes of answers about service levels, for the OpenAPI document; see documents.py."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from oraculo.wire.sla import Objetivo


class BurnDocument(BaseModel):
    horas: int
    taxa: float | None = Field(description="error ratio over error budget; null: nothing has ended")
    nivel: str
    esgota_em_h: float | None


class BudgetDocument(BaseModel):
    status: str = Field(description="UNKNOWN, HEALTHY, WARNING, CRITICAL or EXHAUSTED")
    restante: float | None = Field(description="share that is left, 0 to 1; null: nothing has ended")
    bons: int
    ruins: int
    queimas: list[BurnDocument]
    disparos: list[str] = Field(description="pairs of windows that fire: 1h, 6h, 3d")


class SloDocument(Objetivo):
    nome: str
    ator: str
    alterado_em: datetime
    orcamento: BudgetDocument | None = Field(description="null: nothing is measured, ORACULO_SLA is not set")
    congelado: bool


class SloList(BaseModel):
    medidos: bool = Field(description="false: ORACULO_SLA is not set")
    slos: list[SloDocument]


class AlertDocument(BaseModel):
    id: str
    tipo: str
    em: datetime
    registro: dict[str, Any] = Field(description="the record as it travels")


class AlertPage(BaseModel):
    alertas: list[AlertDocument]
    next: str | None


class FreezeDocument(BaseModel):
    slo: str
    servico: str
    acoes: list[str]
    desde: datetime
    motivo: str


class FreezeList(BaseModel):
    congelamentos: list[FreezeDocument]


SLO_MODELS: list[type[BaseModel]] = [SloDocument, SloList, AlertPage, FreezeList]
