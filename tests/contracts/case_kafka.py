"""Kafka under the contract suite."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from contracts.conftest import CONFIRM_LONG, BrokerCase
from oraculo.adapters.brokers.kafka import KafkaBroker
from oraculo.ports.broker import Broker
from servers import imitated, shared


class Case(BrokerCase):
    broker: KafkaBroker

    async def open(self, stack: AsyncExitStack) -> None:
        self.broker = KafkaBroker(shared("kafka") + CONFIRM_LONG)
        stack.push_async_callback(self.broker.close)

    def real(self, reason: str) -> None:
        if imitated("kafka"):
            pytest.skip(f"only an imitation of Kafka is here: {reason}")

    async def lose_consumer(self, queue: str) -> None:
        await self.broker.reset()

    async def another(self, stack: AsyncExitStack, group: str | None = None) -> Broker | None:
        broker = KafkaBroker(shared("kafka") + CONFIRM_LONG + (f"&group={group}" if group else ""))
        stack.push_async_callback(broker.close)
        return broker
