"""NATS JetStream, on the server that all tests share."""

from __future__ import annotations

from contextlib import AsyncExitStack

from contracts.conftest import CONFIRM_LONG, BrokerCase
from oraculo.adapters.brokers.nats_jetstream import NatsBroker
from oraculo.ports.broker import Broker
from servers import shared


class Case(BrokerCase):
    broker: NatsBroker

    async def open(self, stack: AsyncExitStack) -> None:
        self.broker = NatsBroker(shared("nats") + CONFIRM_LONG)
        stack.push_async_callback(self.broker.close)

    async def lose_consumer(self, queue: str) -> None:
        await self.broker.reset()

    async def another(self, stack: AsyncExitStack, group: str | None = None) -> Broker | None:
        broker = NatsBroker(shared("nats") + CONFIRM_LONG + (f"&group={group}" if group else ""))
        stack.push_async_callback(broker.close)
        return broker
