"""How much a ticket weighs beside others of its queue, by predicted durations."""

from __future__ import annotations

from oraculo.core.candidates import ANY_SIZE, TicketSize
from oraculo.core.durations.ending import key_of, planned_ms
from oraculo.core.state import Orchestration
from oraculo.ports.durations import DurationEstimates

WEIGHT_LEAST, WEIGHT_MOST = 0.05, 20.0  # one ticket that was seen once must not outweigh a queue


def size_of(durations: DurationEstimates | None, state: Orchestration, position: int) -> TicketSize:
    """The predicted p50 of a ticket, beside that of all tickets of its destination."""
    if durations is None:
        return ANY_SIZE
    key = key_of(state, position)
    found = durations.estimate(key, planned_ms(state, position))
    if found is None:
        return ANY_SIZE
    usual_ms = durations.usual_ms(key)
    weight = 1.0 if not usual_ms else min(WEIGHT_MOST, max(WEIGHT_LEAST, found.p50_ms / usual_ms))
    return TicketSize(weight, round(found.p50_ms), round(found.p90_ms))
