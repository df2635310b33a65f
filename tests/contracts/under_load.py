"""A publisher that gives up on no message and consumers that never stop taking, while somebody else breaks things."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Self

from oraculo.errors import BrokerError, BrokerUnavailableError
from oraculo.ports.broker import Broker, Outgoing, Settlement

BATCH = 50
PAUSE = 0.01  # seconds between batches, so that a server has something to do besides


class Load:
    """`confirmed` are the numbers of the messages that the broker confirmed, `received` counts what came of each."""

    def __init__(self, publisher: Broker, consumers: Sequence[Broker], queue: str) -> None:
        self.publisher, self.consumers, self.queue = publisher, consumers, queue
        self.confirmed: set[int] = set()
        self.received: Counter[int] = Counter()
        self.failures = 0  # publish did not confirm everything
        self.slowest = 0.0  # seconds that a publish took
        self._next = 0
        self._more = True
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._publish())]
        self._tasks += [asyncio.create_task(self._consume(consumer)) for consumer in self.consumers]
        for task in self._tasks:
            task.add_done_callback(lambda _: self._changed.set())
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def goes_on(self, count: int, within: float) -> None:
        """So many messages that nobody sent before now are confirmed and received."""
        first = self._next
        await self._until(lambda: sum(n >= first and n in self.confirmed for n in self.received) >= count, within)

    async def fails(self, within: float) -> None:
        """A publish that did not confirm everything."""
        before = self.failures
        await self._until(lambda: self.failures > before, within)

    async def ends(self, within: float) -> None:
        """No new messages; all that were sent are confirmed, and all that were confirmed are received."""
        self._more = False
        await self._until(lambda: self._tasks[0].done() and self.confirmed <= self.received.keys(), within)

    @property
    def repeated(self) -> int:
        return self.received.total() - len(self.received)

    def __str__(self) -> str:
        return (
            f"{len(self.confirmed)} confirmed, {len(self.confirmed - self.received.keys())} lost, "
            f"{self.repeated} twice, {self.failures} publishes failed, the slowest took {self.slowest:.1f} s"
        )

    async def _until(self, condition: Callable[[], bool], within: float) -> None:
        try:
            async with asyncio.timeout(within):
                while not condition():
                    for task in self._tasks:
                        if task.done():
                            task.result()
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"not within {within:.0f} s: {self}") from None

    async def _publish(self) -> None:
        clock = asyncio.get_running_loop().time
        waiting: list[Outgoing] = []
        while self._more or waiting:
            if not waiting:
                numbers = range(self._next, self._next + BATCH)
                self._next += BATCH
                waiting = [Outgoing(self.queue, b"%d" % n, f"{self.queue}-{n}") for n in numbers]
            began = clock()
            report = await self.publisher.publish(waiting)
            assert not report.refused, report.refused
            self.failures += not report.complete
            self.slowest = max(self.slowest, clock() - began)
            self.confirmed |= {int(message.body) for message in report.confirmed(waiting)}
            waiting = [*report.unconfirmed, *report.no_queue]
            self._changed.set()
            await asyncio.sleep(PAUSE)

    async def _consume(self, broker: Broker) -> None:
        while True:
            try:
                deliveries = await broker.fetch(self.queue, limit=100, wait=5)
            except BrokerUnavailableError:
                await asyncio.sleep(PAUSE)
                continue
            self.received.update(int(delivery.body) for delivery in deliveries)
            self._changed.set()
            with contextlib.suppress(BrokerError):  # then it comes again
                await broker.settle([Settlement(delivery) for delivery in deliveries])
