"""Consuming: a short buffer for each queue that somebody fetches from, and the task that keeps its channel.

RabbitMQ pushes; `fetch` pulls. A consumer is given room for about twice of what a fetch asks for, and when nobody has
fetched for a second it is cancelled and what lies in the buffer goes back, so that others get it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from oraculo.adapters.brokers.rabbitmq.consume import ConsumeLane
from oraculo.adapters.brokers.rabbitmq.link import RETRY_FIRST, RETRY_MOST, Link, Pulse
from oraculo.adapters.brokers.rabbitmq.queues import Queues
from oraculo.errors import BrokerUnavailableError
from oraculo.ports.broker import Delivery

IDLE = 1.0  # seconds without a fetch after which nothing is kept here


class Inbox:
    """What has arrived from one queue and is not handed out, those who wait for more, and the task that sees to it."""

    def __init__(self, queue: str, link: Link, queues: Queues, finished: Callable[[Inbox], None]) -> None:
        self.queue = queue
        self.ready: deque[Delivery] = deque()
        self._link = link
        self._queues = queues
        self._finished = finished
        self._seconds = link.options.confirm_timeout
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._lane: ConsumeLane | None = None
        self._asked = 1  # the most that a fetch asked for
        self._starving = False  # all that may be out is out, and somebody waits
        self._fetched_at = 0.0
        self._fetching = 0  # how many wait for messages
        self._stopped = False
        self._error = ""
        self._task: asyncio.Task[None] | None = None
        self._stir = asyncio.Event()
        self._opened = Pulse()

    @property
    def consuming(self) -> bool:
        return self._lane is not None and bool(self._lane.consumers)

    async def fetch(self, limit: int, wait: float) -> list[Delivery]:
        self._fetched_at = asyncio.get_running_loop().time()
        self._asked = max(self._asked, limit)
        if self.ready:
            return self._take(limit)
        self._fetching += 1
        try:
            return await self._fetch(limit, wait)
        finally:
            self._fetching -= 1
            self._fetched_at = asyncio.get_running_loop().time()

    async def _fetch(self, limit: int, wait: float) -> list[Delivery]:
        loop = asyncio.get_running_loop()
        start = loop.time()
        until = start + wait
        await self._open(until, max(until, start + self._seconds))
        if wait <= 0:
            lane = self._lane
            if not self.ready and lane is not None and lane.alive:
                await lane.get(self._seconds)
            return self._take(limit)
        while not self.ready and (left := until - loop.time()) > 0:
            self._check_window()
            await self._arrival(left)
        return self._take(limit)

    def stop(self) -> None:
        self._stopped = True
        self._opened.fire()
        if self._task is not None:
            self._task.cancel()
        for waiter in self._waiting:
            waiter.cancel()

    async def stopped(self) -> None:
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    # -- for those who fetch -----------------------------------------------------------------------------------------

    def _take(self, limit: int) -> list[Delivery]:
        ready = self.ready
        if len(ready) <= limit:
            taken = list(ready)
            ready.clear()
            return taken
        taken = [ready.popleft() for _ in range(limit)]
        self._wake()
        return taken

    async def _open(self, until: float, patience: float) -> None:
        """Returns when the queue is consumed. A connection that is known to be down is waited for `until` then; one
        that is being made, with patience."""
        loop = asyncio.get_running_loop()
        while not self.consuming and not self.ready:
            if self._stopped:
                raise BrokerUnavailableError("closed")
            self._start()
            left = (until if self._link.error else patience) - loop.time()
            if left <= 0:
                raise BrokerUnavailableError(self._error or f"RabbitMQ at {self._link.options.place} does not answer")
            await self._opened.wait(left)

    async def _arrival(self, seconds: float) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        timer = asyncio.get_running_loop().call_later(seconds, _release, waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and self.ready:
                self._wake()  # it was our turn, and we go away: the next one's, then
            raise
        finally:
            timer.cancel()
            if waiter in self._waiting:
                self._waiting.remove(waiter)

    def _wake(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _arrived(self, delivery: Delivery) -> None:
        self.ready.append(delivery)
        if self._waiting:
            self._wake()

    # -- the keeper: opens, widens, narrows, pauses and closes the channel as it is wanted ---------------------------

    def _start(self) -> None:
        self._stir.set()
        if self._task is None:
            self._task = asyncio.create_task(self._keep())

    def _wanted(self) -> bool:
        return self._fetching > 0 or asyncio.get_running_loop().time() - self._fetched_at < IDLE

    def _room(self) -> int:
        return min(self._link.options.prefetch, 2 * self._asked)

    def _check_window(self) -> None:
        lane = self._lane
        if lane is not None and (lane.unsettled >= lane.window or lane.window < self._room()):
            self._starving = True
            self._stir.set()

    def _changed(self) -> None:
        """Something was settled, or the channel or a consumer is gone."""
        lane = self._lane
        if lane is None:
            return
        if not lane.alive:
            self.ready.clear()  # the server has them again
        if not lane.consumers or len(lane.consumers) > 1:
            self._stir.set()

    async def _keep(self) -> None:
        pause = RETRY_FIRST
        while self._wanted() or (self._lane is not None and self._lane.alive):
            self._stir.clear()
            try:
                if not await self._adjust():
                    await self._news()
                pause = RETRY_FIRST
            except BrokerUnavailableError as error:
                self._error = str(error)
                self._opened.fire()
                await asyncio.sleep(pause)
                pause = min(pause * 2, RETRY_MOST)
        self._task = None
        self._finished(self)

    async def _news(self) -> None:
        """Until something changed, or it is time to look whether anybody still fetches."""
        left = self._fetched_at + IDLE - asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(max(left, 0.05) if self.consuming and not self._fetching else IDLE):
                await self._stir.wait()
        except TimeoutError:
            return

    async def _adjust(self) -> bool:
        """One step towards what is wanted now; True when there was one to take."""
        lane = self._lane
        if lane is None or not lane.alive:
            if self._wanted():
                await self._open_lane()
                return True
            return False
        if not self._wanted():
            if lane.consumers:
                await self._pause(lane)
                return True
            if lane.unsettled == 0:
                lane.close()
                self._lane = None
            return False
        if not lane.consumers:
            await self._queues.ensure(self.queue)
            await self._consume(lane, self._room())
            return True
        if self._starving:
            self._starving = False
            if lane.window < self._room() or lane.unsettled >= lane.window:
                await self._consume(lane, max(self._room() - lane.window, lane.window))
            return True
        name, room = next(reversed(lane.consumers.items()))
        if len(lane.consumers) > 1 and lane.unsettled - len(self.ready) + self._room() <= lane.window - room:
            await lane.cancel(name, self._seconds)
            return True
        return False

    async def _open_lane(self) -> None:
        wire = await self._link.wire(IDLE, patient=True)
        await self._queues.ensure(self.queue)
        lane = ConsumeLane(wire, self.queue, self._arrived, self._changed)
        await lane.open(self._seconds)
        self._lane = lane
        await self._consume(lane, self._room())

    async def _consume(self, lane: ConsumeLane, room: int) -> None:
        await lane.consume(room, self._seconds)
        self._error = ""
        self._opened.fire()

    async def _pause(self, lane: ConsumeLane) -> None:
        """Cancelled first, or what is given back would come again."""
        for name in list(lane.consumers):
            await lane.cancel(name, self._seconds)
        self._asked = 1
        if not self._wanted():
            buffered, self.ready = self.ready, deque()
            lane.give_back(delivery.tag[1] for delivery in buffered)


def _release(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
