"""RabbitMQ under the contract suite."""

from __future__ import annotations

from contextlib import AsyncExitStack

from contracts.conftest import CONFIRM_LONG, BrokerCase
from oraculo.adapters.brokers.rabbitmq import RabbitMQBroker
from oraculo.ports.broker import Broker
from servers import shared


class Case(BrokerCase):
    broker: RabbitMQBroker

    async def open(self, stack: AsyncExitStack) -> None:
        self._url = f"{shared('rabbitmq')}{CONFIRM_LONG}&declare_after=0"
        self.broker = RabbitMQBroker(self._url)
        stack.push_async_callback(self.broker.close)

    async def lose_consumer(self, queue: str) -> None:
        await self.broker.reset()

    async def another(self, stack: AsyncExitStack, group: str | None = None) -> Broker | None:
        if group is not None:
            return None
        broker = RabbitMQBroker(self._url)
        stack.push_async_callback(broker.close)
        return broker
