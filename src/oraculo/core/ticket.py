"""C2: what the risk band and the estimate of a task make of its ticket (service level, quality of service, retries)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from oraculo.core.plan import Backoff
from oraculo.core.vocabulary import Priority, RiskBand

ESTIMATE_MS = 60_000  # of a task that says nothing
MIN_TIMEOUT_MS = 60_000  # SLA_TICKET_MIN_TIMEOUT_MS
BUFFER = 3.0  # SLA_TICKET_TIMEOUT_BUFFER_MULTIPLIER
COMPENSATION_TIMEOUT_MS = 120_000
BACKOFF = Backoff(timedelta(seconds=2), timedelta(seconds=60))  # between two attempts
_EXECUTION = 1.5  # times its timeout: a worker that is not done by then gives up

MAX_RETRIES = {RiskBand.CRITICAL: 5, RiskBand.HIGH: 3, RiskBand.MEDIUM: 2, RiskBand.LOW: 1}
_LEAST = {
    RiskBand.CRITICAL: Priority.CRITICAL,
    RiskBand.HIGH: Priority.HIGH,
    RiskBand.MEDIUM: Priority.NORMAL,
    RiskBand.LOW: Priority.LOW,
}
_ORDER = list(Priority)


@dataclass(frozen=True, slots=True)
class Qos:
    delivery_mode: str
    consistency: str
    durability: str = "PERSISTENT"


STRICT = Qos("EXACTLY_ONCE", "STRONG")
RELAXED = Qos("AT_LEAST_ONCE", "EVENTUAL")


@dataclass(frozen=True, slots=True)
class SlaRules:
    """What can be set of the service level of a ticket."""

    min_timeout_ms: int = MIN_TIMEOUT_MS
    buffer: float = BUFFER


def timeout_ms(estimated_ms: int | None, rules: SlaRules = SlaRules()) -> int:
    estimate = ESTIMATE_MS if estimated_ms is None else estimated_ms
    return max(rules.min_timeout_ms, round(estimate * rules.buffer))


def execution_timeout(timeout: timedelta) -> timedelta:
    """How long the work on an attempt may go on. The orchestrator has given up before: nobody waits for its answer."""
    return timeout * _EXECUTION


def max_retries(band: RiskBand) -> int:
    return MAX_RETRIES[band]


def qos(band: RiskBand) -> Qos:
    return STRICT if band in (RiskBand.CRITICAL, RiskBand.HIGH) else RELAXED


def priority(band: RiskBand, asked: Priority | None) -> Priority:
    """What was asked for, and never less than the risk band calls for."""
    least = _LEAST[band]
    return max(asked or Priority.NORMAL, least, key=_ORDER.index)
