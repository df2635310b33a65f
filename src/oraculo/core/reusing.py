"""When a retry takes over what an earlier run had concluded: when the task would start."""

from __future__ import annotations

from oraculo.core import maps
from oraculo.core.commands import Reuse
from oraculo.core.events import Event, MapRestored, ResultsReused, TicketsReused
from oraculo.core.state import Orchestration


def decided(state: Orchestration, command: Reuse) -> ResultsReused | None:
    """A chunk counts while a retry waits for it."""
    if state.reuse is None or state.reuse.complete:
        return None
    return ResultsReused(command.from_run, command.results, command.rows, command.more)


def taken_over(state: Orchestration, positions: list[int]) -> tuple[list[Event], list[int]]:
    """What becomes true of tasks that may start and are known from an earlier run; and the others."""
    known = state.reuse
    assert known is not None
    concluded = [position for position in positions if position in known.results]
    events: list[Event] = [TicketsReused(concluded)] if concluded else []
    left: list[int] = []
    first = len(state.tickets)
    for position in positions:
        a_map = known.maps.get(position)
        if a_map is not None and maps.refusal(state.plan, first, position, a_map.total) is None:
            events.append(MapRestored(position, first, a_map.total))
            first += a_map.total
        elif position not in known.results:
            left.append(position)
    return events, left
