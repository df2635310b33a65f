"""Port: somebody who reads the journal as it is written (metrics, logs)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from oraculo.core.step import Step
from oraculo.ports.store import Batch

Told = dict[type, list[tuple[Step, Any]]]  # events by their class, each with its step, in the order of the journal


class Observer(Protocol):
    def saw(self, batch: Batch, told: Told) -> None:
        """Called once after each commit, with what `tell` makes of its steps. Neither blocks nor raises."""
        ...


def tell(steps: Iterable[Step]) -> Told:
    """Sorted once for everybody: most observers care for a few classes, and go through many events of one at a time."""
    told: Told = {}
    for step in steps:
        for event in step.events:
            kind = type(event)
            some = told.get(kind)
            if some is None:
                told[kind] = [(step, event)]
            else:
                some.append((step, event))
    return told
