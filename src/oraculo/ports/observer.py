"""Port: somebody who reads the journal as it is written (metrics, logs)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from oraculo.core.step import Step
from oraculo.ports.store import Batch


class Observer(Protocol):
    def saw(self, batch: Batch, steps: Sequence[Step]) -> None:
        """Called once after each commit. Neither blocks nor raises."""
        ...
