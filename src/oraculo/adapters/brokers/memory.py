"""In-process broker: queues in memory, the same port as the real ones.

It forgets everything when the process ends, and says so (`traits.volatile`): the engine then sends again whatever the
journal says is running. Nothing is lost, because nothing was ever only here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from oraculo.ports.broker import (
    ALL_CONFIRMED,
    Backlog,
    Broker,
    BrokerTraits,
    Delivery,
    Health,
    Outgoing,
    PublishReport,
    Refusal,
    Settle,
    Settlement,
)

CAPACITY_BYTES = 256 * 1024 * 1024
NO_HEADERS: dict[str, str] = {}  # one for all messages without any


@dataclass(slots=True)
class _Queue:
    ready: deque[Delivery] = field(default_factory=deque)
    since: deque[float] = field(default_factory=deque)  # when each of them came, by the clock of the loop
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)
    unsettled: dict[int, Delivery] = field(default_factory=dict)
    held_bytes: int = 0  # of messages that wait, are taken, or come back later


class MemoryBroker(Broker):
    """Queues of this process, up to `capacity` bytes of messages in all.

    A queue may not hold more than what is left free: one that is never emptied takes half of the capacity at most, two
    take a third each, and there is always room for another queue.
    """

    scheme = "memory"
    traits = BrokerTraits(volatile=True)

    def __init__(self, capacity: int = CAPACITY_BYTES) -> None:
        self._queues: dict[str, _Queue] = {}
        self._capacity = capacity
        self._bytes = 0
        self._tag = 0
        self._timers: set[asyncio.TimerHandle] = set()

    async def publish(self, messages: Sequence[Outgoing]) -> PublishReport:
        now = asyncio.get_running_loop().time()
        woken: dict[str, None] = {}  # in order: a simulation must wake the same way every time
        no_room: list[Outgoing] = []
        refused: list[Refusal] = []
        for message in messages:
            size = len(message.body)
            queue = self._queue(message.queue)
            if size > self._capacity:
                refused.append(Refusal(message, f"{size} bytes; the in-process broker holds {self._capacity}"))
                continue
            if queue.held_bytes + size > self._capacity - self._bytes:
                no_room.append(message)
                continue
            self._bytes += size
            queue.held_bytes += size
            self._tag += 1
            delivery = Delivery(message.queue, message.body, self._tag, False, message.headers or NO_HEADERS)
            queue.ready.append(delivery)
            queue.since.append(now)
            woken[message.queue] = None
        for name in woken:
            _wake(self._queues[name])
        if not no_room and not refused:
            return ALL_CONFIRMED
        full = f"the in-process broker holds {self._bytes} bytes of {self._capacity}; workers must take some first"
        return PublishReport(no_room=no_room, refused=refused, reason=full if no_room else refused[0].reason)

    async def fetch(self, queue: str, *, limit: int, wait: float) -> list[Delivery]:
        source = self._queue(queue)
        if not source.ready and wait > 0:
            await self._arrival(source, wait)
        ready, unsettled = source.ready, source.unsettled
        taken: list[Delivery] = []
        while ready and len(taken) < limit:
            delivery = ready.popleft()
            source.since.popleft()
            unsettled[delivery.tag] = delivery
            taken.append(delivery)
        if ready:
            _wake(source)
        return taken

    async def settle(self, settlements: Sequence[Settlement]) -> None:
        for settlement in settlements:
            delivery = settlement.delivery
            source = self._queue(delivery.queue)
            if source.unsettled.pop(delivery.tag, None) is None:
                continue
            if settlement.verdict is Settle.ACK:
                self._bytes -= len(delivery.body)
                source.held_bytes -= len(delivery.body)
            elif settlement.delay > 0:
                self._later(delivery, settlement.delay)
            else:
                self._again(delivery)

    async def redeliver(self, queue: str) -> int:
        """Give back everything that was taken and not settled, as a broker does when a consumer's connection breaks."""
        source = self._queue(queue)
        taken = list(source.unsettled.values())
        source.unsettled.clear()
        for delivery in taken:
            self._again(delivery)
        return len(taken)

    async def backlog(self, queue: str) -> Backlog:
        found = self._queues.get(queue)
        return Backlog(0) if found is None else Backlog(len(found.ready), self.ages().get(queue))

    def ages(self) -> dict[str, float]:
        """Queue → how many seconds its oldest message waits, where any does."""
        now = asyncio.get_running_loop().time()
        return {name: now - queue.since[0] for name, queue in self._queues.items() if queue.since}

    def depths(self) -> dict[str, tuple[int, int]]:
        """Queue → (waiting, taken and not settled)."""
        return {name: (len(queue.ready), len(queue.unsettled)) for name, queue in self._queues.items()}

    async def durability(self) -> str:
        return "best-effort"

    def health(self) -> Health:
        return Health(True)

    async def reset(self) -> None:
        """There is no connection that could be silent."""

    async def close(self) -> None:
        for timer in self._timers:
            timer.cancel()
        for queue in self._queues.values():
            for waiter in queue.waiting:
                waiter.cancel()

    def _queue(self, name: str) -> _Queue:
        queue = self._queues.get(name)
        if queue is None:
            queue = self._queues[name] = _Queue()
        return queue

    async def _arrival(self, queue: _Queue, wait: float) -> None:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        queue.waiting.append(waiter)
        timer = loop.call_later(wait, _release, waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and queue.ready:
                _wake(queue)  # it was our turn, and we go away: the next one's, then
            raise
        finally:
            timer.cancel()
            if waiter in queue.waiting:
                queue.waiting.remove(waiter)

    def _again(self, delivery: Delivery) -> None:
        self._tag += 1
        again = Delivery(delivery.queue, delivery.body, self._tag, True, delivery.headers)
        queue = self._queue(delivery.queue)
        queue.ready.append(again)
        queue.since.append(asyncio.get_running_loop().time())
        _wake(queue)

    def _later(self, delivery: Delivery, delay: float) -> None:
        def arrive() -> None:
            self._timers.discard(timer)
            self._again(delivery)

        timer = asyncio.get_running_loop().call_later(delay, arrive)
        self._timers.add(timer)


def _release(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _wake(queue: _Queue) -> None:
    """Tell the one who has waited longest."""
    while queue.waiting:
        waiter = queue.waiting.popleft()
        if not waiter.done():
            waiter.set_result(None)
            return
