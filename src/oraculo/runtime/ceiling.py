"""How many tickets of Fluxo C may be with workers at the same time, over all plans; the most urgent go first.

What may not go yet waits here, in memory: the journal says that it is owed, so a crash forgets nothing. The place of a
ticket is free again as soon as its attempt is over.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Generic, TypeVar

from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Phase

T = TypeVar("T")
Score = Callable[[], float]
_WITH_A_WORKER = (Phase.OWED, Phase.RUNNING)


class Ceiling(Generic[T]):
    """`limit` can be changed at any time; lowering it takes nothing back."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._waiting: list[tuple[float, int, int, int, Score, T]] = []  # -score, order, run, position, score, what
        self._held: set[tuple[int, int]] = set()  # (run, position) of those that wait
        self._order = count()
        self._out: dict[int, set[int]] = {}  # run → positions that are with workers
        self.out = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, run: int, position: int, score: Score, what: T) -> None:
        self._held.add((run, position))
        heappush(self._waiting, (-score(), next(self._order), run, position, score, what))

    def holds(self, run: int, position: int) -> bool:
        return (run, position) in self._held

    def due(self, wanted: Callable[[T], bool]) -> list[T]:
        """What may go now, the most urgent first. What nobody wants any more is forgotten on the way."""
        due: list[T] = []
        while self._waiting and self.out < self.limit:
            _, _, run, position, _, what = heappop(self._waiting)
            self._held.discard((run, position))
            if wanted(what):
                self._let_out(run, position)
                due.append(what)
        return due

    def with_workers(self, state: Orchestration) -> None:
        """After a restart: what is with workers already."""
        for position, ticket in enumerate(state.tickets):
            if ticket.running:
                self._let_out(state.run, position)

    def settle(self, state: Orchestration) -> None:
        """Whatever this orchestration has no longer with workers makes room."""
        positions = self._out.get(state.run)
        if positions:
            self._forget(state.run, {p for p in positions if state.tickets[p].phase not in _WITH_A_WORKER})

    def rescore(self) -> None:
        """Who waits becomes more urgent."""
        self._waiting = [(-score(), order, run, p, score, what) for _, order, run, p, score, what in self._waiting]
        heapify(self._waiting)

    @property
    def runs(self) -> list[int]:
        """Orchestrations that have tickets with workers."""
        return list(self._out)

    def _let_out(self, run: int, position: int) -> None:
        positions = self._out.setdefault(run, set())
        if position not in positions:
            positions.add(position)
            self.out += 1

    def _forget(self, run: int, gone: set[int]) -> None:
        left = self._out[run]
        left -= gone
        self.out -= len(gone)
        if not left:
            del self._out[run]
