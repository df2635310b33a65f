"""How many tickets of plans with priorities, those of Fluxo C first of all, may be with workers at the same time, over
all plans; the most urgent go first.

What may not go yet waits here, in memory: the journal says that it is owed, so a crash forgets nothing. The place of a
ticket is free again as soon as its attempt is over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Generic, TypeVar

from oraculo.core.priority import fresh_score_of, urgency
from oraculo.core.state import Orchestration
from oraculo.ports.clock import Clock

T = TypeVar("T")
Order = tuple[int, int, int]  # run, position, attempt
Score = Callable[[], float]


NOT_CHANGED: Mapping[int, int] = {}


def score_of(
    state: Orchestration, position: int, since: datetime, clock: Clock, changed: Mapping[int, int] = NOT_CHANGED
) -> Score:
    """Return how urgent a ticket that is owed since then is, at any moment: more and more while it waits. `changed` are
    runs whose priority an operator changed, since `state` was read."""
    timeout = state.plan.tasks[position].timeout

    def score() -> float:
        fresh = fresh_score_of(state, position, changed.get(state.run))
        return fresh.at_urgency(urgency(since, since + timeout, clock.now())).value

    return score


class ConcurrencyCeiling(Generic[T]):
    """Counts tickets that are with workers, and keeps what has to wait, the most urgent first. `limit` can be changed
    at any time; lowering it takes nothing back."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._waiting: list[tuple[float, int, Order, Score, T]] = []  # -score, when it came, order, score, what
        self._placed: list[tuple[Order, T]] = []  # those that have a place already
        self._held: dict[tuple[int, int], int] = {}  # (run, position) of those that wait → attempt
        self._count = count()
        self._out: dict[int, dict[int, int]] = {}  # run → positions that are with workers → attempt
        self.out = 0

    def __len__(self) -> int:
        return len(self._waiting) + len(self._placed)

    def add(self, order: Order, score: Score, what: T) -> bool:
        """Keep an order until it may go. One that was let out before a pause, and may have been sent, has its place
        still: it goes next, whether there is room or not, and True is returned."""
        run, position, attempt = order
        self._held[run, position] = attempt
        if self._out.get(run, {}).get(position) == attempt:
            self._placed.append((order, what))
            return True
        heappush(self._waiting, (-score(), next(self._count), order, score, what))
        return False

    def take_back(self, order: Order) -> None:
        """Make room again for an order that was let out and never sent."""
        run, position, attempt = order
        positions = self._out.get(run, {})
        if positions.get(position) == attempt:
            del positions[position]
            self.out -= 1

    def holds(self, run: int, position: int, attempt: int | None = None) -> bool:
        """Return whether the order of this ticket, or of this attempt of it, waits here."""
        held = self._held.get((run, position))
        return held is not None and attempt in (None, held)

    def _released(self, order: Order) -> None:
        if self.holds(*order):
            del self._held[order[:2]]

    def due(self, wanted: Callable[[T], bool]) -> list[T]:
        """Return what may go now, the most urgent first. What is not wanted any more is forgotten on the way."""
        due = self._due_again(wanted)
        while self._waiting and self.out < self.limit:
            _, _, order, _, what = heappop(self._waiting)
            self._released(order)
            if wanted(what):
                self.let_out(order)
                due.append(what)
        return due

    def _due_again(self, wanted: Callable[[T], bool]) -> list[T]:
        placed, self._placed = self._placed, []
        for order, _ in placed:
            self._released(order)
        return [what for _, what in placed if wanted(what)]

    def let_out(self, order: Order) -> None:
        """Count an order that is on its way to a worker, or there."""
        run, position, attempt = order
        positions = self._out.setdefault(run, {})
        self.out += position not in positions
        positions[position] = attempt

    def with_workers(self, state: Orchestration, forgotten: Callable[[str], bool] = lambda _queue: False) -> None:
        """Count what is with workers already, after a restart, if not in a queue that was forgotten."""
        for position, ticket in enumerate(state.tickets):
            task = state.plan.tasks[position]
            if ticket.running and task.kind.is_sent and not forgotten(task.queue):
                self.let_out((state.run, position, ticket.attempt))

    def settle(self, state: Orchestration) -> None:
        """Make room for what this orchestration has no longer with workers."""
        positions = self._out.get(state.run, {})
        for position, attempt in list(positions.items()):
            if not state.wants_answer(position, attempt):
                del positions[position]
                self.out -= 1
        if not positions:
            self._out.pop(state.run, None)

    def rescore(self, wanted: Callable[[T], bool]) -> None:
        """Order what waits by its urgency now; forget what is not wanted any more."""
        self._waiting = [
            (-score(), n, order, score, what) for _, n, order, score, what in self._waiting if wanted(what)
        ]
        self._placed = [(order, what) for order, what in self._placed if wanted(what)]
        waiting = [order for _, _, order, _, _ in self._waiting] + [order for order, _ in self._placed]
        self._held = {(run, position): attempt for run, position, attempt in waiting}
        heapify(self._waiting)

    @property
    def runs(self) -> list[int]:
        """The orchestrations that have tickets with workers."""
        return list(self._out)
