"""How many tickets of Fluxo C may be with workers at the same time, over all plans; the most urgent go first.

What may not go yet waits here, in memory: the journal says that it is owed, so a crash forgets nothing. The place of a
ticket is free again as soon as its attempt is over.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Generic, TypeVar

from oraculo.core.allocation import priority_score
from oraculo.core.state import Orchestration
from oraculo.core.ticket import qos
from oraculo.core.verdict import flow_of
from oraculo.core.vocabulary import Phase
from oraculo.ports.clock import Clock

T = TypeVar("T")
Order = tuple[int, int, int]  # run, position, attempt
Score = Callable[[], float]
_WITH_A_WORKER = (Phase.OWED, Phase.RUNNING)


def score_of(state: Orchestration, position: int, since: datetime, clock: Clock) -> Score:
    """How urgent a ticket that is owed since then is, at any moment: it becomes more urgent while it waits."""
    band, timeout = flow_of(state).risk_band, state.plan.tasks[position].timeout
    return lambda: priority_score(band, qos(band), since, since + timeout, clock.now())


class Ceiling(Generic[T]):
    """`limit` can be changed at any time; lowering it takes nothing back."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._waiting: list[tuple[float, int, Order, Score, T]] = []  # -score, when it came, order, score, what
        self._held: set[tuple[int, int]] = set()  # (run, position) of those that wait
        self._count = count()
        self._out: dict[int, dict[int, int]] = {}  # run → positions that are with workers → attempt
        self.out = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, order: Order, score: Score, what: T) -> None:
        self._held.add(order[:2])
        heappush(self._waiting, (-score(), next(self._count), order, score, what))

    def holds(self, run: int, position: int) -> bool:
        return (run, position) in self._held

    def due(self, wanted: Callable[[T], bool]) -> list[T]:
        """What may go now, the most urgent first. What nobody wants any more is forgotten on the way."""
        due: list[T] = []
        while self._waiting and self.out < self.limit:
            _, _, order, _, what = heappop(self._waiting)
            self._held.discard(order[:2])
            if wanted(what):
                self.let_out(order)
                due.append(what)
        return due

    def let_out(self, order: Order) -> None:
        """It is on its way to a worker, or there."""
        run, position, attempt = order
        positions = self._out.setdefault(run, {})
        self.out += position not in positions
        positions[position] = attempt

    def with_workers(self, state: Orchestration, forgotten: Callable[[str], bool] = lambda _queue: False) -> None:
        """After a restart: what is with workers already, if not in a queue that was forgotten."""
        for position, ticket in enumerate(state.tickets):
            if ticket.running and not forgotten(state.plan.tasks[position].queue):
                self.let_out((state.run, position, ticket.attempt))

    def settle(self, state: Orchestration) -> None:
        """Whatever this orchestration has no longer with workers makes room."""
        positions = self._out.get(state.run, {})
        tickets = state.tickets
        for position, attempt in list(positions.items()):
            if tickets[position].attempt != attempt or tickets[position].phase not in _WITH_A_WORKER:
                del positions[position]
                self.out -= 1
        if not positions:
            self._out.pop(state.run, None)

    def rescore(self, wanted: Callable[[T], bool]) -> None:
        """Who waits becomes more urgent; what nobody wants any more is forgotten."""
        self._waiting = [
            (-score(), n, order, score, what) for _, n, order, score, what in self._waiting if wanted(what)
        ]
        self._held = {order[:2] for _, _, order, _, _ in self._waiting}
        heapify(self._waiting)

    @property
    def runs(self) -> list[int]:
        """Orchestrations that have tickets with workers."""
        return list(self._out)
