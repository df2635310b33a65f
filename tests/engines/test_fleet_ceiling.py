"""How many tickets a fleet lets out, of plans of Fluxo C and of named tasks with priorities: on a real PostgreSQL. What
is handed over is the same on every engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import pytest

from contracts.writing import begin, write
from core.given import Story, dag
from core.test_flow import made, node
from core.test_named_tasks import DEFAULTS
from databases import database, opened
from oraculo.adapters.clock import MonotonicClock
from oraculo.core.commands import PauseRun, ResumeRun
from oraculo.core.vocabulary import RiskBand
from oraculo.ports.catalogue import Query, Summary
from oraculo.ports.store import SharedStore
from oraculo.runtime.kernel.ceiling.journal import JournalCeiling
from oraculo.wire import requests
from waiting import DEADLINE_S

LONG, MOMENT = timedelta(minutes=10), timedelta(milliseconds=1)
LIMIT = 3


class Ordered:
    """What was handed to Celery, in the place of a dispatcher."""

    def __init__(self) -> None:
        self.failing_since = None
        self.orders: list[tuple[int, int, int]] = []

    def order(self, state: Any, tickets: Sequence[tuple[int, int]]) -> None:
        self.orders += [(state.run, *ticket) for ticket in tickets]

    def new(self) -> list[tuple[int, int, int]]:
        orders, self.orders = self.orders, []
        return orders


class Fleet:
    """Processes on one database."""

    def __init__(self, stack: AsyncExitStack, url: str) -> None:
        self._stack, self._url = stack, url

    async def store(self, lease: timedelta = LONG) -> SharedStore:
        store: SharedStore = await opened(self._stack, self._url)
        await store.join("alguém", lease)
        return store

    def scheduler(self, store: SharedStore, forgotten: timedelta = LONG) -> tuple[JournalCeiling, Ordered]:
        ordered = Ordered()
        return JournalCeiling(store, MonotonicClock(), ordered, LIMIT, forgotten), ordered


@pytest.fixture
async def fleet() -> AsyncIterator[Fleet]:
    async with AsyncExitStack() as stack:
        yield Fleet(stack, await database())


def plan(width: int, band: RiskBand = RiskBand.LOW) -> Story:
    return begin(wanted=made(*(node(f"t{n}") for n in range(width)), band=band))


def attempts(story: Story, *positions: int, attempt: int = 1) -> list[tuple[int, int, int]]:
    return [(story.run, position, attempt) for position in positions]


async def test_no_more_than_may_and_the_urgent_first(fleet: Fleet) -> None:
    store = await fleet.store()
    scheduler, ordered = fleet.scheduler(store)
    await scheduler.round()
    calm, hot = plan(5), plan(2, RiskBand.CRITICAL)
    await write(store, calm.started)
    await scheduler.round()
    assert ordered.new() == attempts(calm, 0, 1, 2)
    await write(store, hot.started, calm.confirm(0, 1, 2))
    await scheduler.round()
    assert (ordered.new(), scheduler.held_back) == ([], 4)
    await write(store, calm.ok(1))
    await scheduler.round()
    assert ordered.new() == attempts(hot, 0)
    await write(store, calm.fail(0))  # it is tried again later, and has to wait like all others
    await scheduler.round()
    assert ordered.new() == attempts(hot, 1)
    await write(store, calm.wake(60), hot.ok(0), hot.ok(1))
    await scheduler.round()
    assert ordered.new() == [*attempts(calm, 3), *attempts(calm, 4)]
    assert scheduler.held_back == 1
    await write(store, calm.ok(2))
    await scheduler.round()
    assert ordered.new() == attempts(calm, 0, attempt=2)


async def test_it_is_one_for_fluxo_c_and_named_tasks_of_any_tenant(fleet: Fleet) -> None:
    """Children, and plans in which no task says how urgent it is, take no place."""
    store = await fleet.store()
    scheduler, ordered = fleet.scheduler(store)
    call = {"executador": "x", "prioridade": 9}
    child = {"filha": {"tarefas": {"d": {"executador": "x"}}}, "prioridade": 9}
    wanted = requests.plan_of(requests.parse({"tarefas": {"a": call, "b": child, "c": call}}), DEFAULTS)
    named = begin("espaco_acme.um", wanted)
    usual, calm = begin(wanted=dag({"a": ()})), plan(5)
    await write(store, usual.started, calm.started)
    await scheduler.round()
    assert ordered.new() == attempts(calm, 0, 1, 2)
    await write(store, calm.confirm(0, 1, 2), named.started, calm.ok(0))
    await scheduler.round()
    await write(store, named.confirm(1), calm.ok(1))  # the child is there
    await scheduler.round()
    assert ordered.new() == attempts(named, 0, 2)
    await store.leave()
    after = await fleet.store()
    second, ordered = fleet.scheduler(after)
    await second.round()
    assert ordered.new() == attempts(named, 0, 2), "they may not have arrived"
    await write(after, named.confirm(0, 2), calm.ok(2))
    await second.round()
    assert (ordered.new(), second.held_back) == (attempts(calm, 3), 1)


async def test_who_takes_over_counts_what_the_one_before_let_out(fleet: Fleet) -> None:
    before, after = await fleet.store(), await fleet.store()
    calm, hot = plan(5), plan(2, RiskBand.CRITICAL)
    await write(before, calm.started)
    (first, _), (second, ordered) = fleet.scheduler(before), fleet.scheduler(after)
    await first.round()
    await second.round()
    assert (first.active, second.active) == (True, False)
    await write(before, calm.confirm(0), hot.started)  # one reached its worker; two may be on their way, or lost
    await before.leave()
    await second.round()
    assert ordered.new() == attempts(calm, 1, 2), "the urgent ones must wait: three may be with workers"
    assert second.held_back == 4
    await write(after, calm.confirm(1, 2), calm.ok(2))
    await second.round()
    assert ordered.new() == attempts(hot, 0)


async def test_one_that_was_replaced_lets_nothing_out(fleet: Fleet) -> None:
    paused, alive = await fleet.store(MOMENT), await fleet.store()
    (first, ordered), (second, _) = fleet.scheduler(paused), fleet.scheduler(alive)
    await first.round()
    assert first.active
    async with asyncio.timeout(DEADLINE_S):
        while not second.active:  # until the lease of the first one is over
            await second.round()
    await write(alive, plan(2).started)
    await first.round()
    assert (first.active, ordered.new(), first.held_back) == (False, [], 0)


async def test_one_that_gets_it_back_counts_what_went_meanwhile(fleet: Fleet) -> None:
    client, still, other = await fleet.store(), await fleet.store(MOMENT), await fleet.store()
    (first, ordered), (second, meanwhile) = fleet.scheduler(still), fleet.scheduler(other)
    await first.round()
    assert first.active
    async with asyncio.timeout(DEADLINE_S):
        while not second.active:
            await second.round()
    calm, hot = plan(2), plan(5, RiskBand.CRITICAL)
    await write(client, calm.started)
    await second.round()
    assert meanwhile.new() == attempts(calm, 0, 1)
    await write(client, hot.started)
    await other.leave()
    await first.round()  # it stood still, and was never told that it had lost the duty
    assert ordered.new() == [*attempts(calm, 0, 1), *attempts(hot, 0)]


async def test_what_was_let_out_before_a_pause_is_counted_by_who_takes_over(fleet: Fleet) -> None:
    before, after = await fleet.store(), await fleet.store()
    (first, ordered), (second, again) = fleet.scheduler(before), fleet.scheduler(after)
    calm, other, hot = plan(2), plan(1), plan(2, RiskBand.CRITICAL)
    await write(before, calm.started)
    await first.round()
    await write(before, calm.do(PauseRun("espera")), other.started)
    await first.round()
    assert ordered.new() == [*attempts(calm, 0, 1), *attempts(other, 0)]
    await write(before, calm.do(ResumeRun("segue")), hot.started)
    await before.leave()
    await second.round()
    assert sorted(again.new()) == sorted([*attempts(calm, 0, 1), *attempts(other, 0)])
    assert second.held_back == 2


async def test_what_celery_lost_is_sent_again_and_takes_no_more_room(fleet: Fleet) -> None:
    store = await fleet.store()
    scheduler, ordered = fleet.scheduler(store, forgotten=timedelta())
    story = plan(5)
    await write(store, story.started)
    await scheduler.round()
    assert ordered.new() == attempts(story, 0, 1, 2)
    await write(store, story.confirm(1))
    scheduler._tick_at = 0.0
    ordered.failing_since = object()
    await scheduler.round()
    assert ordered.new() == [], "Celery's broker is away: it would only pile up"
    scheduler._tick_at, ordered.failing_since = 0.0, None
    await scheduler.round()
    assert ordered.new() == attempts(story, 0, 2)


async def test_what_somebody_else_has_sent_counts_too(fleet: Fleet) -> None:
    store = await fleet.store()
    scheduler, ordered = fleet.scheduler(store)
    story = plan(4)
    await write(store, story.started, story.confirm(3))
    await scheduler.round()
    assert ordered.new() == attempts(story, 0, 1)
    await write(store, story.confirm(2), story.ok(3))  # now three are with workers
    await scheduler.round()
    await write(store, plan(1, RiskBand.CRITICAL).started)
    await scheduler.round()
    assert ordered.new() == []


async def test_what_is_cancelled_neither_waits_nor_goes(fleet: Fleet) -> None:
    store = await fleet.store()
    scheduler, ordered = fleet.scheduler(store)
    story, other = plan(5), plan(1)
    await write(store, story.started)
    await scheduler.round()
    await write(store, story.cancel("chega"), other.started)
    ordered.new()
    await scheduler.round()
    assert ordered.new() == attempts(other, 0)
    assert scheduler.held_back == 0


async def test_what_happens_while_it_takes_over_is_seen_once(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    store, other = await fleet.store(), await fleet.store()
    scheduler, ordered = fleet.scheduler(store)
    story, find = plan(5), store.find
    late = [story.started]

    async def find_late(query: Query) -> list[Summary]:
        if late:
            await write(other, late.pop())
        return await find(query)

    monkeypatch.setattr(store, "find", find_late)
    await scheduler.round()
    assert (ordered.new(), scheduler.held_back) == (attempts(story, 0, 1, 2), 2)


async def test_more_steps_than_are_read_at_once(fleet: Fleet) -> None:
    store = await fleet.store()
    scheduler, ordered = fleet.scheduler(store)
    await scheduler.round()
    await write(store, *(plan(1).started for _ in range(300)))
    assert await scheduler.round()
    assert not await scheduler.round()
    assert (len(ordered.new()), scheduler.held_back) == (LIMIT, 300 - LIMIT)


async def test_many_other_orchestrations_in_between(fleet: Fleet) -> None:
    store = await fleet.store()
    scheduler, ordered = fleet.scheduler(store)
    await scheduler.round()
    others = [begin() for _ in range(300)]
    story = plan(1)
    await write(store, *(other.started for other in others))
    await write(store, story.started)
    await write(store, *(other.ok(0) for other in others))
    assert not await scheduler.round()
    assert ordered.new() == attempts(story, 0)
