"""The types of what the client returns of undoing."""

from __future__ import annotations

from typing import Literal, TypedDict


class UndoingCounts(TypedDict):
    """How far undoing is, and how the run ends then."""

    desfecho: Literal["pendente", "em_execucao", "concluida", "parcial", "erro", "timeout", "cancelada"]
    motivo: str
    total: int
    concluidos: int
    falhas: int
    abertos: int
