"""The queue of commands before the commit loop, with back-pressure for callers that hand in too much."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from oraculo.ports.work import Fate, Outcome, Work

QUEUE_LIMIT_COMMANDS = 20_000  # above it, callers of `submit` wait
_NOT_YET = Outcome(Fate.RETRY)


class Group:
    """Work handed in together: done when the last piece is durable, or failed as a whole. With `partial`, single pieces
    can come back (Fate.RETRY) while the others are done."""

    __slots__ = ("future", "left", "outcomes", "partial")

    def __init__(self, size: int, future: asyncio.Future[list[Outcome]], partial: bool = False) -> None:
        self.left = size
        self.partial = partial
        self.outcomes = [_NOT_YET] * size
        self.future = future

    def settle(self, index: int, outcome: Outcome) -> None:
        self.outcomes[index] = outcome
        self.left -= 1
        if not self.left and not self.future.done():
            self.future.set_result(self.outcomes)

    def fail(self, error: BaseException) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class CommandQueue:
    """Takes work from many callers; one loop takes it out in batches."""

    def __init__(self, limit: int = QUEUE_LIMIT_COMMANDS) -> None:
        self._limit = limit
        self._queue: deque[Work] = deque()
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._taking = False  # a batch was taken, and the next one was not asked for yet

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def idle(self) -> bool:
        """True when nothing waits and nothing that was taken is still being worked on."""
        return not self._queue and not self._taking

    async def submit(self, works: list[Work], *, piecewise: bool = False) -> list[Outcome]:
        """Return once all of it is durable; see ports/engine.py."""
        if not works:
            return []
        if len(self._queue) > self._limit:
            self._room.clear()
            await self._room.wait()
        group = Group(len(works), asyncio.get_running_loop().create_future(), piecewise)
        for index, work in enumerate(works):
            work.group, work.index = group, index
        self.enqueue(works)
        return await group.future

    def enqueue(self, works: Sequence[Work]) -> None:
        """Queue work that no caller waits for."""
        self._queue.extend(works)
        self._arrived.set()

    async def take(self, limit: int) -> list[Work]:
        """Wait for work and return up to `limit` pieces, in the order they came."""
        queue = self._queue
        if not queue:
            self._taking = False
            self._arrived.clear()
            await self._arrived.wait()
        self._taking = True
        works = [queue.popleft() for _ in range(min(limit, len(queue)))]
        if not self._room.is_set() and len(queue) < self._limit:
            self._room.set()
        return works

    def requeue_internal(self, works: Sequence[Work]) -> None:
        """Put work that no caller waits for back to the head: confirmations, outcomes of notices and timers are not
        sent again by anything else."""
        self._queue.extendleft(work for work in reversed(works) if work.group is None)

    def refuse_all(self, error: BaseException) -> None:
        """Tell every caller that its work will not be done, and forget it."""
        for work in self._queue:
            work.fail(error)
        self._queue.clear()
