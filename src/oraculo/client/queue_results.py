"""The type of how a queue stands, as the client returns it."""

from __future__ import annotations

from typing import Any, TypedDict


class QueueStatus(TypedDict):
    """How full one queue is."""

    fila: str
    aguardando: int | None
    em_andamento: int | None
    mais_antiga_s: float | None
    consumidores: int
    enviadas_por_s: float
    respondidas_por_s: float
    trilha: dict[str, Any] | None
