"""Messages of one queue that are ready, those who wait for them, and those whose time has not come."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
from collections import deque
from collections.abc import Callable

from oraculo.ports.broker import Delivery


class Buffer:
    """The tag of a delivery is its ledger and its offset there. `again` gets those whose time has come."""

    def __init__(self, again: Callable[[Delivery], None]) -> None:
        self.ready: deque[Delivery] = deque()
        self.waiting: deque[asyncio.Future[None]] = deque()
        self._again = again
        self._later: list[tuple[float, int, Delivery]] = []
        self._numbers = 0

    def take(self, limit: int) -> list[Delivery]:
        ready, taken = self.ready, list[Delivery]()
        while ready and len(taken) < limit:
            delivery = ready.popleft()
            ledger, offset = delivery.tag
            if ledger.mine and ledger.hand_out(offset):
                taken.append(delivery)
        return taken

    async def arrival(self, wait: float) -> None:
        """Until somebody wakes us, `wait` seconds at most."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self.waiting.append(waiter)
        timer = loop.call_later(wait, _release, waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and self.ready:
                self.wake()  # it was our turn, and we go away: the next one's, then
            raise
        finally:
            timer.cancel()
            with contextlib.suppress(ValueError):
                self.waiting.remove(waiter)

    def wake(self) -> None:
        """Tell the one who has waited longest."""
        while self.waiting:
            waiter = self.waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def wake_all(self) -> None:
        while self.waiting:
            self.wake()

    def postpone(self, delivery: Delivery, delay: float) -> None:
        loop = asyncio.get_running_loop()
        self._numbers += 1
        heapq.heappush(self._later, (loop.time() + delay, self._numbers, delivery))
        if self._later[0][1] == self._numbers:
            loop.call_later(delay, self._arrive)

    def purge(self) -> None:
        """Without those of partitions that are not ours any more."""
        self.ready = deque(delivery for delivery in self.ready if delivery.tag[0].mine)

    def clear(self) -> None:
        self.ready.clear()
        self._later.clear()

    def _arrive(self) -> None:
        loop = asyncio.get_running_loop()
        while self._later and self._later[0][0] <= loop.time():
            _, _, delivery = heapq.heappop(self._later)
            ledger, offset = delivery.tag
            ledger.arrive(offset)
            self._again(delivery)
        if self._later:
            loop.call_later(self._later[0][0] - loop.time(), self._arrive)


def _release(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
