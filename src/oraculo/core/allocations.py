"""Which worker got a ticket, out of whom, and why not the others: what the journal keeps of a choice."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

CANDIDATES_MAX_RECORDED = 5
COMPOSITE_AGENT_SHARE, COMPOSITE_PRIORITY_SHARE = 0.6, 0.4


class AllocationMethod(StrEnum):
    """How a worker was chosen: it had the best score; of near-equal ones two were drawn and the one with less to do got
    it; no other asked; it had been passed over for long enough; those that would have been faster did not come."""

    BEST = "melhor_nota"
    TWO_DRAWN = "dois_sorteados"
    ONLY = "unico"
    TURN = "vez_garantida"
    OVERDUE = "espera_vencida"


class NotChosen(StrEnum):
    """Why a worker did not get a ticket."""

    CAPABILITIES = "capacidades"  # the ticket needs what it cannot do
    SECURITY = "seguranca"  # its level is below that of the ticket
    UNHEALTHY = "doente"  # most of what it answered lately failed
    NO_ROOM = "sem_vaga"  # it has as many orders as it said it works on at once
    RESOURCES = "recursos"  # what is left of its resources is not enough
    DRAINED = "drenado"
    POLICY = "politica"
    SLOWER = "mais_lento"  # the others would be done with it sooner, although they have to come first
    LOWER_SCORE = "nota_menor"
    NOT_ASKING = "sem_pedido"  # it asked for nothing at that moment


@dataclass(frozen=True, slots=True)
class Candidate:
    """A worker and the parts of its score, each from 0 to 1 but `factor`, which multiplies. `reason` is why it did not
    get the ticket; None of the one that did. `affinity` multiplies too, by 0.5 and itself; None: it was off."""

    agent_id: str
    score: float
    health: float
    success: float
    speed: float
    room: float
    factor: float = 1.0
    duration_ms: int | None = None
    in_flight: int = 0
    reason: NotChosen | None = None
    affinity: float | None = None


@dataclass(frozen=True, slots=True)
class Allocation:
    """`candidates` are the best few, the chosen one first; `refused` counts all others by reason. `predicted_ms` and
    `predicted_p90_ms` are how long such a task was thought to take; None where nothing is predicted."""

    agent_id: str
    method: AllocationMethod
    priority_score: float
    agent_score: float
    candidates: tuple[Candidate, ...]
    refused: dict[NotChosen, int] = field(default_factory=dict)
    predicted_ms: int | None = None
    predicted_p90_ms: int | None = None

    @property
    def composite_score(self) -> float:
        """Orders nothing: of one ticket it orders workers as their own score does. Kept for who reads it."""
        return round(COMPOSITE_AGENT_SHARE * self.agent_score + COMPOSITE_PRIORITY_SHARE * self.priority_score, 4)

    @property
    def evaluated(self) -> int:
        """How many workers were looked at."""
        return 1 + sum(self.refused.values())


@dataclass(frozen=True, slots=True)
class AllocatedAttempt:
    """The last allocation of a ticket."""

    attempt: int
    at: datetime
    allocation: Allocation
