"""Following trails: every mark once, over restarts and processes, and all of it again from the journal."""

from __future__ import annotations

from datetime import timedelta

import pytest

from contracts.writing import begin, write
from core.given import plan
from oraculo.core.trails.trail import EXPLORING_FACTOR, TrailKey
from oraculo.runtime import trails as module
from oraculo.runtime.project import Projection
from oraculo.runtime.trails import PROJECTION, Trails
from runtime.doubles import FailingStore, ManualClock

KEY = TrailKey("escavador_fonte0")
HALF = timedelta(hours=1)


async def runs(store: FailingStore, good: int, bad: int = 0) -> None:
    for number in range(good + bad):
        story = begin(wanted=plan(1))
        ended = story.ok if number < good else story.fail
        await write(store, story.started, story.confirm(when=0), ended(0, when=3))


def following(store: FailingStore, clock: ManualClock) -> Trails:
    return Trails(store, clock, HALF)


async def read_all(store: FailingStore, sink: Trails, clock: ManualClock) -> None:
    projection = Projection(store, sink, clock)
    while await projection.round():
        pass


async def test_what_the_journal_says_is_followed_once_and_by_all(store: FailingStore, clock: ManualClock) -> None:
    await runs(store, 8, 2)
    trails = following(store, clock)
    await read_all(store, trails, clock)
    await Projection(store, trails, clock)._record(await store.tail(0, 1000))  # the cursor was not moved before a crash
    found = trails.trail(KEY)
    assert found is not None and found.success == pytest.approx(8, rel=0.01) and found.failure == pytest.approx(2, 0.01)
    assert 2900 < found.duration_ms < 3100
    other = following(store, clock)  # another process
    await other.refresh()
    assert [key for key, _ in other.of_tenant("default")] == [KEY] and not list(other.of_tenant("acme"))


async def test_all_of_it_is_followed_again_after_it_was_forgotten(store: FailingStore, clock: ManualClock) -> None:
    await runs(store, 3, 1)
    trails = following(store, clock)
    await read_all(store, trails, clock)
    before = await store.projected(PROJECTION)
    await store.forget_projected(PROJECTION)
    await trails.refresh()
    assert trails.trail(KEY) is None
    await read_all(store, trails, clock)
    assert await store.projected(PROJECTION) == before


async def test_a_faded_trail_is_neutral_and_removed(
    store: FailingStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SWEEP_AFTER_CHANGES", 1)
    await runs(store, 0, 5)
    trails = following(store, clock)
    await read_all(store, trails, clock)
    assert trails.rank_factor("w", [KEY.queue]) < 0.9
    clock.follow(clock.now() + timedelta(hours=24))
    assert trails.rank_factor("w", [KEY.queue]) == pytest.approx(1.0, abs=0.001)
    await runs(store, 1)  # old marks: it is looked at again
    await read_all(store, trails, clock)
    assert trails.trail(KEY) is None and await store.projected(PROJECTION) == {}


async def test_a_choice_is_explored_now_and_then(store: FailingStore, clock: ManualClock) -> None:
    await runs(store, 0, 5)
    trails = following(store, clock)
    await read_all(store, trails, clock)
    draws = iter([0.04, 0.06])
    trails._draw = lambda: next(draws)
    assert trails.factor("w", KEY.queue) == EXPLORING_FACTOR
    assert trails.factor("w", KEY.queue) < 0.9
