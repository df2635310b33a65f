"""A full house of what is not urgent makes room for what is: in time, once, without using up an attempt."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

import orjson

from oraculo.core.access import LOCAL
from oraculo.core.commands import Prioritise
from oraculo.core.events import TicketAllocated, TicketConcluded, TicketFailed, TicketWithdrawn
from oraculo.core.vocabulary import Cause, Status
from oraculo.ports.work import Work
from oraculo.runtime.lease import Lease
from oraculo.runtime.scheduler.preempting import PreemptionOptions
from oraculo.simulation.loop import VirtualLoop
from oraculo.wire.worker_messages import Heartbeat
from runtime.scheduling import Shop, shop, virtually

GRACE_S, LONG_S, RETRY_S = 10.0, 400.0, 60.0
ON = PreemptionOptions(enabled=True, grace_s=GRACE_S, retry_delay_s=RETRY_S)


def one(name: str, priority: int) -> dict[str, object]:
    task = {"fonte": "a", "prioridade": priority, "timeout_s": 3000, "max_tentativas": 1}
    return {"correlation_id": name, "tarefas": {"t": task}, "timeout_s": 6000}


@dataclass
class Polite:
    """A worker that beats twice in a grace, and stops what it is told to stop."""

    shop: Shop
    name: str
    stops: bool = True
    told: list[str] = field(default_factory=list)

    async def run(self) -> None:
        while True:
            for lease in await self.shop.ask(self.name, wait=1.0):
                await self._do(lease)

    async def _do(self, lease: Lease) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + (LONG_S if b"longo" in lease.delivery.body else 1.0)
        while loop.time() < until:
            await asyncio.sleep(min(GRACE_S / 2, until - loop.time()))
            beat = await self.shop.registry.beat(self.name, Heartbeat.model_validate({}), LOCAL)
            self.told += [stop.by for stop in beat.stop]
            if beat.stop and self.stops:
                await self.shop.leases.release(lease.lease_id)
                return
            if lease.lease_id in {held.lease_id for held in self.shop.leases.all()}:
                self.shop.leases.extend(lease.lease_id)
        await self.shop.answer(lease)


async def _full_house(open_shop: Shop, *, stops: bool = True, cancellable: bool = True) -> list[Polite]:
    """Two workers with one place each, and three long tickets that are not urgent."""
    workers = [Polite(open_shop, name, stops) for name in ("w1", "w2")]
    for worker in workers:
        await open_shop.register(worker.name, concorrencia=1, cancelavel=cancellable)
    for number in range(3):
        await open_shop.accept(one(f"longo-{number}", 1))
    return workers


async def _given(open_shop: Shop, name: str, since: float) -> float | None:
    state = await open_shop.state(name)
    found = state.tickets[0].allocated
    return None if found is None else found.at.timestamp() - since


def test_an_urgent_ticket_starts_within_the_grace_and_nothing_is_used_up() -> None:
    async def story(virtual: VirtualLoop) -> None:
        async with shop(preemption=ON, timeout_s=120.0) as open_shop:
            workers = await _full_house(open_shop)
            running = [asyncio.create_task(worker.run()) for worker in workers]
            await asyncio.sleep(20.0)
            began = open_shop.clock.now().timestamp()
            await open_shop.accept(one("urgente", 9))
            await open_shop.ended("urgente")
            waited = await _given(open_shop, "urgente", began)
            assert waited is not None and waited <= GRACE_S + 1
            await open_shop.ended("longo-0", "longo-1", "longo-2")
            events = [event for n in range(3) for event in await open_shop.events(f"longo-{n}")]
            (back,) = [event for event in events if isinstance(event, TicketWithdrawn)]
            assert back.cause is Cause.PREEMPTADO and back.worker in ("w1", "w2")
            assert back.by == str((await open_shop.ticket_ids("urgente"))[0]), "the journal says for which"
            assert sum(isinstance(event, TicketConcluded) for event in events) == 3
            states = [await open_shop.state(f"longo-{n}") for n in range(3)]
            assert [state.status for state in states] == [Status.CONCLUIDA] * 3, "with one attempt each"
            assert {state.tickets[0].used for state in states} == {1}
            counts = open_shop.scheduler.preemption.counts
            assert counts.made_room == {("LOW", "CRITICAL"): 1} and not counts.failed
            assert open_shop.scheduler.preemption.active == 0
            for worker in workers:
                assert not (await open_shop.registry.beat(worker.name, Heartbeat.model_validate({}), LOCAL)).stop
            for task in running:
                task.cancel()

    virtually(story)


def test_an_answer_of_what_made_room_counts_once_when_it_comes_in_time() -> None:
    async def story(_virtual: VirtualLoop) -> None:
        async with shop(preemption=ON) as open_shop:
            await open_shop.register("w1", concorrencia=1, cancelavel=True)
            await open_shop.accept(one("longo", 1))
            (lease,) = await open_shop.ask("w1", wait=5.0)
            await open_shop.accept(one("urgente", 9))
            await asyncio.sleep(2.0)
            assert any(isinstance(event, TicketWithdrawn) for event in await open_shop.events("longo"))
            await open_shop.answer(lease)
            await open_shop.ended("longo")
            (given,) = await open_shop.ask("w1", wait=5.0)
            await open_shop.answer(given)
            await open_shop.ended("urgente")
            events = await open_shop.events("longo")
            assert sum(isinstance(event, TicketConcluded) for event in events) == 1
            assert (await open_shop.state("longo")).tickets[0].attempt == 1, "it never went out again"

    virtually(story)


def test_a_worker_that_does_not_stop_loses_its_lease_after_the_grace() -> None:
    async def story(_virtual: VirtualLoop) -> None:
        async with shop(preemption=ON) as open_shop:
            await open_shop.register("deaf", concorrencia=1, cancelavel=True)
            await open_shop.accept(one("longo", 1))
            (lease,) = await open_shop.ask("deaf", wait=5.0)
            await open_shop.accept(one("urgente", 9))
            await asyncio.sleep(GRACE_S + 1)
            assert lease.lease_id not in {held.lease_id for held in open_shop.leases.all()}
            assert open_shop.scheduler.preemption.counts.failed == {"nao_parou": 1}
            (given,) = await open_shop.ask("deaf", wait=1.0)
            assert orjson.loads(given.delivery.body)["correlation_id"] == "urgente"

    virtually(story)


def _asked(cancellable: bool, victim: int, preemptor: int, options: PreemptionOptions = ON) -> int:
    async def story(_virtual: VirtualLoop) -> int:
        async with shop(preemption=options) as open_shop:
            await open_shop.register("w1", concorrencia=1, cancelavel=cancellable)
            await open_shop.accept(one("a", victim))
            assert await open_shop.ask("w1", wait=5.0)
            await open_shop.accept(one("b", preemptor))
            await asyncio.sleep(GRACE_S)
            return sum(isinstance(event, TicketWithdrawn) for event in await open_shop.events("a"))

    return virtually(story)


def test_who_makes_room_for_whom() -> None:
    assert _asked(cancellable=True, victim=1, preemptor=9) == 1
    assert _asked(cancellable=True, victim=3, preemptor=7) == 1
    assert _asked(cancellable=False, victim=1, preemptor=9) == 0, "it did not say that it stops anything"
    assert _asked(cancellable=True, victim=5, preemptor=9) == 0, "only what has a low priority"
    assert _asked(cancellable=True, victim=1, preemptor=5) == 0, "only for what has a high one"
    assert _asked(cancellable=True, victim=1, preemptor=9, options=PreemptionOptions()) == 0, "off"


def test_a_priority_that_an_operator_gave_counts() -> None:
    async def story(_virtual: VirtualLoop) -> int:
        async with shop(preemption=ON) as open_shop:
            await open_shop.register("w1", concorrencia=1, cancelavel=True)
            await open_shop.accept(one("a", 5))
            await open_shop.engine.submit([Work(Prioritise(1), run=await open_shop.run_of("a"))])
            assert await open_shop.ask("w1", wait=5.0)
            await open_shop.accept(one("b", 9))
            await asyncio.sleep(GRACE_S)
            return sum(isinstance(event, TicketWithdrawn) for event in await open_shop.events("a"))

    assert virtually(story) == 1


def test_who_has_room_is_waited_for() -> None:
    async def story(_virtual: VirtualLoop) -> None:
        async with shop(preemption=ON) as open_shop:
            await open_shop.register("w1", concorrencia=1, cancelavel=True)
            await open_shop.accept(one("a", 1))
            assert await open_shop.ask("w1", wait=5.0)
            asking = asyncio.create_task(open_shop.ask("w2", wait=30.0))
            await open_shop.accept(one("b", 9))
            assert await asking
            events = await open_shop.events("a")
            assert not any(isinstance(event, TicketWithdrawn) for event in events)
            assert any(isinstance(event, TicketAllocated) for event in await open_shop.events("b"))

    virtually(story)


def test_what_makes_room_has_failed_where_it_is_not_tried_again() -> None:
    async def story(_virtual: VirtualLoop) -> None:
        async with shop(preemption=replace(ON, retry_delay_s=None)) as open_shop:
            await open_shop.register("w1", concorrencia=1, cancelavel=True)
            task = {"fonte": "a", "prioridade": 1, "timeout_s": 3000, "max_tentativas": 3}
            await open_shop.accept({"correlation_id": "longo", "tarefas": {"t": task}, "timeout_s": 6000})
            (lease,) = await open_shop.ask("w1", wait=5.0)
            await open_shop.accept(one("urgente", 9))
            await open_shop.ended("longo")
            state, (by, *_) = await open_shop.state("longo"), await open_shop.ticket_ids("urgente")
            assert (state.status, state.tickets[0].status, state.tickets[0].used) == (Status.ERRO, Status.ERRO, 1)
            events = await open_shop.events("longo")
            assert not any(isinstance(event, TicketWithdrawn) for event in events)
            (failed,) = [event for event in events if isinstance(event, TicketFailed)]
            assert failed.erros[0]["codigo"] == "preemptado" and str(by) in str(failed.erros[0]["mensagem"])
            beat = await open_shop.registry.beat("w1", Heartbeat.model_validate({}), LOCAL)
            assert [stop.by for stop in beat.stop] == [str(by)], "its worker is told to stop all the same"
            await open_shop.leases.release(lease.lease_id)
            (given,) = await open_shop.ask("w1", wait=5.0)
            assert orjson.loads(given.delivery.body)["correlation_id"] == "urgente"

    virtually(story)
