"""What policies are asked: the input document of a plan, a ticket, an allocation and an answer.

The sections are those of Fluxo C, `resource`, `context`, `parameters`, `flags` and `security`; docs/policies.md has the
table. Its key is made of the same values without the time, and without the document, since most questions were answered
a moment ago and are not asked. Instants are whole seconds, and a deadline is in the key as the time that is left, so
equal questions have equal keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any

import orjson

from oraculo.core.flow import service_levels
from oraculo.core.flow.profile import flow_in, specs_in
from oraculo.core.policies import THE_PLAN, PolicyPoint
from oraculo.core.state import Orchestration
from oraculo.core.tenants import local_name, tenant_of
from oraculo.core.ticket_id import ticket_id
from oraculo.runtime.policies.fields import EVERYTHING, Path, reads

KEY_BYTES = 16
PII_LABEL, CLASSIFICATION_LABEL = "pii", "classificacao="
_MILLISECOND = timedelta(milliseconds=1)

ALL_PATHS: frozenset[Path] = frozenset((EVERYTHING,))


@dataclass(frozen=True, slots=True)
class PolicyFacts:
    """What every question says alike: the sections that come from settings."""

    namespace: str = "default"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    flags: Mapping[str, Any] = field(default_factory=dict)
    security: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Subject:
    """What is asked about. `candidate` is the worker of an allocation."""

    state: Orchestration
    position: int
    point: PolicyPoint
    now: datetime
    candidate: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """One input as JSON text, and what tells it from others."""

    body: bytes
    key: bytes


Value = Callable[[Subject], Any]


def _labelled(subject: Subject, prefix: str) -> str | None:
    found = [label for label in subject.state.plan.labels if label.startswith(prefix)]
    return found[0].removeprefix(prefix) if found else None


def _metadata(subject: Subject) -> dict[str, Any]:
    specs = specs_in(subject.state.plan)
    if not 0 <= subject.position < len(specs):
        return {}
    found: dict[str, Any] = orjson.loads(specs[subject.position].metadata)
    return found


def _pii(subject: Subject) -> bool:
    said = str(_metadata(subject).get("contains_pii", "")).lower()
    return said == "true" or PII_LABEL in subject.state.plan.labels


def _classification(subject: Subject) -> Any:
    return _metadata(subject).get("data_classification") or _labelled(subject, CLASSIFICATION_LABEL)


def _priority(subject: Subject) -> Any:
    flow = flow_in(subject.state.plan)
    if flow is not None:
        return flow.priority.value
    return None if subject.position == THE_PLAN else subject.state.plan.profile.priority_of(subject.position)


def _qos(subject: Subject) -> Any:
    """As tickets of Fluxo C say it; nothing of other plans."""
    flow = flow_in(subject.state.plan)
    if flow is None:
        return None
    found = service_levels.qos(flow.risk_band)
    return {
        "delivery_mode": found.delivery_mode,
        "consistency": found.consistency,
        "durability": found.durability,
    }


def _timeout(subject: Subject) -> int | None:
    plan = subject.state.plan
    timeout = plan.timeout if subject.position == THE_PLAN else plan.tasks[subject.position].timeout
    return timeout // _MILLISECOND if timeout else None


def _estimate(subject: Subject) -> int | None:
    specs = specs_in(subject.state.plan)
    return specs[subject.position].estimated_ms if 0 <= subject.position < len(specs) else None


def _capabilities(subject: Subject) -> list[str] | None:
    specs = specs_in(subject.state.plan)
    return list(specs[subject.position].capabilities) if 0 <= subject.position < len(specs) else None


def _deadline(subject: Subject) -> int | None:
    """The deadline of the run, as far from the second of the question as it is now."""
    left = _left(subject)
    return None if left is None else _second(subject.now) + 1000 * left


def _left(subject: Subject) -> int | None:
    deadline = subject.state.deadline
    return None if deadline is None else math.ceil((deadline - subject.now).total_seconds())


def _second(now: datetime) -> int:
    return int(now.timestamp()) * 1000


def _answer(subject: Subject) -> Any:
    held = None if subject.state.policy is None else subject.state.policy.held.get(subject.position)
    return None if held is None else orjson.Fragment(held.dados)


def _of_task(name: str) -> Value:
    def value(subject: Subject) -> Any:
        return None if subject.position == THE_PLAN else getattr(subject.state.plan.tasks[subject.position], name)

    return value


def _destinations(subject: Subject) -> Any:
    return sorted(subject.state.plan.queues) if subject.position == THE_PLAN else None


def _parameters(subject: Subject) -> Any:
    if subject.position == THE_PLAN:
        return None
    return orjson.Fragment(subject.state.parameters(subject.position))


def _ticket(subject: Subject) -> str | None:
    return None if subject.position == THE_PLAN else ticket_id(subject.state.run, subject.position)


def _retries(subject: Subject) -> int | None:
    return None if subject.position == THE_PLAN else subject.state.plan.tasks[subject.position].max_attempts - 1


_VALUES: dict[Path, Value] = {
    ("resource", "ticket_id"): _ticket,
    ("resource", "plan_id"): lambda s: s.state.plan.profile.labels(s.state.run).plan_id,
    ("resource", "kind"): _of_task("kind"),
    ("resource", "name"): _of_task("name"),
    ("resource", "queue"): _of_task("queue"),
    ("resource", "tipo"): lambda s: s.state.plan.tipo,
    ("resource", "task_type"): lambda s: None if s.position == THE_PLAN else s.state.plan.profile.task_type(s.position),
    ("resource", "risk_band"): lambda s: s.state.plan.profile.band,
    ("resource", "priority"): _priority,
    ("resource", "security_level"): lambda s: (
        None if (flow := flow_in(s.state.plan)) is None else flow.security_level.value
    ),
    ("resource", "qos"): _qos,
    ("resource", "sla", "timeout_ms"): _timeout,
    ("resource", "sla", "max_retries"): _retries,
    ("resource", "sla", "deadline"): _deadline,
    ("resource", "estimated_duration_ms"): _estimate,
    ("resource", "required_capabilities"): _capabilities,
    ("resource", "parameters"): _parameters,
    ("resource", "labels"): lambda s: s.state.plan.labels,
    ("resource", "tenant_id"): lambda s: tenant_of(s.state.correlation_id),
    ("resource", "contains_pii"): _pii,
    ("resource", "data_classification"): _classification,
    ("resource", "destinations"): _destinations,
    ("resource", "result"): _answer,
    ("context", "point"): lambda s: s.point,
    ("context", "correlation_id"): lambda s: local_name(s.state.correlation_id),
    ("context", "plan_id"): lambda s: s.state.plan.profile.labels(s.state.run).plan_id,
    ("context", "workflow_id"): lambda s: s.state.plan.profile.labels(s.state.run).workflow_id,
    ("context", "ticket_id"): _ticket,
    ("context", "tenant_id"): lambda s: tenant_of(s.state.correlation_id),
    ("context", "user_id"): lambda s: s.state.actor,
    ("context", "total_tickets"): lambda s: len(s.state.tickets),
    ("context", "agent"): lambda s: s.candidate,
    ("context", "agent_id"): lambda s: None if s.candidate is None else s.candidate.get("agent_id"),
    ("context", "current_time"): lambda s: _second(s.now),
}
_DEADLINE, _NOW = ("resource", "sla", "deadline"), ("context", "current_time")


class InputWriter:
    """Writes questions with the parts that are read, and no other."""

    def __init__(self, facts: PolicyFacts, paths: frozenset[Path] = ALL_PATHS) -> None:
        self._values = {path: value for path, value in _VALUES.items() if reads(paths, path)}
        self._lasting = [value for path, value in self._values.items() if path not in (_DEADLINE, _NOW)]
        fixed: dict[str, Any] = {"context": {}}
        if reads(paths, ("context", "namespace")):
            fixed["context"]["namespace"] = facts.namespace
        for section in ("parameters", "flags", "security"):
            if reads(paths, (section,)):
                fixed[section] = dict(getattr(facts, section))
        self._fixed = fixed
        self._salt = blake2b(orjson.dumps([fixed, list(self._values)]), digest_size=KEY_BYTES).digest()

    def key(self, subject: Subject) -> bytes:
        """What tells the question about a subject from others."""
        left = _left(subject) if _DEADLINE in self._values else None
        values = orjson.dumps([left, *[value(subject) for value in self._lasting]])
        return blake2b(self._salt + values, digest_size=KEY_BYTES).digest()

    def write(self, subject: Subject) -> Question:
        return Question(self._body(subject), self.key(subject))

    def _body(self, subject: Subject) -> bytes:
        document: dict[str, Any] = {**self._fixed, "context": dict(self._fixed["context"]), "resource": {}}
        for path, value_of in self._values.items():
            value = value_of(subject)
            if value is None:
                continue
            place = document
            for step in path[:-1]:
                place = place.setdefault(step, {})
            place[path[-1]] = value
        return orjson.dumps(document)
