"""Redis Streams on a real server."""

from __future__ import annotations

import secrets
from contextlib import AsyncExitStack

from oraculo.adapters.brokers.redis_streams import RedisBroker
from oraculo.ports.broker import Broker
from servers import shared


class Case:
    """A BrokerCase; that class lives in the conftest that imports this module."""

    broker: RedisBroker

    async def open(self, stack: AsyncExitStack) -> None:
        self.broker = RedisBroker(shared("redis"))
        stack.push_async_callback(self.broker.close)

    def queue(self) -> str:
        return f"teste_{secrets.token_hex(8)}"

    async def lose_consumer(self, queue: str) -> None:
        """A new connection gives back everything that was taken through the old one."""
        await self.broker.reset()

    async def small(self, stack: AsyncExitStack, capacity: int) -> Broker | None:
        return None

    async def another(self, stack: AsyncExitStack, group: str | None = None) -> Broker | None:
        broker = RedisBroker(shared("redis") + (f"?group={group}" if group else ""))
        stack.push_async_callback(broker.close)
        return broker
