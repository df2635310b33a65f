"""What a plan is beyond its tasks and gates.

A plan that was made from a request is nothing beyond them: `PLAIN`. Another kind of plan brings a profile of its own,
which is recorded with it (Fluxo C: core/flow/profile.py). General modules ask the profile, and never which one it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Self

from oraculo.core.priority import PriorityScore, score_of_priority
from oraculo.core.ticket_id import plan_id

if TYPE_CHECKING:
    from oraculo.core.plan import Backoff
    from oraculo.core.waits import Wait


class TaskSpec:
    """What a profile says of one task."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class PlanLabels:
    """What a plan is called outside. `correlation_id` is the plan's own, which may differ from its orchestration's."""

    plan_id: str
    workflow_id: str
    intent_id: str | None = None
    decision_id: str | None = None
    correlation_id: str | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """The profile of a plan that a request made, and what every profile can be asked."""

    has_expressions: ClassVar[bool] = False  # `asks` and `has_output` have something to say
    has_specs: ClassVar[bool] = False  # `task_type` and `task_fields` have something to say

    def labels(self, run: int) -> PlanLabels:
        """What the plan of orchestration number `run` is called. One without a name of its own goes by that number."""
        name = plan_id(run)
        return PlanLabels(name, f"orch-{name}")

    @property
    def has_ceiling(self) -> bool:
        """True when orders of the plan share a number of tickets that may be out at once, the most urgent first. It
        never changes: stores keep it with the run."""
        return False

    def priority_of(self, position: int) -> int | None:
        """From 1, the lowest, to 9; None: nothing is said."""
        return None

    def score_of(self, position: int) -> PriorityScore:
        """How urgent a ticket is when it is released, where `has_ceiling`."""
        return score_of_priority(self.priority_of(position))

    @property
    def band(self) -> str | None:
        """The risk band, for plans that have one."""
        return None

    def task_type(self, position: int) -> str | None:
        """What a task is asked to do, for plans that have a word for it."""
        return None

    def task_fields(self, position: int) -> dict[str, Any]:
        """What the aggregate says of a task besides its outcome."""
        return {}

    @property
    def has_output(self) -> bool:
        """True when the plan says what its output is."""
        return False

    def wait(self, position: int) -> Wait | None:
        """What a task waits for that is no work; None of any other task."""
        return None

    def asks(self, position: int) -> bool:
        """True when expressions of the task have to be evaluated before it starts."""
        return False

    @property
    def names(self) -> tuple[str, ...]:
        """What a user calls each task; empty where the plan does not name its tasks."""
        return ()

    def name_of(self, position: int) -> str | None:
        """What a user calls one task."""
        return None

    def gives(self, position: int) -> tuple[int, ...] | None:
        """The tasks whose data an execution gets, in that order; None: of all that its gate waits for."""
        return None

    def optional(self, position: int) -> bool:
        """True when a failure of the task counts neither way for what depends on it."""
        return False

    def backoff(self, position: int) -> Backoff | None:
        """The waits between attempts of a task that has its own."""
        return None

    def is_final(self, position: int, codes: Sequence[object]) -> bool:
        """True when a task that failed with these codes is not tried again, whatever the worker said."""
        return False

    def undoing(self, undone: Sequence[int], limit: timedelta) -> tuple[TaskSpec, ...]:
        """What is said of the tasks that undo these."""
        return ()

    def grown(self, specs: Sequence[TaskSpec]) -> Self:
        """The profile with what is said of more tasks."""
        return self

    @property
    def requestable(self) -> bool:
        """True when a request can say all that the plan is."""
        return True


PLAIN = Profile()
