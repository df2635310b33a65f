"""What maps and loops must have given when a world is over, and what is left of the rounds of loops."""

from __future__ import annotations

from collections.abc import Callable

import orjson

from oraculo.core.consolidation import last_result, results
from oraculo.core.state import Orchestration
from oraculo.simulation.invariants import CheckedJournal


def check(state: Orchestration, journal: CheckedJournal, violate: Callable[[str, str], None]) -> None:
    for owner in journal.maps.by_owner:
        if orjson.loads(results(state, owner)) != journal.grown_result(owner):
            violate("results count once", f"map {owner}: results in another order, or wrong")
    for owner, known in journal.loops.by_owner.items():
        if orjson.loads(last_result(state.tickets[owner])) != journal.grown_result(owner):
            violate("results count once", f"loop {owner}: not the result of its last round")
        if known.spec.item.undo is None and any(state.tickets[one].dados != b"null" for one in known.rounds[:-1]):
            violate("rounds do not pile up", f"loop {owner} keeps data of its earlier rounds")
