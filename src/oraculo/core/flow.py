"""Fluxo C inside an ordinary plan: what its tickets say beyond a task.

A cognitive plan becomes tasks and gates like any other request (core/cognitive.py); what the outside expects to read on
its tickets, and what consolidation needs, travels in `Plan.flow`. `Flow.specs[n]` belongs to `Plan.tasks[n]`.
"""

from __future__ import annotations

from dataclasses import dataclass

from oraculo.core.vocabulary import Priority, RiskBand, SecurityLevel, TaskType

EMPTY = b"{}"


@dataclass(slots=True)
class Spec:
    """Of one ticket. `dependencies` and `compensates` are positions of other tasks of the same plan."""

    task_id: str
    task_type: TaskType
    description: str
    estimated_ms: int
    dependencies: tuple[int, ...] = ()
    capabilities: tuple[str, ...] = ()
    metadata: bytes = EMPTY  # JSON object of strings
    compensates: int | None = None  # the ticket that this one undoes


@dataclass(slots=True)
class Flow:
    """Of a whole plan. `document` is the cognitive plan as it came, JSON text; the core never looks inside."""

    plan_id: str
    intent_id: str
    decision_id: str
    risk_band: RiskBand
    priority: Priority
    security_level: SecurityLevel
    specs: tuple[Spec, ...]
    correlation_id: str  # of the intent; the orchestration may have to go by another one
    trace_id: str | None = None
    span_id: str | None = None
    approval: bool = False  # a human has to agree before anything is published
    compensate: bool = True  # what was done is undone when a ticket fails for good
    document: bytes = EMPTY

    @property
    def workflow_id(self) -> str:
        return f"orch-{self.plan_id}"
