"""Who hears of decisions: counts for metrics and status, and a log with secrets masked."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol

import orjson
import structlog

from oraculo import redaction
from oraculo.core.policies import THE_PLAN, PolicyFinding, PolicyPoint, PolicySource, text_of
from oraculo.core.tenants import local_name
from oraculo.core.ticket_id import ticket_id
from oraculo.ports.policies import PolicyDocument

log = structlog.get_logger("oraculo.policy")

DURATION_BUCKETS_S = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
SAID_MAX_CHARS = 600
LATEST_MAX = 50  # refusals that the status shows
MASKED = ("parameters", "result")  # of a resource: what users sent is not for a log

Said = tuple[int, Sequence[PolicyDocument], PolicyFinding | None]


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """One question about tickets of a run, and what came of it; `said` and `bodies` in the order of the tickets."""

    run: int
    correlation_id: str
    point: PolicyPoint
    packages: Sequence[str]
    source: PolicySource
    said: Sequence[Said]
    bodies: Sequence[bytes]

    def shown(self, position: int, finding: PolicyFinding) -> dict[str, Any]:
        """What may be shown of the verdict on one ticket."""
        return {
            "decision": "allow" if finding.allowed else "deny",
            "point": self.point.value,
            "correlation_id": local_name(self.correlation_id),
            "ticket_id": None if position == THE_PLAN else ticket_id(self.run, position),
            "said": redaction.redact(text_of(finding), SAID_MAX_CHARS),
            "engine": self.source.engine,
            "version": self.source.version,
            "decision_id": self.source.decision_id,
        }


class PolicySeen(Protocol):
    """Is told of each decision that was made in this process, not of those found in memory."""

    def judged(self, made: PolicyDecision) -> None: ...


class PolicyStatistics:
    """Counts since the start of the process. Keys: (package, result), (package, rule, severity), kind of error."""

    def __init__(self) -> None:
        self.validations: Counter[tuple[str, str]] = Counter()
        self.rejections: Counter[tuple[str, str, str]] = Counter()
        self.warnings: Counter[tuple[str, str]] = Counter()
        self.errors: Counter[str] = Counter()
        self.cache_hits = 0
        self.questions = 0
        self.seconds = 0.0
        self.latest: deque[dict[str, Any]] = deque(maxlen=LATEST_MAX)
        self._durations = [0] * (len(DURATION_BUCKETS_S) + 1)

    def cached(self, count: int) -> None:
        self.cache_hits += count

    def asked(self, packages: Sequence[str], questions: int, seconds: float) -> None:
        self.questions += questions
        self.seconds += seconds
        self._durations[bisect_left(DURATION_BUCKETS_S, seconds)] += 1

    def buckets(self) -> list[tuple[str, float]]:
        """How many calls took at most so many seconds, for a histogram."""
        edges = [*(str(edge) for edge in DURATION_BUCKETS_S), "+Inf"]
        return list(zip(edges, accumulate(self._durations), strict=True))

    def judged(self, made: PolicyDecision) -> None:
        for position, documents, finding in made.said:
            refusing = set() if finding is None else {one.policy for one in finding.violations}
            for package, document in zip(made.packages, documents, strict=True):
                short = package.rpartition(".")[2]
                result = "error" if document.error else "deny" if short in refusing else "allow"
                self.validations[short, result] += 1
                if document.error:
                    self.errors[document.kind or "evaluation"] += 1
            if finding is None:
                continue
            for one in finding.warnings:
                self.warnings[one.policy, one.rule] += 1
            if finding.allowed:
                continue
            for one in finding.violations:
                self.rejections[one.policy, one.rule, one.severity] += 1
            self.latest.append(made.shown(position, finding))


class DecisionLog:
    """One log line a decision: refusals and errors, or all."""

    def __init__(self, mode: str) -> None:
        self._all = mode == "all"

    def judged(self, made: PolicyDecision) -> None:
        for (position, _, finding), body in zip(made.said, made.bodies, strict=True):
            if finding is None and not self._all:
                continue
            shown = made.shown(position, finding or PolicyFinding(position, True))
            log.info("policy decision", **shown, packages=list(made.packages), input=masked(body))


def masked(body: bytes) -> Any:
    """An input as it may be shown: what users sent is left out, and secrets are hidden."""
    value: dict[str, Any] = orjson.loads(body)
    resource = value.get("resource", {})
    for name in MASKED:
        if name in resource:
            resource[name] = redaction.HIDDEN
    return redaction.clean(value)
