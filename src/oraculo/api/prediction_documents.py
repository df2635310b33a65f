"""The shapes of answers about predicted durations, for the OpenAPI document; see documents.py."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field


class Forecast(BaseModel):
    fim_p50: datetime | None = Field(description="half of such runs end by then; null: it cannot be said")
    fim_p90: datetime | None = Field(description="nine of ten do")
    risco: Literal["nenhum", "possivel", "provavel", "perdido"] | None = Field(description="of missing the deadline")
    motivo: Literal["sem_historico", "espera_externa", "pausada"] | None = Field(description="why it cannot be said")
    frase: str


class Prediction(BaseModel):
    tipo: str
    destino: str
    p50_ms: int
    p90_ms: int
    amostras: int = Field(description="that were ever seen")
    confianca: float = Field(description="0 to 1: how much it rests on what was seen")
    cobertura: float = Field(description="recent share of tasks that ended within the p90; 0.9 is right")
    deriva: bool = Field(description="durations have changed lately, and are being learnt anew")
    atualizada_em: datetime | None


class PredictionList(BaseModel):
    ativas: bool = Field(description="false: ORACULO_PREDICTIONS is not set")
    previsoes: list[Prediction]


PREDICTION_MODELS: list[type[BaseModel]] = [Forecast, Prediction, PredictionList]
