"""Deadlines that are near or missed are told once each: over clock jumps, restarts and two replicas."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from datetime import timedelta
from itertools import count
from typing import Any

import orjson
import pytest

from contracts.writing import batch, begin, write
from core.given import Story, at, coleta, plan
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.core.access import LOCAL
from oraculo.core.commands import PauseRun, ResumeRun
from oraculo.core.durations.ending import RunForecast, Unforeseen
from oraculo.core.sla.watch import AlertKind
from oraculo.core.state import Orchestration
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import Status
from oraculo.errors import OraculoError, SinkUnavailableError
from oraculo.ports.sla import ToldAlert
from oraculo.runtime.project import Projection
from oraculo.runtime.sla.book import ObjectiveBook
from oraculo.runtime.sla.delivery import AlertDelivery
from oraculo.runtime.sla.monitor import SlaMonitor
from oraculo.simulation.shared_store import SharedDatabase
from runtime.doubles import FailingStore, ManualClock

NEAR, MISSED = AlertKind.NEAR.value, AlertKind.MISSED.value
WIDTH, RUNS, TIMEOUT_S = 100, 100, 100.0
LEASE = timedelta(seconds=30)


class Replica:
    """A process that shares the database; `die` leaves everything as it is."""

    numbers = count(1)

    def __init__(self, database: SharedDatabase, clock: ManualClock) -> None:
        self.store = database.connect()
        self.monitor = SlaMonitor(self.store, clock)
        self.projection = Projection(self.store, self.monitor, clock)
        self.sent: list[ToldAlert] = []
        self.delivery = AlertDelivery(self.store, "topics", self._send)

    async def join(self) -> None:
        await self.store.join(f"r{next(self.numbers)}", LEASE)

    async def _send(self, alerts: Any) -> None:
        self.sent += alerts

    async def work(self, chance: random.Random) -> None:
        """What a process does beside its engine, in some order; what is refused is done again later."""
        deeds = [self.projection.round, self.monitor.tick, self.delivery.round]
        chance.shuffle(deeds)
        for deed in deeds:
            try:
                await deed()
            except OraculoError:
                continue


async def test_ten_thousand_tickets_one_alert_and_one_violation_each() -> None:
    chance, clock = random.Random(17), ManualClock()
    near, missed = set[str](), set[str]()
    async with SqliteStore(":memory:", threads=False) as sqlite:
        database = SharedDatabase(sqlite, clock.now)
        replicas = [Replica(database, clock), Replica(database, clock)]
        for one in replicas:
            await one.join()
        delivered: list[ToldAlert] = []
        stories: list[Story] = []
        for number in range(RUNS):
            wanted = plan([coleta("a", timeout=TIMEOUT_S, attempts=1) for _ in range(WIDTH)], timeout=10_000)
            stories.append(begin(f"run-{number}", wanted, when=0))
            await sqlite.append(batch(stories[-1].started, stories[-1].confirm(when=0)))
        open_tickets = {story.run: list(range(WIDTH)) for story in stories}
        now = 0.0
        while any(open_tickets.values()):
            now += chance.choice((1, 5, 9, 25))  # the clock jumps, too
            clock.follow(at(now))
            for one in replicas:
                try:
                    await one.store.renew()
                except OraculoError:  # fenced: a process that would end, and start again
                    one.store = database.connect()
                    await one.join()
            for story in stories:
                if not open_tickets[story.run] or chance.random() < 0.5:
                    continue
                chance.shuffle(open_tickets[story.run])
                if now >= TIMEOUT_S:
                    steps = [story.wake(now)]
                    ended = open_tickets[story.run]
                    missed |= {ticket_id(story.run, position) for position in ended}
                else:
                    ended = open_tickets[story.run][: chance.randrange(6)]
                    steps = [story.ok(position, when=now) for position in ended]
                if now >= 0.8 * TIMEOUT_S:
                    near |= {ticket_id(story.run, position) for position in ended}
                open_tickets[story.run] = open_tickets[story.run][len(ended) :]
                await sqlite.append(batch(*steps, when=now))
            for place, one in enumerate(replicas):
                if chance.random() < 0.2:  # it dies at once, and another one starts
                    delivered += one.sent
                    replicas[place] = one = Replica(database, clock)
                    await one.join()
                if chance.random() < 0.7:
                    await one.work(chance)
        for _ in range(400):  # until all of the journal is read, and all that was told is delivered
            now += 5
            clock.follow(at(now))
            for one in replicas:
                await one.store.renew()
                await one.work(chance)
        delivered += [alert for one in replicas for alert in one.sent]
        told = await sqlite.later_sla_alerts(0, 100_000)
    assert all(story.status is not Status.PENDENTE for story in stories)
    assert len(near) > 3000 and len(missed) > 500, "the world has enough of both"
    counted: Counter[tuple[str, str]] = Counter()
    for alert in told:
        body = orjson.loads(alert.body)
        counted[alert.kind, body.get("ticket_id") or body["context"]["ticket_id"]] += 1
    assert set(counted.values()) == {1}
    assert {ticket for kind, ticket in counted if kind == NEAR} == near
    assert {ticket for kind, ticket in counted if kind == MISSED} == missed
    assert {alert.id for alert in delivered} == {alert.id for alert in told}, "all of them are delivered"


async def read(monitor: SlaMonitor, store: FailingStore, clock: ManualClock) -> None:
    projection = Projection(store, monitor, clock)
    while await projection.round():
        pass


async def kinds(store: FailingStore) -> list[tuple[str, bool]]:
    """What was told, and whether it is of a ticket."""
    return [(one.kind, b'"ticket_id":null' not in one.body) for one in await store.later_sla_alerts(0, 1000)]


async def test_a_run_is_told_to_be_near_in_time_and_once(store: FailingStore, clock: ManualClock) -> None:
    story = begin(wanted=plan([coleta(timeout=5000)], timeout=100))
    await write(store, story.started)
    monitor = SlaMonitor(store, clock)
    await read(monitor, store, clock)
    clock.follow(at(79))
    await monitor.tick()
    assert await kinds(store) == []
    clock.follow(at(80))
    await monitor.tick()
    await SlaMonitor(store, clock).tick()  # after a restart
    assert await kinds(store) == [(NEAR, False)]
    await write(store, story.wake(100), when=100)
    await read(monitor, store, clock)
    assert await kinds(store) == [(NEAR, False), (MISSED, False)]
    assert monitor.told == {NEAR: 1, MISSED: 1}


async def test_what_was_missed_while_nothing_watched_is_told_from_the_journal(
    store: FailingStore, clock: ManualClock
) -> None:
    story = begin(wanted=plan([coleta(timeout=5000)], timeout=100))
    await write(store, story.started, story.wake(100))
    await read(SlaMonitor(store, clock), store, clock)
    assert await kinds(store) == [(NEAR, False), (MISSED, False)]


async def test_what_ends_in_time_tells_nothing_and_writes_nothing_of_it(
    store: FailingStore, clock: ManualClock
) -> None:
    story = begin(wanted=plan(1))
    await write(store, story.started, story.confirm(when=0), story.ok(0, when=5))
    await read(SlaMonitor(store, clock), store, clock)
    clock.follow(at(10_000))
    await SlaMonitor(store, clock).tick()
    assert await kinds(store) == []
    assert await store.projected("sla") == {}


async def test_a_pause_moves_what_is_near(store: FailingStore, clock: ManualClock) -> None:
    story = begin(wanted=plan([coleta(timeout=100)], timeout=10_000))
    monitor = SlaMonitor(store, clock)
    await write(store, story.started, story.confirm(when=0), story.do(PauseRun("x", LOCAL.id), 50))
    await read(monitor, store, clock)
    clock.follow(at(90))
    await monitor.tick()
    await write(store, story.do(ResumeRun("x", LOCAL.id), 100), when=100)
    await read(monitor, store, clock)
    clock.follow(at(129))
    await monitor.tick()
    assert await kinds(store) == []
    clock.follow(at(130))
    await monitor.tick()
    assert await kinds(store) == [(NEAR, True)]


class Ahead:
    """Foresees that every run ends late."""

    def estimate(self, key: object, planned_ms: float | None = None) -> None:
        return None

    def foresee(self, state: Orchestration, now: Any) -> RunForecast | Unforeseen | None:
        assert state.deadline is not None
        late = state.deadline + timedelta(seconds=1)
        return RunForecast(late, late)


async def test_a_deadline_that_will_be_missed_is_told_before_it_is(store: FailingStore, clock: ManualClock) -> None:
    story = begin(wanted=plan([coleta(timeout=5000)], timeout=100))
    await write(store, story.started)
    monitor = SlaMonitor(store, clock, durations=Ahead())
    await read(monitor, store, clock)
    for now in (31, 51, 66):
        clock.follow(at(now))
        await monitor.tick()
    assert await kinds(store) == [(AlertKind.AT_RISK.value, False)]


async def objective(store: FailingStore, clock: ManualClock, **more: object) -> ObjectiveBook:
    book = ObjectiveBook(store, clock.now, None, "default")
    await book.put("relatorios", {"indicador": "execucoes_concluidas", "objetivo": 0.9, **more}, LOCAL)
    return book


async def ended(store: FailingStore, good: int, bad: int, when: float) -> None:
    for number in range(good + bad):
        story = begin(wanted=plan(1), when=when)
        last = story.ok(0, when=when) if number < good else story.fail(0, definitivo=True, when=when)
        await write(store, story.started, last, when=when)


async def test_an_objective_is_counted_and_told_once_over_restarts(store: FailingStore, clock: ManualClock) -> None:
    await objective(store, clock, congelar={"abaixo": 0.2, "acima": 0.5})
    await ended(store, 5, 15, when=10)
    clock.follow(at(20))
    monitor = SlaMonitor(store, clock)
    await read(monitor, store, clock)
    await monitor.tick()
    again = SlaMonitor(store, clock)
    clock.follow(at(60))
    await again.tick()
    told = [one for one, _ in await kinds(store)]
    assert sorted(told) == sorted(
        ["BURN_RATE_HIGH", "BURN_RATE_HIGH", "BUDGET_CHANGED", "BUDGET_CRITICAL", "FREEZE_ACTIVATED"]
    ), "pairs 6h and 3d fire at a burn rate of 7.5; 1h does not"
    assert [(one.slo, one.actions) for one in again.active("default")] == [("relatorios", ("BLOCK_DEPLOY",))]
    assert again.active("acme") == ()
    await ended(store, 400, 0, when=70)
    await read(again, store, clock)
    clock.follow(at(100))
    await again.tick()
    assert again.active("default") == ()
    assert [one for one, _ in await kinds(store)][-1] == "FREEZE_RESOLVED"


async def test_no_end_counts_twice_when_a_batch_comes_again(store: FailingStore, clock: ManualClock) -> None:
    await objective(store, clock)
    await ended(store, 3, 1, when=10)
    monitor = SlaMonitor(store, clock)
    await read(monitor, store, clock)
    await Projection(store, monitor, clock)._record(await store.tail(0, 1000))
    clock.follow(at(20))
    counted = monitor.objectives.budget("relatorios", clock.now()).counted
    assert (counted.good, counted.bad) == (3, 1)


async def test_what_is_removed_is_forgotten(store: FailingStore, clock: ManualClock) -> None:
    book = await objective(store, clock)
    await ended(store, 3, 1, when=10)
    monitor = SlaMonitor(store, clock)
    await read(monitor, store, clock)
    assert await store.projected("sla") != {}
    await book.remove("relatorios", LOCAL)
    clock.follow(at(30))
    await monitor.tick()
    assert await store.projected("sla") == {}


async def test_a_delivery_that_fails_comes_again_from_where_it_was(store: FailingStore, clock: ManualClock) -> None:
    story = begin(wanted=plan([coleta(timeout=5000)], timeout=100))
    await write(store, story.started, story.wake(100))
    await read(SlaMonitor(store, clock), store, clock)
    got: list[str] = []
    fails = iter((True, False))

    async def send(alerts: Any) -> None:
        if next(fails):
            raise SinkUnavailableError("away")
        got.extend(one.kind for one in alerts)

    delivery = AlertDelivery(store, "hook", send)
    with pytest.raises(SinkUnavailableError):
        await delivery.round()
    await delivery.round()
    await delivery.round()
    assert got == [NEAR, MISSED]


async def test_two_replicas_at_once_do_not_tell_twice(clock: ManualClock) -> None:
    async with SqliteStore(":memory:", threads=False) as sqlite:
        database = SharedDatabase(sqlite, clock.now)
        first, second = Replica(database, clock), Replica(database, clock)
        await first.join()
        await second.join()
        story = begin(wanted=plan([coleta(timeout=5000)], timeout=100))
        await sqlite.append(batch(story.started))
        clock.follow(at(5))
        await asyncio.gather(first.projection.round(), second.projection.round())
        clock.follow(at(85))
        await first.store.renew()
        await second.store.renew()
        await asyncio.gather(first.monitor.tick(), second.monitor.tick())
        assert len(await sqlite.later_sla_alerts(0, 10)) == 1
