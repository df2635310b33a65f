"""What the server answers about policies, as the client hands it on."""

from __future__ import annotations

from typing import Any, TypedDict


class PoliciesStatus(TypedDict):
    """How policies stand in the process that answers; `motor` is null where they are off."""

    motor: str | None
    politicas: str | None
    pontos: dict[str, list[str]]
    circuito: str
    erro: str | None
    reinicios: int
    perguntas: int
    da_memoria: int
    erros: dict[str, int]
    recusas: list[dict[str, Any]]
    ultimas: list[dict[str, Any]]
