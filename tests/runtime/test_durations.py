"""Learning durations: every sample once, over restarts and processes, and all of it again from the journal."""

from __future__ import annotations

import pytest

from contracts.writing import begin, write
from core.given import plan
from oraculo.core.durations.ending import key_of
from oraculo.core.durations.history import Known, TaskKey
from oraculo.core.vocabulary import Kind
from oraculo.errors import SinkUnavailableError
from oraculo.ports.projected import ProjectedChange
from oraculo.runtime.durations.learning import PROJECTION, Durations
from oraculo.runtime.project import Projection
from runtime.doubles import FailingStore, ManualClock

KEY = TaskKey("default", Kind.COLETA, "fonte0")


async def runs(store: FailingStore, count: int, took: float = 3.0) -> None:
    for _ in range(count):
        story = begin(wanted=plan(1))
        await write(store, story.started, story.confirm(when=0), story.ok(0, when=took))
        assert key_of(story.state, 0) == KEY


async def read_all(store: FailingStore, sink: Durations, clock: ManualClock) -> None:
    projection = Projection(store, sink, clock)
    while await projection.round():
        pass


def seen(durations: Durations) -> int:
    known = durations.history.keys.get(KEY.levels()[0])
    return 0 if known is None else known.seen


async def test_what_the_journal_says_is_learnt_and_stored(store: FailingStore, clock: ManualClock) -> None:
    await runs(store, 30)
    durations = Durations(store)
    await read_all(store, durations, clock)
    found = durations.estimate(KEY)
    assert found is not None
    assert 2900 < found.p50_ms < 3200
    other = Durations(store)  # another process
    await other.refresh()
    assert seen(other) == seen(durations) == 30


async def test_no_sample_counts_twice_when_a_batch_comes_again(store: FailingStore, clock: ManualClock) -> None:
    await runs(store, 10)
    durations = Durations(store)
    await read_all(store, durations, clock)
    steps = await store.tail(0, 1000)
    again = Projection(store, durations, clock)
    await again._record(steps)  # the cursor was not moved before a crash
    assert seen(durations) == 10


async def test_two_processes_that_learn_at_once_count_once(store: FailingStore, clock: ManualClock) -> None:
    await runs(store, 5)
    durations = Durations(store)
    await durations.refresh()
    mark = await store.projected_mark(PROJECTION)
    assert await store.save_projected(PROJECTION, mark.version, ProjectedChange(0, {"x": b"{}"})) is not None
    slow = store.projected_mark

    async def stale(projection: str) -> object:
        store.projected_mark = slow
        return mark

    store.projected_mark = stale
    with pytest.raises(SinkUnavailableError):
        await Projection(store, durations, clock).round()
    await store.save_projected(PROJECTION, 1, ProjectedChange(0, {"x": None}))
    await read_all(store, durations, clock)
    assert seen(durations) == 5


async def test_a_process_that_comes_back_goes_on_from_what_another_has_learnt(
    store: FailingStore, clock: ManualClock
) -> None:
    first, second = Durations(store), Durations(store)
    await runs(store, 5)
    await read_all(store, first, clock)
    await runs(store, 5)
    await read_all(store, second, clock)
    await runs(store, 5)
    await read_all(store, first, clock)
    assert seen(first) == 15


async def test_all_of_it_is_learnt_again_after_it_was_forgotten(store: FailingStore, clock: ManualClock) -> None:
    await runs(store, 12)
    durations = Durations(store)
    await read_all(store, durations, clock)
    before = await store.projected(PROJECTION)
    await store.forget_projected(PROJECTION)
    await durations.refresh()
    assert seen(durations) == 0
    await read_all(store, durations, clock)
    assert await store.projected(PROJECTION) == before
    assert seen(durations) == 12


async def drifting(store: FailingStore) -> None:
    await runs(store, 60, took=3.0)
    await runs(store, 60, took=30.0)


async def narrow(store: FailingStore, clock: ManualClock, **chosen: bool) -> tuple[Durations, Known]:
    """What a process with these choices knows after it has read all, and what one that comes after it knows."""
    first = Durations(store, **chosen)
    await read_all(store, first, clock)
    second = Durations(store, **chosen)
    await second.refresh()
    return second, second.history.keys[KEY.levels()[0]]


async def test_durations_that_changed_are_learnt_faster_where_drift_is_looked_for(
    store: FailingStore, clock: ManualClock
) -> None:
    await drifting(store)
    durations, known = await narrow(store, clock)
    assert durations.history.has_drifted(known)
    fast = durations.estimate(KEY)
    await store.forget_projected(PROJECTION)
    durations, known = await narrow(store, clock, drift=False)
    assert known.calibration.drifted and not durations.history.has_drifted(known)
    slow = durations.estimate(KEY)
    assert fast is not None and slow is not None
    assert (fast.drifted, slow.drifted) == (True, False) and known.sketch.count > 0
    assert slow.p50_ms < fast.p50_ms, "old durations count for longer"


async def test_a_start_without_a_baseline_measures_drift_anew(store: FailingStore, clock: ManualClock) -> None:
    await drifting(store)
    _, known = await narrow(store, clock)
    assert known.calibration.judged > 50 and known.calibration.drifted
    await store.forget_projected(PROJECTION)
    _, anew = await narrow(store, clock, baseline=False)
    assert (anew.calibration.judged, anew.calibration.drifted) == (0, False)
    assert anew.calibration.ready and anew.seen == known.seen, "what was learnt is kept"


async def test_errors_of_earlier_processes_are_told_where_that_is_wanted(
    store: FailingStore, clock: ManualClock
) -> None:
    await runs(store, 30)
    first = Durations(store)
    await read_all(store, first, clock)
    assert first.errors.judged > 20 and first.errors.judged == sum(first.errors.counts)
    plain, filled = Durations(store), Durations(store, past_errors=True)
    for one in (plain, filled):
        await one.refresh()
    assert plain.errors.judged == 0
    assert filled.errors == first.errors
    await runs(store, 5, took=30.0)
    await read_all(store, filled, clock)
    assert filled.errors.judged == first.errors.judged + 5 and filled.errors.counts[3] == 5
