"""Deadlines that are near or missed are told once each: over clock jumps, restarts and two replicas."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from itertools import count
from typing import Any

import orjson
import pytest

from contracts.writing import batch, begin, write
from core.given import at, coleta, plan
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.core.access import LOCAL
from oraculo.core.commands import PauseRun, ResumeRun
from oraculo.core.durations.ending import RunForecast, Unforeseen
from oraculo.core.sla.budget import OutsideBudget
from oraculo.core.sla.watch import AlertKind
from oraculo.core.state import Orchestration
from oraculo.core.ticket_id import ticket_id
from oraculo.errors import SinkUnavailableError
from oraculo.runtime.project import Projection
from oraculo.runtime.sla.book import ObjectiveBook
from oraculo.runtime.sla.delivery import AlertDelivery
from oraculo.runtime.sla.monitor import SlaMonitor
from oraculo.simulation.shared_store import SharedDatabase
from runtime.doubles import FailingStore, ManualClock

NEAR, MISSED = AlertKind.NEAR.value, AlertKind.MISSED.value
LEASE = timedelta(seconds=30)


class Replica:
    """A process that shares the database."""

    numbers = count(1)

    def __init__(self, database: SharedDatabase, clock: ManualClock) -> None:
        self.store = database.connect()
        self.monitor = SlaMonitor(self.store, clock)
        self.projection = Projection(self.store, self.monitor, clock)

    async def join(self) -> None:
        await self.store.join(f"r{next(self.numbers)}", LEASE)


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


@pytest.mark.parametrize("ended", [True, False], ids=["the run ended", "the run goes on"])
async def test_what_ended_late_while_nothing_watched_is_told(
    store: FailingStore, clock: ManualClock, ended: bool
) -> None:
    story = begin(wanted=plan([coleta(timeout=100) for _ in range(2 if ended else 3)], timeout=10_000))
    await write(store, story.started, story.confirm(when=0))
    await read(SlaMonitor(store, clock), store, clock)
    await write(store, story.ok(0, when=95), when=95)
    await write(store, story.ok(1, when=120), when=120)
    assert (story.state.closed_at is not None) == ended
    clock.follow(at(130))
    after_restart = SlaMonitor(store, clock)
    await after_restart.tick()
    await read(after_restart, store, clock)
    told = [(one.kind, ticket_id(story.run, 0) in one.body.decode()) for one in await store.later_sla_alerts(0, 100)]
    third = [] if ended else [(NEAR, False)]
    assert sorted(told) == sorted([(NEAR, True), (NEAR, False), (MISSED, False), *third])


async def test_a_pause_while_nothing_watched_moves_what_is_near_once(store: FailingStore, clock: ManualClock) -> None:
    story = begin(wanted=plan([coleta(timeout=100)], timeout=10_000))
    await write(store, story.started, story.confirm(when=0))
    await read(SlaMonitor(store, clock), store, clock)
    await write(store, story.do(PauseRun("x", LOCAL.id), 50), story.do(ResumeRun("x", LOCAL.id), 70), when=70)
    after_restart = SlaMonitor(store, clock)
    clock.follow(at(75))
    await after_restart.tick()
    await read(after_restart, store, clock)
    for now, told in ((99, []), (100, [(NEAR, True)])):
        clock.follow(at(now))
        await after_restart.tick()
        assert await kinds(store) == told


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


@pytest.mark.parametrize(("critical", "told"), [(0.2, False), (0.45, True)])
async def test_a_budget_is_critical_from_the_share_that_is_set(
    critical: float, told: bool, store: FailingStore, clock: ManualClock
) -> None:
    await objective(store, clock)
    await ended(store, 47, 3, when=10)  # 40 % are left
    clock.follow(at(20))
    monitor = SlaMonitor(store, clock, critical=critical)
    await read(monitor, store, clock)
    await monitor.tick()
    assert (AlertKind.BUDGET.value in [one for one, _ in await kinds(store)]) is told
    assert monitor.objectives.budget("relatorios", clock.now()).status == ("CRITICAL" if told else "WARNING")


async def test_objectives_are_looked_at_in_the_interval_that_is_set(store: FailingStore, clock: ManualClock) -> None:
    await objective(store, clock)
    monitor = SlaMonitor(store, clock, interval=timedelta(seconds=100))
    clock.follow(at(5))
    await monitor.tick()
    await ended(store, 0, 20, when=10)
    await read(monitor, store, clock)
    clock.follow(at(104))
    await monitor.tick()
    assert await kinds(store) == []
    clock.follow(at(105))
    await monitor.tick()
    assert AlertKind.BUDGET.value in [one for one, _ in await kinds(store)]


async def test_a_critical_budget_of_another_service_is_told_once_a_day(store: FailingStore, clock: ManualClock) -> None:
    found = [OutsideBudget("availability", "orchestrator-dynamic", 0.3), OutsideBudget("slow", "x", 0.05)]
    monitor = SlaMonitor(store, clock, outside=lambda: found)
    for now in (10, 30, 50):
        clock.follow(at(now))
        await monitor.tick()
    await SlaMonitor(store, clock, outside=lambda: found).tick()  # after a restart
    assert await kinds(store) == [(AlertKind.BUDGET.value, True)]
    (alert,) = await store.later_sla_alerts(0, 10)
    context = orjson.loads(alert.body)["context"]
    assert (context["slo_id"], context["budget_remaining"], context["status"]) == ("slow", 0.05, "EXHAUSTED")
    clock.follow(at(24 * 3600))
    await monitor.tick()
    assert len(await kinds(store)) == 2
