"""The queue of commands before the commit loop, with back-pressure for callers that hand in too much.

Progress comes before intake: answers, confirmations, timers and questions about runs that exist are taken before
requests that open new ones, so that more requests than can be served make new ones wait, and not the work under way.
Requests are taken in turns between tenants.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from oraculo.core.commands import Start
from oraculo.ports.work import Fate, Outcome, Work
from oraculo.runtime.kernel.intake import IntakeQueue

QUEUE_LIMIT_COMMANDS = 20_000  # above it, callers of `submit` wait
INTAKE_SHARE_PARTS = 8  # one part in so many of a batch is for requests, however much other work there is
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
        self._progress: deque[Work] = deque()  # commands for runs that exist, and all that no caller waits for
        self._intake = IntakeQueue()  # requests of callers that open runs
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._taking = False  # a batch was taken, and the next one was not asked for yet

    def __len__(self) -> int:
        return len(self._progress) + len(self._intake)

    @property
    def idle(self) -> bool:
        """True when nothing waits and nothing that was taken is still being worked on."""
        return not len(self) and not self._taking

    async def submit(self, works: list[Work], *, piecewise: bool = False) -> list[Outcome]:
        """Return once all of it is durable; see ports/engine.py."""
        if not works:
            return []
        if len(self) > self._limit and self._must_wait(works[0]):
            self._room.clear()
            await self._room.wait()
        group = Group(len(works), asyncio.get_running_loop().create_future(), piecewise)
        for index, work in enumerate(works):
            work.group, work.index = group, index
        self.enqueue(works)
        return await group.future

    def _must_wait(self, work: Work) -> bool:
        """Whether there is no room for it: a tenant that has little waiting does not wait for one that has much."""
        if len(self._intake) <= self._limit or type(work.command) is not Start:
            return True
        return self._intake.has_more_than_its_share(work.correlation_id, self._limit)

    def enqueue(self, works: Sequence[Work]) -> None:
        """Queue work; of what a caller waits for, requests that open runs come after all the rest."""
        for work in works:
            opens = work.group is not None and type(work.command) is Start
            if opens:
                self._intake.append(work)
            else:
                self._progress.append(work)
        self._arrived.set()

    async def take(self, limit: int) -> list[Work]:
        """Wait for work and return up to `limit` pieces: first what moves runs on, each kind in the order it came."""
        progress, intake = self._progress, self._intake
        if not len(self):
            self._taking = False
            self._arrived.clear()
            await self._arrived.wait()
        self._taking = True
        kept = min(len(intake), max(1, limit // INTAKE_SHARE_PARTS))  # so that requests do not wait for ever
        works = [progress.popleft() for _ in range(min(limit - kept, len(progress)))]
        works += intake.take(limit - len(works))
        if not self._room.is_set() and len(self) < self._limit:
            self._room.set()
        return works

    def requeue_internal(self, works: Sequence[Work]) -> None:
        """Put work that no caller waits for back to the head: confirmations, outcomes of notices and timers are not
        sent again by anything else."""
        self._progress.extendleft(work for work in reversed(works) if work.group is None)

    def refuse_all(self, error: BaseException) -> None:
        """Tell every caller that its work will not be done, and forget it."""
        for work in (*self._progress, *self._intake):
            work.fail(error)
        self._progress.clear()
        self._intake.clear()
