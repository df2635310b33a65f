"""A wide run that is paused while its orders go out: what is on its way arrives, the rest follows after it, once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import orjson

from api.conftest import settings_for
from oraculo.adapters.brokers.memory import MemoryBroker
from oraculo.core.access import LOCAL
from oraculo.ports.broker import Outgoing, PublishReport
from oraculo.service import Oraculo
from waiting import until

TICKETS, ON_THEIR_WAY = 10_000, 4  # batches


class SteppedBroker(MemoryBroker):
    """Takes some batches, and the next ones when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.batches = 0
        self.go = asyncio.Event()

    async def publish(self, messages: Sequence[Outgoing]) -> PublishReport:
        self.batches += 1
        if self.batches >= ON_THEIR_WAY:
            await self.go.wait()
        return await super().publish(messages)


class FullBroker(MemoryBroker):
    """Has no room until it is told that it has."""

    def __init__(self) -> None:
        super().__init__()
        self.has_room, self.refused = False, 0

    async def publish(self, messages: Sequence[Outgoing]) -> PublishReport:
        if self.has_room:
            return await super().publish(messages)
        self.refused += 1
        return PublishReport(no_room=messages, reason="full")


async def test_what_the_broker_forgot_is_sent_again_although_a_pause_comes_first(tmp_path: Path) -> None:
    async with Oraculo(settings_for(tmp_path), broker=MemoryBroker()) as oraculo:
        one = {"fonte": "a", "timeout_s": 800}  # its time is not over while the test waits
        await oraculo.submit({"coletas": [one], "correlation_id": "largo", "timeout_s": 900})
        await until(lambda: _is_sent(oraculo), "the order is confirmed")
    broker = FullBroker()
    async with Oraculo(settings_for(tmp_path), broker=broker) as oraculo:
        await until(lambda: broker.refused > 0, "the order is tried again")
        assert await oraculo.pauses.pause("largo", "manutenção", LOCAL)
        broker.has_room = True
        assert await oraculo.pauses.resume("largo", "", LOCAL)
        await until(lambda: _waits(broker), "the order is sent again")


async def _waits(broker: MemoryBroker) -> bool:
    return (await broker.backlog("escavador_a")).waiting == 1


async def test_ten_thousand_orders_that_a_pause_cuts_in_two_are_all_sent_once(tmp_path: Path) -> None:
    broker = SteppedBroker()
    async with Oraculo(settings_for(tmp_path), broker=broker) as oraculo:
        await oraculo.submit({"coletas": [{"fonte": "a"}] * TICKETS, "correlation_id": "largo", "timeout_s": 900})
        await until(lambda: broker.batches == ON_THEIR_WAY, "the first orders are on their way")
        assert await oraculo.pauses.pause("largo", "manutenção", LOCAL)
        broker.go.set()
        await until(lambda: not oraculo.status().effects.waiting, "what was on its way has arrived")
        arrived = (await broker.backlog("escavador_a")).waiting
        assert 0 < arrived < TICKETS
        await until(lambda: _owes(oraculo, TICKETS - arrived), "what arrived is recorded")
        assert await oraculo.pauses.resume("largo", "", LOCAL)
        await until(lambda: not oraculo.status().effects.waiting, "all of it is sent")
        orders = await broker.fetch("escavador_a", limit=2 * TICKETS, wait=0)
        seen = Counter(orjson.loads(order.body)["ticket_id"] for order in orders)
        assert (len(seen), max(seen.values())) == (TICKETS, 1)
        await until(lambda: _is_sent(oraculo), "every order is confirmed")


async def _owes(oraculo: Oraculo, count: int) -> bool:
    return len((await oraculo.state("largo")).owed) == count


async def _is_sent(oraculo: Oraculo) -> bool:
    return not (await oraculo.state("largo")).owed
