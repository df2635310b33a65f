"""Whether answers are only counted: what comes next is decided by a few siblings of theirs that are not among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from oraculo.core import fan_in
from oraculo.core.fan_in import GateCount
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Phase

MISSING_MAX_TICKETS = 16  # of a fan-in; with more out than that nobody waits
_SENT = (Phase.OWED, Phase.RUNNING)  # an answer can be here before it is known that the order was sent


def are_only_counted(state: Orchestration, positions: Sequence[int]) -> bool:
    """Return whether nothing follows when these tickets conclude, since every fan-in that they feed goes on waiting
    for a few others. Answers to a wide one come in numbers anyway."""
    if state.closed_at is not None or state.blocks is not None or state.windows:
        return False  # an item of a map or a round of a loop makes room for the next one
    fed: Counter[int] = Counter()
    for position in positions:
        feeds = state.plan.tasks[position].feeds
        if not feeds or state.tickets[position].phase not in _SENT:
            return False
        fed.update(feeds)
    return all(_stays_open(state, number, more) for number, more in fed.items())


def _stays_open(state: Orchestration, number: int, more: int) -> bool:
    gate, count = state.plan.gates[number], state.gates[number]
    if count.passed is not None:
        return False
    then = GateCount(count.ok + more, count.closed + more, skipped=count.skipped)
    if len(gate.inputs) - then.closed > MISSING_MAX_TICKETS:
        return False
    return fan_in.decide(gate.mode, gate.needed, len(gate.inputs), then) is None
