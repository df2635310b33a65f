"""Dead-letter queues of the brokers → the table of dead letters, continuously.

A message that a worker could not handle, or that the broker delivered too often, is in `<queue>.dlq`. Here they
become rows that can be browsed, requeued and discarded; a broker's queue is no place to keep them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection

import structlog

from oraculo.errors import BrokerError, BusyError, StoreError
from oraculo.ports.broker import Broker, Delivery, Settle, Settlement
from oraculo.ports.work import Fate, Outcome, Work
from oraculo.wire import names, quarantine

log = structlog.get_logger("oraculo.drain")

ROUND_INTERVAL_S = 2.0  # seconds for a round, or more when there are many queues
QUEUE_INTERVAL_S = 0.02  # seconds between two queues
FETCH_MAX_MESSAGES = 100
FETCH_WAIT_S = 2.0


class DeadLetterCollector:
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
            await asyncio.sleep(ROUND_INTERVAL_S)

    async def round(self) -> int:
        """Once through all queues; how many letters were moved."""
        moved = 0
        for queue in sorted(self._queues()):
            try:
                moved += await self._one(names.dead_letter_queue(queue))
            except (BrokerError, StoreError, BusyError) as error:
                log.debug("dead letters not collected", queue=queue, error=str(error))
            await asyncio.sleep(QUEUE_INTERVAL_S)
        return moved

    async def _one(self, queue: str) -> int:
        moved = 0
        while (await self._broker.backlog(queue)).waiting:
            deliveries = await self._broker.fetch(queue, limit=FETCH_MAX_MESSAGES, wait=FETCH_WAIT_S)
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
            await self._broker.settle([Settlement(delivery, Settle.RETRY, ROUND_INTERVAL_S) for delivery in deliveries])
            raise
        settlements = [
            Settlement(delivery, Settle.RETRY if outcome.fate is Fate.RETRY else Settle.ACK)
            for delivery, outcome in zip(deliveries, outcomes, strict=True)
        ]
        await self._broker.settle(settlements)
        return len(deliveries)
