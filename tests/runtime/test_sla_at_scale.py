"""Over 10,000 tickets that miss their time: one alert and one violation each, whatever happens to clocks, processes and
leases. Two replicas share a database: PostgreSQL itself, and the model of it that worlds run on."""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from itertools import count

import orjson
import pytest

from contracts.writing import batch, begin
from core.given import Story, at, coleta, plan
from databases import database, opened, sql
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.core.sla.watch import AlertKind
from oraculo.core.ticket_id import ticket_id
from oraculo.errors import OraculoError
from oraculo.ports.membership import Member
from oraculo.ports.sla import ToldAlert
from oraculo.ports.store import SharedStore, Store
from oraculo.runtime.project import Projection
from oraculo.runtime.sla.delivery import AlertDelivery
from oraculo.runtime.sla.monitor import SlaMonitor
from oraculo.simulation.shared_store import SharedDatabase
from runtime.doubles import ManualClock
from waiting import DEADLINE_S

NEAR, MISSED = AlertKind.NEAR.value, AlertKind.MISSED.value
WIDTH, RUNS, TIMEOUT_S = 110, 100, 100.0
NEAR_S = 0.8 * TIMEOUT_S
LEASE = timedelta(minutes=10)
SETTLING_S = 10 * DEADLINE_S
BACK_S, AHEAD_S = -40.0, 3600.0  # what a clock is off by after a jump
ALERTS_MAX = 100_000


class Shared(ABC):
    """A database that processes share. `store` belongs to none of them and writes the journal."""

    store: Store

    @abstractmethod
    async def open(self, stack: AsyncExitStack, clock: ManualClock) -> None:
        """Have an empty one. `clock` is its own, where it goes by one that tests can set."""

    @abstractmethod
    async def connect(self) -> SharedStore:
        """A process of its own."""

    @abstractmethod
    async def expire(self, member: Member) -> None:
        """The lease of a process ends, whether or not it still lives."""


class PostgresShared(Shared):
    async def open(self, stack: AsyncExitStack, clock: ManualClock) -> None:
        self._stack, self._url = stack, await database()
        self.store = await opened(stack, self._url)

    async def connect(self) -> SharedStore:
        found = (await opened(self._stack, self._url)).sharing
        assert found is not None
        return found

    async def expire(self, member: Member) -> None:
        await sql(self._url, f"UPDATE members SET lease_until = 0 WHERE epoch = {member.epoch}")


class ModelShared(Shared):
    async def open(self, stack: AsyncExitStack, clock: ManualClock) -> None:
        sqlite = await stack.enter_async_context(SqliteStore(":memory:", threads=False))
        self.store, self._clock, self._database = sqlite, clock, SharedDatabase(sqlite, clock.now)

    async def connect(self) -> SharedStore:
        return self._database.connect()

    async def expire(self, member: Member) -> None:
        members = self._database.members
        if (known := members.get(member.slot)) is not None and known.epoch == member.epoch:
            members[member.slot] = replace(known, lease_until=self._clock.now())


class Replica:
    """A process with a clock of its own."""

    member: Member
    _numbers = count(1)

    def __init__(self, store: SharedStore) -> None:
        self.clock = ManualClock()
        self.store = store
        self.monitor = SlaMonitor(store, self.clock)
        self.projection = Projection(store, self.monitor, self.clock)
        self.sent: list[ToldAlert] = []
        self.delivery = AlertDelivery(store, "topics", self._send)

    @classmethod
    async def start(cls, shared: Shared) -> Replica:
        made = cls(await shared.connect())
        made.member = await made.store.join(f"r{next(cls._numbers)}", LEASE)
        return made

    async def _send(self, alerts: Sequence[ToldAlert]) -> None:
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


