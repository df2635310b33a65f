"""The shapes of answers about schedules, for the OpenAPI document; see documents.py."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from oraculo.wire.schedules import Agenda


class Paused(BaseModel):
    em: datetime
    por: str
    motivo: str


class ScheduleDocument(Agenda):
    nome: str
    pausada: Paused | None
    ator: str = Field(description="who put it; its runs are asked for by it")
    alterada_em: datetime
    ultima: str | None = Field(description="correlation_id of its latest run")
    em_fila: int = Field(description="instants that wait for the run before them")
    instantes: dict[str, int] = Field(description="how many were fired, skipped, missed, failed")
    erro: str | None = Field(description="why the latest instant could not be started")
    proximos: list[datetime]


class SchedulePage(BaseModel):
    agendas: list[ScheduleDocument]
    next: str | None


class Triggered(BaseModel):
    correlation_id: str


class BackfillAnswer(BaseModel):
    status: Literal[200, 202] = Field(description="200: the run existed")
    instante: datetime
    correlation_id: str


class Backfilled(BaseModel):
    iniciadas: int
    itens: list[BackfillAnswer | dict[str, Any]]


class Upcoming(BaseModel):
    instantes: list[datetime]


SCHEDULE_MODELS: list[type[BaseModel]] = [ScheduleDocument, SchedulePage, Triggered, Backfilled, Upcoming]
