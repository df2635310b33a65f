"""A simulated year of 500 schedules and three replicas that are killed, under a clock that jumps: every instant has its
run, once, and there is no run of anything else.

The loop, the rules and the store are the real ones. Runs are kept as the engine keeps them: one for each name, whatever
is asked twice. A kill is an exception at any call to the store or the engine, before it is done or after it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from oraculo.adapters.calendars import calendar_of
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.core import schedules as rules
from oraculo.core.access import Actor
from oraculo.core.schedules import ScheduleState, run_name
from oraculo.core.vocabulary import Status
from oraculo.ports.catalogue import Summary
from oraculo.ports.schedules import DueSchedules, StoredSchedule
from oraculo.runtime.requests import Accepted
from oraculo.runtime.schedules.firing import ScheduleFiring
from oraculo.wire import requests, schedules, strict_json
from oraculo.wire.requests import Requisicao
from runtime.doubles import ManualClock

BEGIN, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
SCHEDULES, KILLS_IN_1000 = 500, 15
CRONS = ("{m} {h} 1 * *", "{m} {h} {d} * *", "{m} {h} * 3,11 {w}", "{m} 2 * 3,10 0", "{m} 1 {d} */2 *")
ZONES = ("America/Sao_Paulo", "America/New_York", "Europe/Lisbon", "Asia/Kolkata", "Australia/Lord_Howe", "UTC")


class Killed(Exception):
    """The replica dies here."""


class World:
    """The database and the engine, which outlive every replica."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.store = SqliteStore(":memory:", threads=False)
        self.clock = ManualClock()
        self.runs: dict[str, tuple[dict[str, Any], datetime]] = {}
        self.cancelled: set[str] = set()
        self.asked = self.kills = 0

    def now(self) -> datetime:
        return self.clock.now()

    def risk(self) -> None:
        if self.chance.randrange(1000) < KILLS_IN_1000:
            self.kills += 1
            raise Killed


class Replica:
    """What one process sees of the world; any call may be its last."""

    def __init__(self, world: World, run_s: float) -> None:
        self.world = world
        self._run = timedelta(seconds=run_s)  # how long a run is open
        self.firing = ScheduleFiring(self, world.clock, self, self.cancel, calendar_of, shared=True)

    async def save_schedule(self, schedule: StoredSchedule) -> StoredSchedule | None:
        self.world.risk()
        await asyncio.sleep(0)
        saved = await self.world.store.save_schedule(schedule)
        self.world.risk()
        return saved

    async def due_schedules(self, now: datetime, limit: int) -> DueSchedules:
        return await self.world.store.due_schedules(now, limit)

    async def schedule(self, name: str) -> StoredSchedule | None:
        return await self.world.store.schedule(name)

    async def schedules(self, tenant: str, after: str, limit: int) -> list[StoredSchedule]:
        return await self.world.store.schedules(tenant, after, limit)

    async def remove_schedule(self, name: str) -> bool:
        return await self.world.store.remove_schedule(name)

    async def summary(self, correlation_id: str) -> Summary | None:
        found = self.world.runs.get(correlation_id)
        if found is None:
            return None
        is_open = found[1] + self._run > self.world.now() and correlation_id not in self.world.cancelled
        closed = None if is_open else found[1] + self._run
        return Summary(1, correlation_id, Status.EM_EXECUCAO, None, found[1], closed, 1, 1, 0, "", 1)

    def read(self, value: Any) -> Requisicao:
        return requests.parse(value)

    async def accept(self, request: Requisicao, *, actor: Actor) -> Accepted:
        self.world.risk()
        await asyncio.sleep(0)
        self.world.asked += 1
        document, name = requests.written(request), request.correlation_id or ""
        kept, _ = self.world.runs.setdefault(name, (document, self.world.now()))
        assert kept == document
        self.world.risk()
        return Accepted(name, 1, True)

    async def cancel(self, run: str, reason: str, actor: Actor) -> None:
        self.world.risk()
        self.world.cancelled.add(run)


def agenda_of(chance: random.Random, overlap: str) -> schedules.Agenda:
    parts = {
        "m": chance.randrange(60),
        "h": chance.randrange(24),
        "d": chance.randrange(1, 29),
        "w": chance.randrange(7),
    }
    document: dict[str, Any] = {
        "requisicao": {"coletas": [{"fonte": "x"}]}, "sobreposicao": overlap, "recuperar_s": 7 * 86400,
        "jitter_s": chance.choice((0, 0, 900)),
    }  # fmt: skip
    if chance.random() < 0.5:
        return schedules.parse({**document, "intervalo_s": chance.choice((30, 45, 60)) * 86400})
    cron = chance.choice(CRONS).format(**parts)
    return schedules.parse({**document, "cron": cron, "fuso": chance.choice(ZONES)})


