"""Kafka under the contract suite."""

from __future__ import annotations

import secrets
from contextlib import AsyncExitStack

from oraculo.adapters.brokers.kafka import KafkaBroker
from oraculo.ports.broker import Broker
from servers import shared


class Case:
    """A BrokerCase; that class lives in the conftest that imports this module."""

    broker: KafkaBroker

    async def open(self, stack: AsyncExitStack) -> None:
        self.broker = KafkaBroker(shared("kafka"))
        stack.push_async_callback(self.broker.close)

    def queue(self) -> str:
        return f"teste_{secrets.token_hex(8)}"

    async def lose_consumer(self, queue: str) -> None:
        await self.broker.reset()

    async def small(self, stack: AsyncExitStack, capacity: int) -> Broker | None:
        return None

    async def another(self, stack: AsyncExitStack, group: str | None = None) -> Broker | None:
        broker = KafkaBroker(shared("kafka") + (f"?group={group}" if group else ""))
        stack.push_async_callback(broker.close)
        return broker
