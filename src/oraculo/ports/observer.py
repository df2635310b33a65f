"""Port: readers of the journal as it is written (metrics, logs)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeAlias

from oraculo.core.step import Step
from oraculo.ports.journal import Batch

EventsByType: TypeAlias = dict[type, list[tuple[Step, Any]]]  # each event with its step, in the order of the journal


class Observer(Protocol):
    def saw(self, batch: Batch, events: EventsByType) -> None:
        """Take note of a commit; called once after each, with its events by type. Neither blocks nor raises."""
        ...


def group_by_type(steps: Iterable[Step]) -> EventsByType:
    """Group the events of these steps by their class, once for all observers: most care for a few classes."""
    found: EventsByType = {}
    for step in steps:
        for event in step.events:
            kind = type(event)
            some = found.get(kind)
            if some is None:
                found[kind] = [(step, event)]
            else:
                some.append((step, event))
    return found
