"""How good a worker is for a ticket (C3): its health, what it did so far, its load, and what it holds already."""

from __future__ import annotations

from dataclasses import dataclass

_HEALTH = {"HEALTHY": 1.0, "DEGRADED": 0.6, "UNHEALTHY": 0.3}
_RANKED = {"HEALTHY": 1.0, "DEGRADED": 0.5}
_SLOW_MS = 5000
_SEASONED = 1000  # executions
_LONG_QUEUE_MS = 10_000
_MOST_LOAD = 0.9
_ENOUGH = 3  # tickets of the same plan that make a worker as close to it as can be


@dataclass(frozen=True, slots=True)
class Telemetry:
    success_rate: float
    average_ms: float
    executions: int


def health_score(status: str) -> float:
    return _HEALTH.get(status, 0.5)


def telemetry_score(said: Telemetry | None) -> float:
    if said is None:
        return 0.5
    quick = max(0.0, 1 - said.average_ms / _SLOW_MS)
    return 0.6 * said.success_rate + 0.2 * quick + 0.2 * min(1.0, said.executions / _SEASONED)


def queue_score(queue_ms: float) -> float:
    return max(0.0, 1 - queue_ms / _LONG_QUEUE_MS)


def load_score(load: float) -> float:
    return 1 - load


def eligible(status: str, load: float, active: int, most: int) -> bool:
    return status in ("HEALTHY", "DEGRADED") and load <= _MOST_LOAD and active < most


def agent_score(
    health: float,
    telemetry: float,
    *,
    queue: float | None = None,
    load: float | None = None,
    boost: float = 1.0,
    affine: float | None = None,
) -> float:
    """With predictions of its queue and load, they count too."""
    if queue is None or load is None:
        score = 0.5 * health + 0.5 * telemetry
    else:
        score = 0.4 * health + 0.3 * telemetry + 0.2 * queue + 0.1 * load
    return score * boost * (1.0 if affine is None else 0.5 + affine)


def composite(agent: float, priority: float) -> float:
    return 0.6 * agent + 0.4 * priority


def affinity(of_plan: int, of_intent: int, critical: bool, holds_critical: bool) -> float:
    """How many tickets of the same plan and intent it had; critical work is kept apart."""
    apart = 0.5 if not critical else 0.0 if holds_critical else 1.0
    return 0.6 * _close(of_plan) + 0.3 * apart + 0.1 * _close(of_intent)


def _close(count: int) -> float:
    return 0.5 + 0.5 * min(1.0, count / _ENOUGH) if count > 0 else 0.5


def registry_rank(status: str, pheromone: float, success_rate: float) -> float:
    """How a registry orders those it knows; it is stricter about health."""
    return 0.4 * _RANKED.get(status, 0.0) + 0.3 * pheromone + 0.3 * success_rate
