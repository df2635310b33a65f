"""A projection hands every step over in the order of commits, with the state after it; nothing is skipped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import replace

import pytest

from contracts.writing import begin, finished, write
from core.given import Story, at, plan
from oraculo.errors import SinkUnavailableError
from oraculo.ports.cursors import Lag
from oraculo.ports.projection import Entry
from oraculo.ports.system_events import SystemEvent
from oraculo.runtime import project
from oraculo.runtime.project import Projection, Projections, unread
from runtime.doubles import Copies, FailingStore, ManualClock


@pytest.fixture
def sink() -> Copies:
    return Copies()


@pytest.fixture
def projection(store: FailingStore, sink: Copies, clock: ManualClock) -> Projection:
    return Projection(store, sink, clock)


async def history(store: FailingStore) -> list[Story]:
    """Three orchestrations whose steps are mixed, the last one open."""
    stories = [begin(wanted=plan(2, 1)) for _ in range(3)]
    await write(store, *(story.started for story in stories))
    for position in (0, 1, 2):
        await write(store, *(story.ok(position, when=position + 1) for story in stories[:2]))
    return stories


def numbers(stories: Sequence[Story]) -> list[tuple[int, int]]:
    """Of every step of these: its run and its first event."""
    found = []
    for story in stories:
        first = 1
        for _, events in story.journal:
            found.append((story.run, first))
            first += len(events)
    return found


async def test_every_step_once_with_the_state_after_it(
    store: FailingStore, sink: Copies, projection: Projection
) -> None:
    stories = await history(store)
    assert await projection.round() is False
    assert sorted(sink.seen) == sorted(numbers(stories))
    assert [one for one in sink.seen if one[0] == stories[0].run] == numbers(stories[:1])
    last = {state.run: state for state in sink.states}
    assert [last[story.run] for story in stories] == [story.state for story in stories]
    assert [state.version for state in sink.states if state.run == stories[0].run] == [
        first + len(events) - 1
        for (_, first), (_, events) in zip(numbers(stories[:1]), stories[0].journal, strict=True)
    ]
    await projection.round()
    assert len(sink.seen) == len(numbers(stories)) and projection.recorded == len(sink.seen)


async def test_it_goes_on_where_it_was_after_a_restart(
    store: FailingStore, sink: Copies, projection: Projection, clock: ManualClock
) -> None:
    stories = await history(store)
    await projection.round()
    seen = len(sink.seen)
    await write(store, stories[2].ok(0, when=9))
    await Projection(store, sink, clock).round()
    assert sink.seen[seen:] == numbers(stories[2:])[1:] and sink.states[-1] == stories[2].state


async def test_a_batch_that_is_refused_comes_again_as_it_was(
    store: FailingStore, sink: Copies, projection: Projection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project, "BATCH_STEPS", 2)
    stories = await history(store)
    while len(sink.seen) < len(numbers(stories)):
        sink.failures = 1
        with pytest.raises(SinkUnavailableError):
            await projection.round()
        await projection.round()
    assert sorted(sink.seen) == sorted(numbers(stories))
    assert {state.run: state for state in sink.states} == {story.run: story.state for story in stories}


async def test_a_cursor_that_cannot_be_moved_brings_the_batch_again(
    store: FailingStore, sink: Copies, projection: Projection, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = await finished(store)
    move = store.move_cursor

    async def refuse(name: str, to: int) -> None:
        monkeypatch.setattr(store, "move_cursor", move)
        raise SinkUnavailableError("the disk is full")

    monkeypatch.setattr(store, "move_cursor", refuse)
    with pytest.raises(SinkUnavailableError):
        await projection.round()
    await projection.round()
    assert sink.seen == 2 * numbers([story]) and sink.states[-1] == story.state


async def test_what_a_sink_does_not_want_is_not_handed_over(
    store: FailingStore, sink: Copies, projection: Projection, clock: ManualClock
) -> None:
    stories = await history(store)
    sink.wanted = lambda started: started.run == stories[2].run
    await projection.round()
    assert sink.seen == numbers(stories[2:])
    await write(store, stories[2].ok(0, when=9))
    unknown = Projection(store, sink, clock)  # it has seen no beginning
    await unknown.round()
    assert sink.seen == numbers(stories[2:])


async def test_what_is_not_in_memory_is_loaded(
    store: FailingStore, sink: Copies, projection: Projection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project, "MAX_TICKETS_IN_MEMORY", 1)
    projection._give_up()  # with that bound from now on
    monkeypatch.setattr(project, "BATCH_STEPS", 1)
    stories = await history(store)
    while await projection.round():
        pass
    assert sorted(sink.seen) == sorted(numbers(stories))
    assert {state.run: state for state in sink.states} == {story.run: story.state for story in stories}


async def test_system_events_have_a_cursor_of_their_own(
    store: FailingStore, sink: Copies, projection: Projection
) -> None:
    for number in range(3):
        await store.record_system_event(SystemEvent("plan_refused", at(number), {"n": number}))
    sink.failures = 1
    with pytest.raises(SinkUnavailableError):
        await projection.round()
    await projection.round()
    await projection.round()
    assert [one.body["n"] for one in sink.events] == [0, 1, 2]
    assert await unread(store, {}) == ("cópias", Lag())


async def test_what_is_of_another_type_is_not_unread(store: FailingStore, sink: Copies, clock: ManualClock) -> None:
    sink.tipo = "fluxo"
    projection = Projection(store, sink, clock)
    await projection.round()
    await finished(store)
    types = {sink.name: "fluxo"}
    found = await unread(store, types)
    assert found is not None and found[1].steps == 0 and found[1].read == (await store.lag(0)).end
    behind = await unread(store, {})
    assert behind is not None and behind[1].steps == 2 and await unread(store, {}, ignored=[sink.name]) is None
    wanted = await finished(store, wanted=replace(plan(1), tipo="fluxo"))
    found = await unread(store, types)
    assert found is not None and (found[1].steps, found[1].read) == (2, 2)
    await projection.round()
    assert sink.seen == numbers([wanted]) and projection.lag.steps == 0


@pytest.fixture
async def running(
    store: FailingStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callable[..., Projections]]:
    monkeypatch.setattr(project, "RETRY_PAUSE_FIRST_S", 0.01)
    made: list[Projections] = []

    def start(*sinks: Copies) -> Projections:
        made.append(Projections(store, sinks, clock))
        made[-1].start()
        return made[-1]

    yield start
    for one in made:
        await one.stop()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_one_that_waits_says_so_and_holds_up_no_other(
    store: FailingStore, clock: ManualClock, running: Callable[..., Projections]
) -> None:
    good, bad = Copies("boa"), Copies("má")
    bad.failures = 10_000
    story = await finished(store)
    clock.forward(60)
    one, other = running(good, bad).all
    await until(lambda: one.recorded == 2 and other.failing_since is not None and other.lag.steps > 0)
    assert (one.lag.steps, one.age(), one.error) == (0, 0.0, "")
    assert (other.lag.steps, other.age(), other.error) == (2, 60.0, "away")
    bad.failures = 0
    await until(lambda: bad.seen == numbers([story]) and other.failing_since is None)
    assert other.lag.steps == 0


@pytest.mark.parametrize("batch", [project.BATCH_STEPS, 3])
async def test_what_waits_is_told_while_the_sink_is_busy(
    store: FailingStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(project, "BATCH_STEPS", batch)
    told: list[tuple[int, float]] = []

    class Busy(Copies):
        async def record(self, entries: Iterable[Entry]) -> None:
            told.append((watched.lag.steps, watched.age()))
            await super().record(entries)

    watched = Projection(store, Busy(), clock)
    await watched.round()  # it has begun, and nothing waits
    assert watched.lag.steps == 0
    stories = await history(store)
    clock.forward(60)
    while await watched.round():
        pass
    whole = len(numbers(stories))
    assert told[0] == (whole, 60.0) and len(told) == -(-whole // batch)
    assert [steps for steps, _ in told] == [whole - batch * number for number in range(len(told))]
    assert watched.lag.steps == 0


async def test_what_was_committed_last_is_written_at_the_end(
    store: FailingStore, sink: Copies, running: Callable[..., Projections]
) -> None:
    projections = running(sink)
    await until(lambda: projections.all[0].active)
    story = await finished(store)
    await projections.stop()
    assert sink.seen == numbers([story]) and sink.closed


class Forgetful(Copies):
    """What a client does that is interrupted while its connection breaks: it tells of the connection."""

    def __init__(self) -> None:
        super().__init__("esquecida")
        self.begun = asyncio.Event()

    async def record(self, entries: Iterable[Entry]) -> None:
        self.begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise SinkUnavailableError("the connection broke") from None


async def test_a_sink_that_forgets_that_it_was_interrupted_does_not_hold_up_the_end(
    store: FailingStore, running: Callable[..., Projections], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project, "STOP_TIMEOUT_S", 0.01)
    sink = Forgetful()
    await finished(store)
    projections = running(sink)
    await sink.begun.wait()
    async with asyncio.timeout(20):
        await projections.stop()
    assert sink.closed
