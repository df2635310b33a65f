"""States of orchestrations in memory. A cache and nothing more: what is dropped is folded from the journal again."""

from __future__ import annotations

from collections import OrderedDict

from oraculo.core.state import Orchestration

CACHE_MAX_TICKETS = 400_000
TICKET_WEIGHT_BYTES = 1024  # so many bytes of data count as one ticket


class StateCache:
    """Bounded by the number of tickets held and by their data; the least recently used goes first."""

    def __init__(self, max_tickets: int = CACHE_MAX_TICKETS) -> None:
        self._states: OrderedDict[int, Orchestration] = OrderedDict()
        self._runs: dict[str, int] = {}
        self._weights: dict[int, int] = {}  # what each counted when it was last weighed
        self._tickets = 0
        self._max_tickets = max_tickets

    def __len__(self) -> int:
        return len(self._states)

    def get(self, run: int) -> Orchestration | None:
        state = self._states.get(run)
        if state is not None:
            self._states.move_to_end(run)
        return state

    def run_of(self, correlation_id: str) -> int | None:
        return self._runs.get(correlation_id)

    def put(self, state: Orchestration) -> None:
        self._states[state.run] = state
        self._runs[state.correlation_id] = state.run
        self.weigh(state)

    def weigh(self, state: Orchestration) -> None:
        """Take into account what a state that is held has grown by: tickets, and data of theirs."""
        run = state.run
        if run in self._states:
            weight = len(state.tickets) + state.data_bytes // TICKET_WEIGHT_BYTES
            self._tickets += weight - self._weights.get(run, 0)
            self._weights[run] = weight

    def drop(self, run: int) -> None:
        state = self._states.pop(run, None)
        if state is not None:
            self._tickets -= self._weights.pop(run)
            self._runs.pop(state.correlation_id, None)

    def trim(self) -> None:
        """Drop the least recently used until the bound holds. Never call it between a step and its commit."""
        while self._tickets > self._max_tickets and len(self._states) > 1:
            self.drop(next(iter(self._states)))
