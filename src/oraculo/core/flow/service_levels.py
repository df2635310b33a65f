"""C2: what the risk band and the estimate of a task make of its ticket (service level, quality of service, retries)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from oraculo.core.plan import Backoff
from oraculo.core.vocabulary import Priority, RiskBand, TaskType

DEFAULT_ESTIMATE_MS = 60_000  # of a task that says nothing
MIN_TIMEOUT_MS = 60_000  # SLA_TICKET_MIN_TIMEOUT_MS
TIMEOUT_BUFFER_FACTOR = 3.0  # SLA_TICKET_TIMEOUT_BUFFER_MULTIPLIER
UNDO_TIMEOUT = timedelta(minutes=2)
BACKOFF = Backoff(timedelta(seconds=2), timedelta(seconds=60))  # between two attempts
QUICK_NOTICE_WAITS = tuple(timedelta(seconds=2 * 2**retry) for retry in range(3))  # before the usual ones

MAX_RETRIES = {RiskBand.CRITICAL: 5, RiskBand.HIGH: 3, RiskBand.MEDIUM: 2, RiskBand.LOW: 1}
_LEAST_PRIORITY = {
    RiskBand.CRITICAL: Priority.CRITICAL,
    RiskBand.HIGH: Priority.HIGH,
    RiskBand.MEDIUM: Priority.NORMAL,
    RiskBand.LOW: Priority.LOW,
}
_PRIORITY_ORDER = list(Priority)


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
    buffer: float = TIMEOUT_BUFFER_FACTOR


@dataclass(frozen=True, slots=True)
class CompensationRules:
    """Whether and how tickets are undone. `attempts`: of each; None: as many as the ticket had. `strict`: where undoing
    a ticket fails, what it depended on is not undone either."""

    enabled: bool = True
    timeout: timedelta = UNDO_TIMEOUT
    attempts: int | None = None
    strict: bool = False


_UNDO_ACTIONS = {
    TaskType.BUILD: "delete_artifacts",
    TaskType.DEPLOY: "rollback_deployment",
    TaskType.TEST: "cleanup_test_env",
    TaskType.VALIDATE: "revert_approval",
    TaskType.EXECUTE: "rollback_execution",
}
_GENERIC_UNDO_ACTION = "generic_cleanup"


def undo_action(task_type: TaskType) -> str:
    """What a worker is asked to do to undo a task of this type."""
    return _UNDO_ACTIONS.get(task_type, _GENERIC_UNDO_ACTION)


def timeout_ms(estimated_ms: int | None, rules: SlaRules = SlaRules()) -> int:
    estimate = DEFAULT_ESTIMATE_MS if estimated_ms is None else estimated_ms
    return max(rules.min_timeout_ms, round(estimate * rules.buffer))


def max_retries(band: RiskBand) -> int:
    return MAX_RETRIES[band]


def qos(band: RiskBand) -> Qos:
    return STRICT if band in (RiskBand.CRITICAL, RiskBand.HIGH) else RELAXED


def priority(band: RiskBand, asked: Priority | None) -> Priority:
    """What was asked for, and never less than the risk band calls for."""
    least = _LEAST_PRIORITY[band]
    return max(asked or Priority.NORMAL, least, key=_PRIORITY_ORDER.index)
