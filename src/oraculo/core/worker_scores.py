"""How good a worker is: its health from what it answered, and its rank among others that can do the same."""

from __future__ import annotations

from enum import StrEnum

SUSPECT_AFTER_ANSWERS = 5  # fewer say nothing about a worker
SMOOTHING_GOOD, SMOOTHING_ALL = 9, 10  # as if it had answered so many before, so many of them well
DEGRADED_BELOW, UNHEALTHY_BELOW = 0.5, 0.3


class WorkerHealth(StrEnum):
    ATIVO = "ativo"
    DEGRADADO = "degradado"
    DOENTE = "doente"


def success_rate(answered: int, failed: int) -> float:
    """The smoothed share of its answers that went well: 0.9 for one that has answered nothing."""
    return (answered - failed + SMOOTHING_GOOD) / (answered + SMOOTHING_ALL)


def health(answered: int, failed: int) -> WorkerHealth:
    """Return what its answers say of it. The first few say nothing."""
    if answered < SUSPECT_AFTER_ANSWERS:
        return WorkerHealth.ATIVO
    rate = success_rate(answered, failed)
    if rate < UNHEALTHY_BELOW:
        return WorkerHealth.DOENTE
    return WorkerHealth.DEGRADADO if rate < DEGRADED_BELOW else WorkerHealth.ATIVO


def room(concurrency: int, in_flight: int) -> float:
    """The share of its places that are free, 0 to 1."""
    return max(0.0, min(1.0, (concurrency - in_flight) / concurrency))


def rank(answered: int, failed: int, concurrency: int, in_flight: int) -> float:
    """The order of discovery: how well it works and how much room it has, to equal parts."""
    return round(0.5 * success_rate(answered, failed) + 0.5 * room(concurrency, in_flight), 4)
