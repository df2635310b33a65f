"""Trails in the running scheduler: what workers left in the journal moves the choice, on a virtual clock."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from random import Random

import pytest

from oraculo.adapters.clock import MonotonicClock
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.runtime.project import Projection
from oraculo.runtime.trails import Trails
from oraculo.simulation.loop import VirtualLoop
from runtime.scheduling import Shop, shop, virtually

HALF_LIFE = timedelta(minutes=15)
TICKET_EVERY_S, FOLLOWED_EVERY_S, WORKS_S = 11.5, 5.0, 10.0  # one alone could do all of it
TURN_S = 120.0  # one that is passed over gets a ticket so often all the same
GOOD, BAD = 0.99, 0.1  # of the tickets go well


class Fleet:
    """Two workers that are always asking, of which `a` can turn bad; and who got what when."""

    def __init__(self, open_shop: Shop, virtual: VirtualLoop, seed: int) -> None:
        self.a_is_good = True
        self.given: list[tuple[float, str]] = []
        self._shop, self._virtual, self._chance = open_shop, virtual, Random(seed)

    async def work(self, name: str) -> None:
        """Take one ticket at a time, for ever."""
        while True:
            for lease in await self._shop.ask(name, wait=20.0):
                self.given.append((self._virtual.time(), name))
                await asyncio.sleep(WORKS_S)
                well = GOOD if name == "b" or self.a_is_good else BAD
                await self._shop.answer(lease, self._chance.random() < well)

    async def learn(self, name: str) -> None:
        """Let a worker do a ticket that no other asks for, so that its speed is known."""
        await self._shop.submit(1)
        (lease,) = await self._shop.ask(name, wait=5.0)
        await asyncio.sleep(WORKS_S)
        await self._shop.answer(lease)

    async def play(self, halves: float) -> None:
        """Submit tickets, for so many half-lives."""
        until = self._virtual.time() + halves * HALF_LIFE.total_seconds()
        while self._virtual.time() < until:
            await self._shop.accept({"coletas": [{"fonte": "a", "timeout_s": 600, "max_tentativas": 1}]})
            await asyncio.sleep(TICKET_EVERY_S * self._chance.uniform(0.5, 1.5))

    def share_of_a(self, halves: float) -> float:
        """The share of `a` in what was given in the last half-lives."""
        since = self._virtual.time() - halves * HALF_LIFE.total_seconds()
        some = [name for when, name in self.given if when >= since]
        return some.count("a") / len(some)


async def _follow(projection: Projection) -> None:
    while True:
        while await projection.round():
            pass
        await asyncio.sleep(FOLLOWED_EVERY_S)


async def _shares(virtual: VirtualLoop, seed: int, in_use: bool) -> list[float]:
    """The shares of `a`: while it is good, from two half-lives after it turned bad, after that, and good again."""
    store = SqliteStore(":memory:", threads=False)
    await store.open()
    clock = MonotonicClock()
    trails = Trails(store, clock, HALF_LIFE)
    trails._draw = Random(seed).random
    used = {"factor": trails.factor, "marks": trails.marks} if in_use else {}
    try:
        async with shop(turn_s=TURN_S, store=store, **used) as open_shop:
            for name in "ab":
                await open_shop.register(name, concorrencia=1, timeout_s=3600)
            fleet = Fleet(open_shop, virtual, seed)
            for name in "ab":
                await fleet.learn(name)
            beside = [asyncio.create_task(fleet.work(name)) for name in "ab"]
            beside.append(asyncio.create_task(_follow(Projection(store, trails, clock))))
            found = []
            for good, halves, looked_at in ((True, 3, 2.0), (False, 2.5, 0.5), (False, 2, 2.0), (True, 6, 2.0)):
                fleet.a_is_good = good
                await fleet.play(halves)
                found.append(fleet.share_of_a(looked_at))
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            return found
    finally:
        await store.close()


@pytest.mark.parametrize("seed", range(2))
def test_a_good_worker_that_turns_bad_loses_its_tickets_within_two_half_lives_and_gets_them_back(seed: int) -> None:
    good, soon, later, again = virtually(lambda virtual: _shares(virtual, seed, in_use=True))
    assert good > 0.2
    assert soon < 0.2
    assert 0 < later < 0.2, "it gets little, and is never starved"
    assert again > 1.5 * later, "it is trusted again"


def test_without_trails_a_worker_that_turns_bad_keeps_its_tickets() -> None:
    """What the other test shows is due to trails."""
    _, soon, later, _ = virtually(lambda virtual: _shares(virtual, 1, in_use=False))
    assert min(soon, later) > 0.2
