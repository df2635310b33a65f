"""How events of a retry change its state: what was copied is kept, and given to each ticket when its turn comes."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from oraculo.core.events import MapRestored, PlanGrown, ResultsReused
from oraculo.core.reuse import KnownMap

if TYPE_CHECKING:
    from oraculo.core.state import Orchestration


def take_in(state: Orchestration, event: ResultsReused) -> None:
    """Keep what was copied until its turn comes."""
    known = state.reuse
    assert known is not None
    for some in event.rows:
        a_map = known.maps.setdefault(some.owner, KnownMap(some.total, some.template or [], some.idle))
        a_map.rows.extend(some.rows)
    for one in event.results:
        if one.item is None:
            known.results[one.ticket] = one
        else:
            known.maps[one.ticket].items[one.item] = one
    known.complete = not event.more


def grown(state: Orchestration, event: MapRestored) -> PlanGrown:
    """The growth of a map whose rows are known; what came of its items is theirs from now on."""
    assert state.reuse is not None
    known = state.reuse.maps.pop(event.owner)
    state.reuse.results.update((event.first + number, one) for number, one in known.items.items())
    total = event.total
    return PlanGrown(event.owner, event.first, 0, total, total, known.rows, known.template, known.idle)


def take_over(state: Orchestration, position: int, at: datetime) -> None:
    """Give a ticket that has just closed what had come of it."""
    assert state.reuse is not None
    known, ticket = state.reuse.results.pop(position), state.tickets[position]
    ticket.dados, ticket.erros = known.dados, known.erros or None
    state.data_bytes += len(known.dados)
    ticket.reused, ticket.attempt, ticket.dispatched_at = True, 1, at
