"""Waiting for messages of one queue: what has arrived, and the fetches that wait for more."""

from __future__ import annotations

import asyncio
from collections import deque

from oraculo.ports.broker import Delivery


class Broadcast:
    """Wakes every coroutine that waits now."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def fire(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            release(waiter)

    async def wait(self, seconds: float) -> None:
        """Return when it fires, or after `seconds`."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await asyncio.wait({waiter}, timeout=max(0.0, seconds))
        finally:
            if waiter in self._waiting:
                self._waiting.remove(waiter)


class Inbox:
    """Deliveries that no fetch has taken yet (`ready`), and the fetches that wait (`waiting`), oldest first."""

    def __init__(self) -> None:
        self.ready: deque[Delivery] = deque()
        self.waiting: deque[asyncio.Future[None]] = deque()

    def put(self, delivery: Delivery) -> None:
        self.ready.append(delivery)
        if self.waiting:
            self.wake()

    def take(self, limit: int) -> list[Delivery]:
        """The oldest deliveries. If some are left, the next fetch is woken for them."""
        ready = self.ready
        if len(ready) <= limit:
            taken = list(ready)
            ready.clear()
            return taken
        taken = [ready.popleft() for _ in range(limit)]
        self.wake()
        return taken

    async def arrival(self, seconds: float) -> None:
        """Return when this fetch is woken, or after `seconds`. One that is cancelled passes its turn on."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self.waiting.append(waiter)
        timer = loop.call_later(seconds, release, waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and self.ready:
                self.wake()
            raise
        finally:
            timer.cancel()
            if waiter in self.waiting:
                self.waiting.remove(waiter)

    def wake(self) -> None:
        """Wake the fetch that has waited longest."""
        while self.waiting:
            waiter = self.waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def wake_all(self) -> None:
        while self.waiting:
            self.wake()

    def cancel_all(self) -> None:
        for waiter in self.waiting:
            waiter.cancel()


def release(waiter: asyncio.Future[None]) -> None:
    """End the wait for this future, if it has not ended."""
    if not waiter.done():
        waiter.set_result(None)
