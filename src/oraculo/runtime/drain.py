"""Dead-letter queues of the brokers → the table of dead letters, continuously.

Whoever cannot handle a message (a worker, or the broker after too many deliveries) puts it into `<queue>.dlq`. Here
they become rows that can be browsed, requeued and discarded; a broker's queue is no place to keep them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection

import structlog

from oraculo.errors import BrokerError, BusyError, StoreError
from oraculo.ports.broker import Broker, Delivery, Settle, Settlement
from oraculo.runtime.work import Fate, Outcome, Work
from oraculo.wire import names, quarantine

log = structlog.get_logger("oraculo.drain")

EVERY = 2.0  # seconds for a round, or more when there are many queues
PACE = 0.02  # seconds between two queues
BATCH = 100
WAIT = 2.0


class Drain:
    """`queues` gives the queues whose dead letters are ours; `submit` returns once they are in the table."""

    def __init__(
        self,
        broker: Broker,
        queues: Callable[[], Collection[str]],
        submit: Callable[[list[Work]], Awaitable[list[Outcome]]],
    ) -> None:
        self._broker = broker
        self._queues = queues
        self._submit = submit

    async def run(self) -> None:
        while True:
            await self.round()
            await asyncio.sleep(EVERY)

    async def round(self) -> int:
        """Once through all queues; how many letters were moved."""
        moved = 0
        for queue in sorted(self._queues()):
            try:
                moved += await self._one(names.dead_letter_queue(queue))
            except (BrokerError, StoreError, BusyError) as error:
                log.debug("dead letters stay where they are for now", queue=queue, error=str(error))
            await asyncio.sleep(PACE)
        return moved

    async def _one(self, queue: str) -> int:
        moved = 0
        while (await self._broker.backlog(queue)).waiting:
            deliveries = await self._broker.fetch(queue, limit=BATCH, wait=WAIT)
            if not deliveries:
                break
            moved += await self._move(deliveries)
        return moved

    async def _move(self, deliveries: list[Delivery]) -> int:
        works = [
            Work(dead=quarantine.letter(delivery), queue=delivery.queue, broker=delivery.broker)
            for delivery in deliveries
        ]
        try:
            outcomes = await self._submit(works)
        except BaseException:
            await self._broker.settle([Settlement(delivery, Settle.RETRY, EVERY) for delivery in deliveries])
            raise
        settlements = [
            Settlement(delivery, Settle.RETRY if outcome.fate is Fate.RETRY else Settle.ACK)
            for delivery, outcome in zip(deliveries, outcomes, strict=True)
        ]
        await self._broker.settle(settlements)
        return len(deliveries)