class World:
    """`near` and `missed` are the tickets of which something has to be told, by the times at which they ended."""

    def __init__(self, shared: Shared, clock: ManualClock) -> None:
        self.chance = random.Random(17)
        self.near, self.missed = set[str](), set[str]()
        self.delivered: list[ToldAlert] = []
        self.happened = Counter[str]()
        self._shared = shared
        self._clock = clock  # of the database, where it is a model
        self._now = 0.0
        self._replicas: list[Replica] = []

    async def run(self) -> list[ToldAlert]:
        """Return all that was told."""
        self._replicas = [await Replica.start(self._shared) for _ in range(2)]
        stories = await self._begun()
        left = {story.run: list(range(WIDTH)) for story in stories}
        while any(left.values()):
            self._pass(self.chance.choice((1, 5, 9, 25)))
            for story in stories:
                if left[story.run] and self.chance.random() < 0.5:
                    await self._end_some(story, left[story.run])
            for place in range(len(self._replicas)):
                await self._disturb(place)
            if self.chance.random() < 0.3:
                await asyncio.gather(*(one.work(self.chance) for one in self._replicas))
            else:
                await self.chance.choice(self._replicas).work(self.chance)
        await self._settle()
        self.delivered += [alert for one in self._replicas for alert in one.sent]
        return await self._shared.store.later_sla_alerts(0, ALERTS_MAX)

    async def _begun(self) -> list[Story]:
        stories = []
        for number in range(RUNS):
            wanted = plan([coleta("a", timeout=TIMEOUT_S, attempts=1) for _ in range(WIDTH)], timeout=10_000)
            stories.append(begin(f"run-{number}", wanted, when=0))
            await self._shared.store.append(batch(stories[-1].started, stories[-1].confirm(when=0)))
        return stories

    def _pass(self, seconds: float) -> None:
        self._now += seconds
        self._clock.follow(at(self._now))
        off = (0.0, 0.0, BACK_S, AHEAD_S) if self._now >= NEAR_S else (0.0, 0.0, BACK_S)
        for one in self._replicas:
            skew = self.chance.choice(off)
            self.happened["jumps"] += skew != 0.0
            one.clock.follow(at(self._now + skew))

    async def _end_some(self, story: Story, left: list[int]) -> None:
        """A few tickets are answered, in time or late; of those whose time is over the others end by it."""
        now = self._now
        self.chance.shuffle(left)
        ended = left[: self.chance.randrange(3)]
        steps = [story.ok(position, when=now) for position in ended]
        late = now > TIMEOUT_S
        if late:
            ended = left[:]
            steps.append(story.wake(now))
        del left[: len(ended)]
        tickets = {ticket_id(story.run, position) for position in ended}
        self.near |= tickets if now >= NEAR_S else set()
        self.missed |= tickets if late else set()
        await self._shared.store.append(batch(*steps, when=now))

    async def _disturb(self, place: int) -> None:
        """A process dies and another one starts, or stands still until others think that it is dead; or all is well."""
        one = self._replicas[place]
        drawn = self.chance.random()
        if drawn < 0.3:
            await self._shared.expire(one.member)
            self.happened["leases ended"] += 1
        if drawn < 0.15:
            self.delivered += one.sent
            self._replicas[place] = await Replica.start(self._shared)
            self._replicas[place].clock.follow(one.clock.now())
            self.happened["deaths"] += 1
        elif drawn >= 0.3:
            await one.store.renew()

    async def _settle(self) -> None:
        """Until all of the journal is read, and all that was told is delivered."""
        async with asyncio.timeout(SETTLING_S):
            while True:
                self._pass(5)
                for one in self._replicas:
                    await one.store.renew()
                    await one.work(self.chance)
                cursors = await self._shared.store.cursors()
                unread = await self._shared.store.lag(cursors.get("sla", 0))
                unsent = await self._shared.store.later_sla_alerts(cursors.get("topics/alerts", 0), 1)
                if not unread.steps and not unsent:
                    return


@pytest.mark.timeout(900)
@pytest.mark.parametrize("shared", [ModelShared, PostgresShared])
async def test_over_ten_thousand_tickets_one_alert_and_one_violation_each(
    shared: type[ModelShared | PostgresShared],
) -> None:
    clock, database_of_test = ManualClock(), shared()
    async with AsyncExitStack() as stack:
        await database_of_test.open(stack, clock)
        world = World(database_of_test, clock)
        told = await world.run()
    assert len(world.missed) > 10_000
    assert WIDTH * RUNS - len(world.near) > 100, "some were in time"
    assert min(world.happened[one] for one in ("jumps", "deaths", "leases ended")) > 3, world.happened
    counted = Counter[tuple[str, str]]()
    for alert in told:
        body = orjson.loads(alert.body)
        counted[alert.kind, body.get("ticket_id") or body["context"]["ticket_id"]] += 1
    assert set(counted.values()) == {1}
    assert {ticket for kind, ticket in counted if kind == NEAR} == world.near
    assert {ticket for kind, ticket in counted if kind == MISSED} == world.missed
    assert {alert.id for alert in world.delivered} == {alert.id for alert in told}, "all of them are delivered"
