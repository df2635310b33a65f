"""Who gets which ticket: by time, by need, in turn; every choice is in the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from oraculo.adapters.clock import MonotonicClock
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.core.allocations import AllocationMethod, NotChosen
from oraculo.core.durations.history import TaskKey
from oraculo.core.events import PolicyEvaluated, TicketAllocated
from oraculo.core.policies import PolicyPoint
from oraculo.core.replay import replay_step
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Kind
from oraculo.ports.policies import PolicyDocument, PolicyEngineStatus
from oraculo.runtime.durations.learning import Durations
from oraculo.runtime.policies.asking import Policies, PolicyOptions
from oraculo.runtime.scheduler.affinities import AffinityOptions
from oraculo.runtime.scheduler.scheduler import SchedulerOptions
from oraculo.simulation.loop import VirtualLoop
from runtime.scheduling import QUEUE, Shop, shop, virtually

FAST_S, SLOW_S = 1.0, 10.0


async def _race(virtual: VirtualLoop, tickets: int, affinity: bool) -> tuple[float, Mapping[str, int]]:
    async with shop(options=SchedulerOptions(affinity=AffinityOptions(affinity))) as open_shop:
        await open_shop.submit(tickets, correlation_id="x")
        began = virtual.time()
        speeds = (("fast-1", FAST_S), ("fast-2", FAST_S), ("slow", SLOW_S))
        workers = [asyncio.create_task(open_shop.work(name, takes)) for name, takes in speeds]
        await open_shop.ended("x")
        for one in workers:
            one.cancel()
        return virtual.time() - began, open_shop.shares


def _oracle_s(tickets: int) -> float:
    """The best that can be, when every speed is known from the start: so long that all of them fit."""
    return next(seconds for seconds in range(tickets) if 2 * seconds // FAST_S + seconds // SLOW_S >= tickets)


@pytest.mark.parametrize("affinity", [False, True], ids=["without affinity", "with affinity"])
@pytest.mark.parametrize("tickets", [30, 200])
def test_a_worker_ten_times_slower_gets_little_and_delays_nothing(tickets: int, affinity: bool) -> None:
    makespan_s, shares = virtually(lambda virtual: _race(virtual, tickets, affinity))
    oracle_s = _oracle_s(tickets)
    assert oracle_s == {30: 15, 200: 96}[tickets]
    assert shares["slow"] / tickets < 0.15
    assert makespan_s <= 1.3 * oracle_s
    assert shares["slow"] >= 1, "it is not starved"


async def _teach(open_shop: Shop, name: str, takes_s: float) -> None:
    """Let a worker finish a ticket of its own, so that its speed is known."""
    await open_shop.submit(1, correlation_id=f"lesson-{name}")
    (lease,) = await open_shop.ask(name, wait=5.0)
    await asyncio.sleep(takes_s)
    await open_shop.answer(lease)


def test_a_slow_worker_is_passed_over_until_its_turn() -> None:
    async def story(virtual: VirtualLoop) -> list[tuple[float, str, AllocationMethod]]:
        async with shop(turn_s=20.0) as open_shop:
            await _teach(open_shop, "slow", 30.0)
            await _teach(open_shop, "fast", 1.0)
            began, given = virtual.time(), []
            slow = asyncio.create_task(open_shop.ask("slow", wait=60.0))
            fast = asyncio.create_task(open_shop.work("fast", 1.0))
            for number in range(40):
                await open_shop.submit(1, correlation_id=f"n{number}")
                await asyncio.sleep(1.0)
            assert await slow
            fast.cancel()
            for number in range(40):
                for event in await open_shop.events(f"n{number}"):
                    if isinstance(event, TicketAllocated):
                        at = (await open_shop.state(f"n{number}")).started_at.timestamp() - began
                        given.append((at, event.allocation.agent_id, event.allocation.method))
            return given

    given = virtually(story)
    slow = [one for one in given if one[1] == "slow"]
    assert len(slow) == 1 and slow[0][2] is AllocationMethod.TURN
    assert [name for _, name, _ in given[:15]] == ["fast"] * 15


def test_what_faster_ones_do_not_take_in_time_goes_to_the_slow_one() -> None:
    async def story(_virtual: VirtualLoop) -> AllocationMethod:
        async with shop(turn_s=3600.0) as open_shop:
            await _teach(open_shop, "slow", 30.0)
            await _teach(open_shop, "fast", 1.0)
            await open_shop.submit(1, correlation_id="x")
            (lease,) = await open_shop.ask("slow", wait=20.0)  # "fast" was here a moment ago, and never comes again
            assert lease.ticket is not None
            (event,) = [one for one in await open_shop.events("x") if isinstance(one, TicketAllocated)]
            return event.allocation.method

    assert virtually(story) is AllocationMethod.OVERDUE


def test_needs_rule_workers_out_and_the_journal_says_why() -> None:
    async def story(_virtual: VirtualLoop) -> dict[NotChosen, int]:
        async with shop() as open_shop:
            await open_shop.register("full", concorrencia=1)
            await open_shop.register("good", concorrencia=4)
            await open_shop.register("idle", concorrencia=2)
            await open_shop.submit(1, correlation_id="before")
            assert len(await open_shop.ask("full", limit=4)) == 1
            await open_shop.submit(1, correlation_id="x")
            assert await open_shop.ask("full", limit=4) == [], "it said that it works on one at once"
            assert len(await open_shop.ask("good")) == 1
            (event,) = [one for one in await open_shop.events("x") if isinstance(one, TicketAllocated)]
            assert event.allocation.candidates[0].agent_id == "good"
            assert {one.agent_id for one in event.allocation.candidates} == {"good", "full", "idle"}
            return event.allocation.refused

    assert virtually(story) == {NotChosen.NO_ROOM: 1, NotChosen.NOT_ASKING: 1}


def test_a_worker_that_fails_nearly_always_gets_nothing_while_another_asks() -> None:
    async def story(_virtual: VirtualLoop) -> Mapping[str, int]:
        async with shop() as open_shop:
            await open_shop.submit(60, correlation_id="x")
            workers = [
                asyncio.create_task(open_shop.work("good", 1.0)),
                asyncio.create_task(open_shop.work("bad", 0.5, lambda _number: True)),
            ]
            await open_shop.ended("x")
            for one in workers:
                one.cancel()
            return open_shop.shares

    shares = virtually(story)
    assert shares["bad"] < 40 and shares["good"] >= 40


def test_a_dead_worker_gets_nothing_and_holds_nothing_up() -> None:
    async def story(virtual: VirtualLoop) -> tuple[float, Mapping[str, int]]:
        async with shop(timeout_s=5.0) as open_shop:
            await open_shop.register("dies", concorrencia=2, timeout_s=5)
            await _teach(open_shop, "dies", 0.5)
            await _teach(open_shop, "slow", 4.0)
            await open_shop.submit(3, correlation_id="x")
            assert len(await open_shop.ask("dies", limit=2)) == 2
            began = virtual.time()
            slow = asyncio.create_task(open_shop.work("slow", 4.0))
            await open_shop.ended("x")
            slow.cancel()
            return virtual.time() - began, open_shop.shares

    took_s, shares = virtually(story)
    assert shares == {"dies": 1, "slow": 4}
    assert took_s < 30.0


def test_the_urgent_go_first_and_plans_take_turns() -> None:
    async def story(_virtual: VirtualLoop) -> list[str]:
        async with shop() as open_shop:
            plan = {"tarefas": {f"t{n}": {"fonte": "a", "prioridade": 1} for n in range(3)}}
            await open_shop.accept({**plan, "correlation_id": "one"})
            await open_shop.accept({**plan, "correlation_id": "two"})
            urgent = {"tarefas": {"t": {"fonte": "a", "prioridade": 9}}, "correlation_id": "urgent"}
            await open_shop.accept(urgent)
            await asyncio.sleep(0.5)
            order = []
            for _ in range(7):
                (lease,) = await open_shop.ask("w", wait=1.0)
                order.append(orjson.loads(lease.delivery.body)["correlation_id"])
            return order

    order = virtually(story)
    assert order[0] == "urgent"
    assert [set(order[1:3]), set(order[3:5]), set(order[5:7])] == [{"one", "two"}] * 3


class OneWorkerRefused:
    """Policies that refuse one worker."""

    name, version = "test", "1"
    sources: Mapping[str, str] = {}

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    def status(self) -> PolicyEngineStatus:
        return PolicyEngineStatus()

    async def evaluate(self, packages: Sequence[str], inputs: Sequence[bytes]) -> list[list[PolicyDocument]]:
        found = []
        for raw in inputs:
            agent = orjson.loads(raw)["context"]["agent_id"]
            rule = {"policy": "p", "rule": "not_him", "severity": "high", "msg": agent}
            said: dict[str, Any] = {"allow": agent != "him", "violations": [rule] if agent == "him" else []}
            found.append([PolicyDocument(said) for _ in packages])
        return found


def test_policies_are_asked_about_the_worker_and_their_refusal_is_recorded() -> None:
    async def story(_virtual: VirtualLoop) -> tuple[list[str], Mapping[NotChosen, int]]:
        options = PolicyOptions({PolicyPoint.ALLOCATION: ("p",)})
        policies = Policies(OneWorkerRefused(), options, MonotonicClock().now)
        async with shop(policies=policies) as open_shop:
            await open_shop.submit(1, correlation_id="x")
            assert await open_shop.ask("him", wait=3.0) == []
            assert len(await open_shop.ask("her", wait=1.0)) == 1
            events = await open_shop.events("x")
            said = [one for one in events if isinstance(one, PolicyEvaluated)]
            (given,) = [one for one in events if isinstance(one, TicketAllocated)]
            assert given.allocation.agent_id == "her"
            return [finding.violations[0].message for one in said for finding in one.findings], given.allocation.refused

    said, refused = virtually(story)
    assert said == ["him"]
    assert refused == {NotChosen.POLICY: 1}


def test_a_journal_with_choices_replays_alone() -> None:
    async def story(_virtual: VirtualLoop) -> None:
        async with shop() as open_shop:
            await open_shop.submit(3, correlation_id="x")
            worker = asyncio.create_task(open_shop.work("w", 0.1))
            await open_shop.ended("x")
            worker.cancel()
            run = await open_shop.run_of("x")
            recorded = (await open_shop.store.load([run]))[run]
        assert sum(isinstance(event, TicketAllocated) for step in recorded for event in step.events) == 3
        state: Orchestration | None = None
        for one in recorded:
            again = replay_step(state, one)
            assert again.events == one.events
            state = again.state
        assert state is not None and state.tickets[0].allocated is not None

    virtually(story)


def test_what_nobody_takes_goes_back_when_nobody_asks() -> None:
    async def story(_virtual: VirtualLoop) -> tuple[int, int]:
        async with shop() as open_shop:
            await open_shop.submit(5, correlation_id="x")
            (lease,) = await open_shop.ask("w", wait=1.0)
            held = open_shop.scheduler.waiting
            await open_shop.leases.release(lease.lease_id)
            await asyncio.sleep(5.0)
            return held, open_shop.scheduler.waiting

    assert virtually(story) == (4, 0)


def test_one_that_goes_away_loses_nothing() -> None:
    async def story(_virtual: VirtualLoop) -> int:
        async with shop() as open_shop:
            gone = asyncio.create_task(open_shop.ask("w", limit=2, wait=30.0))
            await asyncio.sleep(1.0)
            await open_shop.submit(2, correlation_id="x")
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)
            return len(await open_shop.ask("v", limit=5, wait=5.0))

    assert virtually(story) == 2


def test_predicted_durations_weigh_tickets_and_are_kept_with_the_choice() -> None:
    """Small orders take a second and large ones ten. A worker that had only large ones is not taken for a slow one."""

    async def story(virtual: VirtualLoop) -> tuple[list[TicketAllocated], dict[str, float | None]]:
        durations = Durations(SqliteStore(":memory:", threads=False))
        long_ago = datetime(2025, 1, 1, tzinfo=UTC)
        for _ in range(40):
            durations.history.learn(TaskKey("default", Kind.COLETA, "a", 0), 1_000, long_ago)
            durations.history.learn(TaskKey("default", Kind.COLETA, "a", 2), 10_000, long_ago)
        async with shop(durations=durations) as open_shop:
            large = [{"fonte": "a", "parametros": {"n": "x" * 2000}, "timeout_s": 600}]
            await open_shop.accept({"coletas": large, "correlation_id": "large"})
            (lease,) = await open_shop.ask("w-large", wait=5.0)
            await open_shop.submit(1, correlation_id="small")
            (other,) = await open_shop.ask("w-small", wait=5.0)
            await asyncio.sleep(1.0)
            await open_shop.answer(other)
            await asyncio.sleep(9.0)
            await open_shop.answer(lease)
            found = open_shop.scheduler.workers.at(QUEUE, ("w-large", "w-small"))
            events = [*await open_shop.events("large"), *await open_shop.events("small")]
            given = [one for one in events if isinstance(one, TicketAllocated)]
            return given, {key: one.duration_s for key, one in found.items()}

    given, durations = virtually(story)
    large, small = (one.allocation for one in given)
    assert large.predicted_ms == pytest.approx(10_000, rel=0.05)
    assert small.predicted_ms == pytest.approx(1_000, rel=0.05)
    assert large.predicted_p90_ms is not None and large.predicted_p90_ms >= large.predicted_ms
    one, other = sorted(value for value in durations.values() if value is not None)
    assert other / one < 1.2, "both work as fast as each other, ticket for ticket"
