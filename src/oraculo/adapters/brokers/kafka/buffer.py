"""Messages of one queue that are ready, the fetches that wait for them, and messages that are postponed."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable

from oraculo.adapters.brokers.kit.inbox import Inbox
from oraculo.ports.broker import Delivery


class Buffer(Inbox):
    """An inbox with postponed messages. The tag of a delivery is its ledger and its offset there. `again` is called
    with a postponed message when it is due."""

    def __init__(self, again: Callable[[Delivery], None]) -> None:
        super().__init__()
        self._again = again
        self._later: list[tuple[float, int, Delivery]] = []
        self._numbers = 0

    def take(self, limit: int) -> list[Delivery]:
        """The oldest deliveries of partitions that are still ours."""
        ready, taken = self.ready, list[Delivery]()
        while ready and len(taken) < limit:
            delivery = ready.popleft()
            ledger, offset = delivery.tag
            if ledger.mine and ledger.hand_out(offset):
                taken.append(delivery)
        return taken

    def postpone(self, delivery: Delivery, delay: float) -> None:
        loop = asyncio.get_running_loop()
        self._numbers += 1
        heapq.heappush(self._later, (loop.time() + delay, self._numbers, delivery))
        if self._later[0][1] == self._numbers:
            loop.call_later(delay, self._arrive)

    def purge(self) -> None:
        """Drop the deliveries of partitions that are not ours any more."""
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
