"""With affinity, workers get tickets of plans that they did others of, and critical ones are spread."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from oraculo.core.events import TicketAllocated
from oraculo.runtime.scheduler.affinities import Affinities, AffinityOptions
from oraculo.runtime.scheduler.scheduler import SchedulerOptions
from oraculo.simulation.loop import VirtualLoop
from runtime.scheduling import Shop, shop, virtually

ON, OFF = AffinityOptions(enabled=True), AffinityOptions()
CHAIN = {"a": {"fonte": "a", "timeout_s": 600}, "b": {"fonte": "a", "timeout_s": 600, "depende": ["a"]}}


async def _teach(open_shop: Shop, name: str, takes_s: float) -> None:
    """Let a worker finish a ticket of its own, so that its speed is known."""
    await open_shop.submit(1, correlation_id=f"lesson-{name}")
    (lease,) = await open_shop.ask(name, wait=5.0)
    await asyncio.sleep(takes_s)
    await open_shop.answer(lease)


async def _given(open_shop: Shop, name: str) -> list[TicketAllocated]:
    return [one for one in await open_shop.events(name) if isinstance(one, TicketAllocated)]


@pytest.mark.parametrize(("options", "expected"), [(ON, "did-it"), (OFF, "faster")])
def test_the_worker_that_did_the_step_before_gets_the_next_one(options: AffinityOptions, expected: str) -> None:
    async def story(_virtual: VirtualLoop) -> tuple[TicketAllocated, Affinities, int, dict[tuple[str, bool], int]]:
        async with shop(options=SchedulerOptions(affinity=options)) as open_shop:
            await _teach(open_shop, "did-it", 1.0)
            await _teach(open_shop, "faster", 0.8)
            await open_shop.accept({"tarefas": CHAIN, "correlation_id": "x"})
            (lease,) = await open_shop.ask("did-it", wait=5.0)
            asking = [asyncio.create_task(open_shop.ask(name, wait=30.0)) for name in ("did-it", "faster")]
            await asyncio.sleep(1.0)
            await open_shop.answer(lease)
            await asyncio.sleep(1.0)
            after_restart = Affinities(ON)
            after_restart.read(await open_shop.state("x"), 0.0, open_shop.clock.now())
            for one in asking:
                one.cancel()
            given, counts = (await _given(open_shop, "x"))[1], dict(open_shop.scheduler.counts.shared)
            return given, after_restart, await open_shop.run_of("x"), counts

    given, after_restart, run, counts = virtually(story)
    assert counts == ({("plan", True): 1, ("plan", False): 3} if options.enabled else {})
    assert given.allocation.agent_id == expected
    shown = {one.agent_id: one.affinity for one in given.allocation.candidates}
    assert shown == ({"did-it": 0.6, "faster": 0.5} if options.enabled else {"did-it": None, "faster": None})
    assert after_restart.did(run, "did-it") == 1 + (expected == "did-it"), "the journal knows it, and no process has to"


@pytest.mark.parametrize(("options", "expected"), [(ON, "other"), (OFF, "busy")])
def test_a_second_critical_ticket_goes_to_another_worker(options: AffinityOptions, expected: str) -> None:
    async def story(_virtual: VirtualLoop) -> list[str]:
        async with shop(options=SchedulerOptions(affinity=options)) as open_shop:
            await open_shop.register("busy", concorrencia=4)
            await open_shop.register("other", concorrencia=4)
            await _teach(open_shop, "busy", 1.0)
            await _teach(open_shop, "other", 1.2)
            asking = []
            for name in ("x", "y"):
                asking += [asyncio.create_task(open_shop.ask(one, wait=30.0)) for one in ("busy", "other")]
                await asyncio.sleep(0.6)
                urgent = {"t": {"fonte": "a", "prioridade": 9, "timeout_s": 600}}
                await open_shop.accept({"tarefas": urgent, "correlation_id": name})
                await asyncio.sleep(1.0)
            for one in asking:
                one.cancel()
            return [(await _given(open_shop, name))[0].allocation.agent_id for name in ("x", "y")]

    assert virtually(story) == ["busy", expected]


@pytest.mark.parametrize(("options", "expected"), [(ON, "y"), (OFF, "x")])
def test_a_worker_that_asks_alone_gets_of_equal_tickets_those_of_its_plan(
    options: AffinityOptions, expected: str
) -> None:
    async def story(_virtual: VirtualLoop) -> str:
        async with shop(options=SchedulerOptions(affinity=options)) as open_shop:
            for name in ("x", "y"):
                await open_shop.submit(2, correlation_id=name)
                await asyncio.sleep(0.1)
            first = await open_shop.ask("of-x", wait=1.0)
            second = await open_shop.ask("of-y", wait=1.0)
            assert len(first) == len(second) == 1
            await open_shop.ask("of-y", wait=1.0)
            given = [(name, one.allocation.agent_id) for name in ("x", "y") for one in await _given(open_shop, name)]
            assert ("x", "of-x") in given, "plans take turns, with affinity too"
            assert ("y", "of-y") in given
            given.remove(("y", "of-y"))
            (last,) = [name for name, worker in given if worker == "of-y"]
            return last

    assert virtually(story) == expected


@pytest.mark.parametrize(("kept_s", "counts"), [(None, 1), (3600, 1), (60, 0)])
def test_it_counts_for_so_long_that_a_worker_had_a_ticket_of_a_plan(kept_s: float | None, counts: int) -> None:
    async def story(_virtual: VirtualLoop) -> int:
        async with shop(options=SchedulerOptions(affinity=ON)) as open_shop:
            await open_shop.accept({"tarefas": CHAIN, "correlation_id": "x", "timeout_s": 6000})
            (lease,) = await open_shop.ask("did-it", wait=5.0)
            await open_shop.answer(lease)
            await asyncio.sleep(120.0)
            kept = None if kept_s is None else timedelta(seconds=kept_s)
            found = Affinities(AffinityOptions(enabled=True, kept=kept))
            found.read(await open_shop.state("x"), 0.0, open_shop.clock.now())
            return found.did(await open_shop.run_of("x"), "did-it")

    assert virtually(story) == counts
