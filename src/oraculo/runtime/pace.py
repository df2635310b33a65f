"""How fast attempts after the first go to one queue: who fails is not asked again by everybody at once.

Each queue gives out places that are `1 / rate` seconds apart; who comes while they are taken waits for the next one,
in memory: the journal says that it is owed, and its time begins when a broker has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")
MOST_QUEUES = 1000  # that are remembered although nobody waits for them


class Pace(Generic[T]):
    """`rate`: so many a second and queue. Instants are seconds of any clock that only goes forward."""

    def __init__(self, rate: float) -> None:
        self._gap = 1 / rate
        self._next: dict[str, float] = {}  # queue → its next place
        self._waiting: list[tuple[float, int, T]] = []
        self._order = count()

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[T]:
        return (what for _, _, what in self._waiting)

    def may_go(self, queue: str, what: T, now: float) -> bool:
        """Whether it may go now; otherwise it waits."""
        at = max(now, self._next.get(queue, now))
        if len(self._next) >= MOST_QUEUES:
            self._next = {name: place for name, place in self._next.items() if place > now}
        self._next[queue] = at + self._gap
        if at <= now:
            return True
        heappush(self._waiting, (at, next(self._order), what))
        return False

    def due(self, now: float) -> list[T]:
        """Those whose turn has come."""
        due: list[T] = []
        while self._waiting and self._waiting[0][0] <= now:
            due.append(heappop(self._waiting)[2])
        return due

    @property
    def next_at(self) -> float | None:
        return self._waiting[0][0] if self._waiting else None
