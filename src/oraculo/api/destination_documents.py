"""The answers about destinations that get no orders: paused ones, and open breakers."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field


class PausedDestination(BaseModel):
    fila: str | None = Field(description="null: every destination")
    ator: str
    desde: datetime
    motivo: str


class DestinationPaused(BaseModel):
    fila: str | None = Field(description="null: every destination")
    pausada: bool
    pausa: PausedDestination | None
    mudou: bool = Field(description="false: it was so before")


class PausedDestinations(BaseModel):
    pausas: list[PausedDestination]


class OpenBreaker(BaseModel):
    fila: str
    desde: datetime
    falhas: int = Field(description="in a row")
    erro: str = Field(description="the last one")
    sondando: bool = Field(description="a probe is out")
    sondas: int = Field(description="that failed since it opened")
    proxima_sonda: datetime | None = Field(description="when the next probe may go; null while one is out")


class OpenBreakers(BaseModel):
    disjuntores: list[OpenBreaker]


class BreakerProbed(BaseModel):
    fila: str
    aberto: bool
    disjuntor: OpenBreaker | None
    mudou: bool = Field(description="false: it is closed, or a probe is out already")


DESTINATION_MODELS: list[type[BaseModel]] = [DestinationPaused, PausedDestinations, OpenBreakers, BreakerProbed]
