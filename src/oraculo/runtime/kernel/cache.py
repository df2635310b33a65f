"""States of orchestrations in memory. A cache and nothing more: what is dropped is folded from the journal again."""

from __future__ import annotations

from collections import OrderedDict

from oraculo.core.state import Orchestration

CACHE_MAX_TICKETS = 400_000


class StateCache:
    """Bounded by the number of tickets held; the least recently used goes first."""

    def __init__(self, max_tickets: int = CACHE_MAX_TICKETS) -> None:
        self._states: OrderedDict[int, Orchestration] = OrderedDict()
        self._runs: dict[str, int] = {}
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
        if state.run not in self._states:
            self._tickets += len(state.tickets)
        self._states[state.run] = state
        self._runs[state.correlation_id] = state.run

    def drop(self, run: int) -> None:
        state = self._states.pop(run, None)
        if state is not None:
            self._tickets -= len(state.tickets)
            self._runs.pop(state.correlation_id, None)

    def trim(self) -> None:
        """Drop the least recently used until the bound holds. Never call it between a step and its commit."""
        while self._tickets > self._max_tickets and len(self._states) > 1:
            self.drop(next(iter(self._states)))
