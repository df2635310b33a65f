"""What the server answers about pauses, as the client hands it on."""

from __future__ import annotations

from typing import TypedDict


class PauseDetails(TypedDict):
    """Who paused something, since when and why."""

    ator: str | None
    desde: str
    motivo: str


class PauseAnswer(TypedDict):
    """How an orchestration stands; `mudou` is false when it was so before."""

    correlation_id: str
    status: str
    pausada: bool
    pausa: PauseDetails | None
    prazo: str | None
    mudou: bool


class DestinationPauseDetails(TypedDict):
    """A destination that is paused; `fila` is null where all are."""

    fila: str | None
    ator: str
    desde: str
    motivo: str


class DestinationPauseAnswer(TypedDict):
    """How a destination stands; `mudou` is false when it was so before."""

    fila: str | None
    pausada: bool
    pausa: DestinationPauseDetails | None
    mudou: bool


class BreakerDetails(TypedDict):
    """A destination whose orders wait because it failed so often in a row."""

    fila: str
    desde: str
    falhas: int
    erro: str
    sondando: bool
    sondas: int
    proxima_sonda: str | None


class ProbeAnswer(TypedDict):
    """How the breaker of a destination stands; `mudou` is false when no probe could be asked for."""

    fila: str
    aberto: bool
    disjuntor: BreakerDetails | None
    mudou: bool


class PriorityAnswer(TypedDict):
    """How urgent a run counts now; `mudou` is false when it was so already."""

    correlation_id: str
    status: str
    prioridade: int | None
    mudou: bool
