"""The profile of a plan of Fluxo C: what its tickets say beyond a task.

A cognitive plan becomes tasks and gates like any other request (core/flow/cognitive.py); what the outside expects to
read on its tickets, and what consolidation needs, is its profile. `Flow.specs[n]` belongs to `Plan.tasks[n]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, ClassVar
from zlib import crc32

from oraculo.core.flow.allocation import score_of_plan
from oraculo.core.plan import Plan
from oraculo.core.priority import PriorityScore
from oraculo.core.profile import PlanLabels, Profile, TaskSpec
from oraculo.core.vocabulary import Priority, RiskBand, SecurityLevel, TaskType

EMPTY = b"{}"


@dataclass(slots=True)
class Spec(TaskSpec):
    """Of one ticket. `dependencies` and `compensates` are positions of other tasks of the same plan."""

    task_id: str
    task_type: TaskType
    description: str
    estimated_ms: int
    dependencies: tuple[int, ...] = ()
    capabilities: tuple[str, ...] = ()
    metadata: bytes = EMPTY  # JSON object of strings
    compensates: int | None = None  # the ticket that this one undoes
    undo: str = ""  # the action that undoes it


@dataclass(frozen=True, slots=True)
class Flow(Profile):
    """Of a whole plan. `document` is the cognitive plan as it came, JSON text; the core never looks inside."""

    has_specs: ClassVar[bool] = True

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
    document: bytes = EMPTY
    score: PriorityScore | None = None  # None in journals of releases before priorities counted

    @property
    def has_ceiling(self) -> bool:
        return True

    @property
    def fresh_score(self) -> PriorityScore:
        """How urgent a ticket of this plan is when it is released, by the rules that the plan began with."""
        return self.score or score_of_plan(self.risk_band, None)

    def score_of(self, position: int) -> PriorityScore:
        return self.fresh_score

    @property
    def workflow_id(self) -> str:
        return f"orch-{self.plan_id}"

    def labels(self, run: int) -> PlanLabels:
        return PlanLabels(self.plan_id, self.workflow_id, self.intent_id, self.decision_id or None, self.correlation_id)

    @property
    def band(self) -> str:
        return self.risk_band.value

    def task_type(self, position: int) -> str:
        return self.specs[position].task_type.value

    def task_fields(self, position: int) -> dict[str, Any]:
        return {"task_id": self.specs[position].task_id}

    def undoing(self, undone: Sequence[int], limit: timedelta) -> tuple[Spec, ...]:
        return tuple(self._undoing(position, limit) for position in undone)

    def _undoing(self, position: int, limit: timedelta) -> Spec:
        undone = self.specs[position]
        mark = crc32(f"{self.plan_id}:{undone.task_id}".encode())
        return Spec(
            f"compensate-{mark:08x}",
            TaskType.COMPENSATE,
            f"{undone.undo}: {undone.description or undone.task_id}",
            limit // timedelta(milliseconds=1),
            capabilities=undone.capabilities,
            metadata=undone.metadata,
            compensates=position,
        )

    def grown(self, specs: Sequence[TaskSpec]) -> Flow:
        return replace(self, specs=(*self.specs, *(spec for spec in specs if isinstance(spec, Spec))))

    @property
    def requestable(self) -> bool:
        return False


def flow_in(plan: Plan) -> Flow | None:
    """What a plan of Fluxo C is beyond an ordinary one; None of any other plan."""
    return plan.profile if isinstance(plan.profile, Flow) else None


def specs_in(plan: Plan) -> tuple[Spec, ...]:
    """What Fluxo C says of each task; empty for any other plan."""
    return plan.profile.specs if isinstance(plan.profile, Flow) else ()
