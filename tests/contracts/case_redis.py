"""Redis Streams under the contract suite."""

from __future__ import annotations

from contextlib import AsyncExitStack

from contracts.conftest import CONFIRM_LONG, BrokerCase
from oraculo.adapters.brokers.redis_streams import RedisBroker
from oraculo.ports.broker import Broker
from servers import shared


class Case(BrokerCase):
    broker: RedisBroker

    async def open(self, stack: AsyncExitStack) -> None:
        self.broker = RedisBroker(shared("redis") + CONFIRM_LONG)
        stack.push_async_callback(self.broker.close)

    async def lose_consumer(self, queue: str) -> None:
        """A new connection gives back everything that was taken through the old one."""
        await self.broker.reset()

    async def another(self, stack: AsyncExitStack, group: str | None = None) -> Broker | None:
        broker = RedisBroker(shared("redis") + CONFIRM_LONG + (f"&group={group}" if group else ""))
        stack.push_async_callback(broker.close)
        return broker
