"""Consuming: a short buffer for each queue that is fetched from, and the task that keeps its channel.

RabbitMQ pushes; `fetch` pulls. A consumer is given room for about twice of what a fetch asks for. After a second
without a fetch it is cancelled and what lies in the buffer goes back, so that other processes get it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from oraculo.adapters.brokers.kit.inbox import Broadcast, Inbox
from oraculo.adapters.brokers.kit.reconnect import pauses
from oraculo.adapters.brokers.rabbitmq.connection import Connection
from oraculo.adapters.brokers.rabbitmq.consume_channel import ConsumeChannel
from oraculo.adapters.brokers.rabbitmq.queues import Queues
from oraculo.errors import BrokerUnavailableError
from oraculo.ports.broker import Delivery

IDLE_TIMEOUT_S = 1.0  # seconds without a fetch after which nothing is kept here


class AmqpConsumer:
    """Consumes one queue as long as it is fetched from: opens, widens, pauses and closes its channel as needed."""

    def __init__(
        self, queue: str, connection: Connection, queues: Queues, finished: Callable[[AmqpConsumer], None]
    ) -> None:
        self.queue = queue
        self.inbox = Inbox()
        self._connection = connection
        self._queues = queues
        self._finished = finished
        self._timeout_s = connection.options.confirm_timeout
        self._channel: ConsumeChannel | None = None
        self._asked = 1  # the largest limit of a fetch
        self._starving = False  # all that may be unsettled is, and a fetch waits
        self._fetched_at = 0.0
        self._fetching = 0  # fetches that wait for messages
        self._stopped = False
        self._error = ""
        self._task: asyncio.Task[None] | None = None
        self._wakeup = asyncio.Event()
        self._opened = Broadcast()

    @property
    def consuming(self) -> bool:
        return self._channel is not None and bool(self._channel.consumers)

    async def fetch(self, limit: int, wait: float) -> list[Delivery]:
        self._fetched_at = asyncio.get_running_loop().time()
        self._asked = max(self._asked, limit)
        if self.inbox.ready:
            return self.inbox.take(limit)
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
        await self._open(until, max(until, start + self._timeout_s))
        if wait <= 0:
            channel = self._channel
            if not self.inbox.ready and channel is not None and channel.alive:
                await channel.get(self._timeout_s)
            return self.inbox.take(limit)
        while not self.inbox.ready and (left := until - loop.time()) > 0:
            self._check_window()
            await self.inbox.arrival(left)
        return self.inbox.take(limit)

    def stop(self) -> None:
        self._stopped = True
        self._opened.fire()
        if self._task is not None:
            self._task.cancel()
        self.inbox.cancel_all()

    async def stopped(self) -> None:
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    # -- for fetches -------------------------------------------------------------------------------------------------

    async def _open(self, until: float, patience: float) -> None:
        """Return when the queue is consumed. A connection that is known to be lost is waited for until `until`, one
        that is being made until `patience`."""
        loop = asyncio.get_running_loop()
        while not self.consuming and not self.inbox.ready:
            if self._stopped:
                raise BrokerUnavailableError("closed")
            self._start()
            left = (until if self._connection.error else patience) - loop.time()
            if left <= 0:
                raise BrokerUnavailableError(
                    self._error or f"RabbitMQ at {self._connection.options.where} does not answer"
                )
            await self._opened.wait(left)

    # -- the task ----------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._wakeup.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    def _wanted(self) -> bool:
        return self._fetching > 0 or asyncio.get_running_loop().time() - self._fetched_at < IDLE_TIMEOUT_S

    def _room(self) -> int:
        return min(self._connection.options.prefetch, 2 * self._asked)

    def _check_window(self) -> None:
        channel = self._channel
        if channel is not None and (channel.unsettled >= channel.window or channel.window < self._room()):
            self._starving = True
            self._wakeup.set()

    def _changed(self) -> None:
        """React to a settlement, or to the loss of the channel or of a consumer."""
        channel = self._channel
        if channel is None:
            return
        if not channel.alive:
            self.inbox.ready.clear()  # the server has them again
        if not channel.consumers or len(channel.consumers) > 1:
            self._wakeup.set()

    async def _run(self) -> None:
        attempts = pauses()
        while self._wanted() or (self._channel is not None and self._channel.alive):
            self._wakeup.clear()
            try:
                if not await self._step():
                    await self._wait_for_change()
                attempts = pauses()
            except BrokerUnavailableError as error:
                self._error = str(error)
                self._opened.fire()
                await asyncio.sleep(next(attempts))
        self._task = None
        self._finished(self)

    async def _wait_for_change(self) -> None:
        """Wait until something changed, or until it is time to look for fetches again."""
        left = self._fetched_at + IDLE_TIMEOUT_S - asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(max(left, 0.05) if self.consuming and not self._fetching else IDLE_TIMEOUT_S):
                await self._wakeup.wait()
        except TimeoutError:
            return

    async def _step(self) -> bool:
        """Take one step towards what is wanted now; False when there was none to take."""
        channel = self._channel
        if channel is None or not channel.alive:
            if self._wanted():
                await self._open_channel()
                return True
            return False
        if not self._wanted():
            if channel.consumers:
                await self._pause(channel)
                return True
            if channel.unsettled == 0:
                channel.close()
                self._channel = None
            return False
        if not channel.consumers:
            await self._queues.ensure(self.queue)
            await self._consume(channel, self._room())
            return True
        if self._starving:
            self._starving = False
            if channel.window < self._room() or channel.unsettled >= channel.window:
                await self._consume(channel, max(self._room() - channel.window, channel.window))
            return True
        name, room = next(reversed(channel.consumers.items()))
        if (
            len(channel.consumers) > 1
            and channel.unsettled - len(self.inbox.ready) + self._room() <= channel.window - room
        ):
            await channel.cancel(name, self._timeout_s)
            return True
        return False

    async def _open_channel(self) -> None:
        transport = await self._connection.transport(IDLE_TIMEOUT_S, known_down=IDLE_TIMEOUT_S)
        await self._queues.ensure(self.queue)
        channel = ConsumeChannel(transport, self.queue, self.inbox.put, self._changed)
        await channel.open(self._timeout_s)
        self._channel = channel
        await self._consume(channel, self._room())

    async def _consume(self, channel: ConsumeChannel, room: int) -> None:
        await channel.consume(room, self._timeout_s)
        self._error = ""
        self._opened.fire()

    async def _pause(self, channel: ConsumeChannel) -> None:
        """Cancel the consumers, then give back the buffer: the other way round it would come again."""
        for name in list(channel.consumers):
            await channel.cancel(name, self._timeout_s)
        self._asked = 1
        if not self._wanted():
            buffered = self.inbox.take(len(self.inbox.ready))
            channel.give_back(delivery.tag[1] for delivery in buffered)
