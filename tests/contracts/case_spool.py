"""A broker of a third party, registered by an entry point, under the contract suite."""

from __future__ import annotations

import tempfile
from contextlib import AsyncExitStack

from contracts.conftest import BrokerCase
from oraculo.adapters.brokers.registry import open_broker
from oraculo.ports.broker import Broker
from third_party_brokers import installed


class Case(BrokerCase):
    async def open(self, stack: AsyncExitStack) -> None:
        stack.enter_context(installed())
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        self._url = f"spool:///{folder}/spool.db"
        self.broker = self._another(stack)

    def _another(self, stack: AsyncExitStack) -> Broker:
        broker = open_broker(self._url)
        stack.push_async_callback(broker.close)
        return broker

    async def lose_consumer(self, queue: str) -> None:
        await self.broker.reset()

    async def another(self, stack: AsyncExitStack, group: str | None = None) -> Broker | None:
        return None if group is not None else self._another(stack)
