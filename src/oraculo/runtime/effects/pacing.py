"""How fast attempts after the first go to one queue, so that a source that fails is not asked again by all at once.

Each queue gives out places that are `1 / rate` seconds apart; an attempt that comes while they are taken waits for the
next one, in memory: the journal says that it is owed, and its time begins when a broker has it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

from oraculo.runtime.effects.owed import OwedOrder

T = TypeVar("T")
REMEMBERED_MAX_QUEUES = 1000  # whose next place is remembered although nothing waits for it
PACE_INTERVAL_S = 0.02  # between two looks at whose turn it is


class RetryRateLimiter(Generic[T]):
    """`rate`: retries per second, per queue. Instants are seconds of any clock that only goes forward."""

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
        """Return whether it may go now; otherwise it waits here."""
        at = max(now, self._next.get(queue, now))
        if len(self._next) >= REMEMBERED_MAX_QUEUES:
            self._next = {name: place for name, place in self._next.items() if place > now}
        self._next[queue] = at + self._gap
        if at <= now:
            return True
        heappush(self._waiting, (at, next(self._order), what))
        return False

    def due(self, now: float) -> list[T]:
        """Return those whose turn has come."""
        due: list[T] = []
        while self._waiting and self._waiting[0][0] <= now:
            due.append(heappop(self._waiting)[2])
        return due

    @property
    def next_at(self) -> float | None:
        return self._waiting[0][0] if self._waiting else None


class RetryPacer:
    """Lets retries go now, or gives them to `resume` when it is their turn, many at once so that they go together."""

    def __init__(self, rate: float, resume: Callable[[Sequence[OwedOrder]], None]) -> None:
        self._limiter: RetryRateLimiter[OwedOrder] = RetryRateLimiter(rate)
        self._resume_with = resume
        self._timer: asyncio.TimerHandle | None = None

    @property
    def orders(self) -> list[OwedOrder]:
        """The retries that wait for their turn."""
        return list(self._limiter)

    def may_go(self, owed: OwedOrder) -> bool:
        """Return whether it may go now; otherwise it waits here."""
        loop = asyncio.get_running_loop()
        if self._limiter.may_go(owed.queue, owed, loop.time()):
            return True
        if self._timer is None:
            self._timer = loop.call_at(self._limiter.next_at or 0.0, self._resume)
        return False

    def _resume(self) -> None:
        loop = asyncio.get_running_loop()
        due = self._limiter.due(loop.time())
        self._timer = loop.call_later(PACE_INTERVAL_S, self._resume) if len(self._limiter) else None
        self._resume_with(due)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
