"""Port: how long a task takes, by what was seen of such tasks. Asking looks into memory: it neither waits nor fails."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from oraculo.core.durations.ending import RunForecast, Unforeseen
from oraculo.core.durations.history import Estimate, TaskKey
from oraculo.core.state import Orchestration


class DurationEstimates(Protocol):
    def estimate(self, key: TaskKey, planned_ms: float | None = None) -> Estimate | None:
        """How long such a task takes; None when nothing is known. `planned_ms`: its plan's own estimate."""
        ...

    def usual_ms(self, key: TaskKey) -> float | None:
        """The median of all tasks of the same destination, whatever their parameters; None when none was seen."""
        ...

    def foresee(self, state: Orchestration, now: datetime) -> RunForecast | Unforeseen | None:
        """When an orchestration ends, or why that cannot be said; None when it has ended."""
        ...