async def kept(world: World, count: int, overlap: Callable[[int], str]) -> dict[str, schedules.Agenda]:
    found = {}
    for number in range(count):
        name, agenda = f"s{number:03}", agenda_of(world.chance, overlap(number))
        record = schedules.ScheduleRecord(ScheduleState(BEGIN), "a", BEGIN)
        due = rules.next_due(agenda.rule(name), record.state, calendar_of(agenda), BEGIN)
        body = strict_json.dumps(schedules.written(agenda))
        assert await world.store.save_schedule(StoredSchedule(name, body, schedules.encode(record), due))
        found[name] = agenda
    return found


def nominal(name: str, agenda: schedules.Agenda, until: datetime) -> list[str]:
    following, found = calendar_of(agenda), []
    instant = following(BEGIN)
    while instant is not None and rules.fire_at(agenda.rule(name), instant) <= until:
        found.append(run_name(name, instant))
        instant = following(instant)
    return found


async def live(world: World, replicas: int, run_s: float) -> None:
    """Let the year pass: steps of minutes to days, some backwards; every replica looks after each, if it lives."""
    chance = world.chance
    world.clock.follow(BEGIN)
    at = BEGIN
    while at < END:
        at = min(END, at + timedelta(minutes=chance.choice((1, 30, 300, 1440, 4000))))
        jump = timedelta(hours=chance.choice((0, 0, 0, -30, -2)))
        world.clock.follow(max(BEGIN, at + jump))
        await _looks(world, replicas, run_s)
    world.clock.follow(END)
    for _ in range(12):  # what a dead replica had decided is done by another, a little later
        world.clock.forward(rules.TAKEOVER.total_seconds() + 1)
        await _looks(world, replicas, run_s)


async def _looks(world: World, replicas: int, run_s: float) -> None:
    """Replicas look at the same time until nothing is due; one that is killed is started anew."""
    for _ in range(100):
        if not any(await asyncio.gather(*(_look(Replica(world, run_s)) for _ in range(replicas)))):
            return
    raise AssertionError("the work does not end")


async def _look(replica: Replica) -> bool:
    """One look of one replica, which may be killed at any schedule; False when there was nothing to do."""
    found = await replica.world.store.due_schedules(replica.world.now(), 25)
    for one in found.schedules:
        try:
            await replica.firing.advance(one, found.at)
        except Killed:
            return True
    return bool(found.schedules)


async def test_every_instant_of_a_year_has_one_run() -> None:
    world = World(seed=16)
    async with world.store:
        agendas = await kept(world, SCHEDULES, lambda _: "permitir")
        await live(world, replicas=3, run_s=60)
    expected = {run for name, agenda in agendas.items() for run in nominal(name, agenda, world.now())}
    assert len(expected) > 4000
    assert set(world.runs) - expected == set(), "runs of no instant"
    assert expected - set(world.runs) == set(), "instants without a run"
    assert world.kills > 200 and world.asked > len(world.runs)  # some were asked for twice, and are there once


@pytest.mark.parametrize("overlap", ["pular", "enfileirar", "cancelar_anterior"])
async def test_no_two_runs_of_a_schedule_are_open_at_once(overlap: str) -> None:
    world = World(seed=17)
    async with world.store:
        agendas = await kept(world, 40, lambda _: overlap)
        await live(world, replicas=3, run_s=12 * 3600)
        left = [schedules.decode(one.state) for one in await world.store.schedules("default", "", 1000)]
    expected = {run for name, agenda in agendas.items() for run in nominal(name, agenda, world.now())}
    assert set(world.runs) <= expected
    skipped = sum(one.counts.get("skipped", 0) for one in left)
    waiting = sum(len(one.state.waiting) + len(one.state.firing) for one in left)
    assert len(world.runs) + skipped + waiting == len(expected)
    if overlap != "cancelar_anterior":
        begun: dict[str, list[datetime]] = {}
        for name, (_, at) in sorted(world.runs.items()):
            begun.setdefault(name.partition("@")[0], []).append(at)
        assert all(one != other for starts in begun.values() for one, other in pairwise(starts))


@pytest.mark.parametrize("broken", ["forgets_firing", "passes_over", "names_by_chance"])
async def test_a_broken_rule_is_found(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: what the year would show if a rule were wrong."""
    decide = rules.decide
    if broken == "forgets_firing":
        # The decision is written without what is to be done: a replica that dies after that loses the instants.
        monkeypatch.setattr(
            schedules, "encode", lambda record: _encode(replace(record, state=rules.done(record.state)))
        )
    elif broken == "passes_over":

        def too_far(*given: Any) -> rules.ScheduleDecision:
            found = decide(*given)
            return replace(found, state=replace(found.state, after=found.state.after + timedelta(days=40)))

        monkeypatch.setattr(rules, "decide", too_far)
    else:
        monkeypatch.setattr(
            "oraculo.runtime.schedules.firing.request_at",
            lambda agenda, name, instant: {
                **agenda.requisicao,
                "correlation_id": run_name(name, instant + timedelta(microseconds=random.randrange(2))),
            },
        )
    world = World(seed=18)
    async with world.store:
        agendas = await kept(world, 40, lambda _: "permitir")
        await live(world, replicas=2, run_s=60)
    expected = {run for name, agenda in agendas.items() for run in nominal(name, agenda, world.now())}
    assert set(world.runs) != expected


_encode = schedules.encode
