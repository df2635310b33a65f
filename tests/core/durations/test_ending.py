"""When a run ends: along its gates, by what is left of what runs, and in bounded time however wide it is."""

from __future__ import annotations

from datetime import timedelta
from time import process_time

import pytest

from core.given import Story, at, dag, flow, plan
from oraculo.core.durations.ending import Estimator, Risk, RunForecast, Unforeseen, foresee, key_of
from oraculo.core.durations.history import Estimate, History, TaskKey
from oraculo.core.durations.samples import samples
from oraculo.core.durations.sketch import Sketch, mixture
from oraculo.core.vocabulary import FanIn, Kind


def takes(ms: float, spread: float = 1.0) -> Estimate:
    sketch = Sketch()
    for number in range(100):
        sketch.add(ms * (1 + spread * number / 100), at(0))
    found = mixture([(1.0, sketch.bins)])
    assert found is not None
    return Estimate(found.quantile(0.5), found.quantile(0.9), 100, 1.0, False, found)


def always(ms: float, spread: float = 0.02) -> Estimator:
    made = takes(ms, spread)
    return lambda key, planned: made


def seconds_to(found: RunForecast | Unforeseen | None, now: float) -> tuple[float, float]:
    assert isinstance(found, RunForecast), found
    return (found.p50 - at(now)).total_seconds(), (found.p90 - at(now)).total_seconds()


def test_stages_follow_each_other() -> None:
    story = Story(plan(3, 2))
    p50, p90 = seconds_to(foresee(story.state, at(0), always(10_000)), 0)
    assert p50 == pytest.approx(20, rel=0.1)
    assert p90 >= p50


def test_a_chain_is_as_long_as_the_sum_of_its_links() -> None:
    story = Story(dag({"a": [], "b": ["a"], "c": ["b"], "d": ["a"]}))
    p50, _ = seconds_to(foresee(story.state, at(0), always(5000)), 0)
    assert p50 == pytest.approx(15, rel=0.1)


def test_what_has_run_for_a_while_has_less_to_go() -> None:
    story = Story(plan(1))
    story.confirm(when=0)
    p50, _ = seconds_to(foresee(story.state, at(8), always(10_000)), 8)
    assert p50 == pytest.approx(2, abs=0.5)


def test_the_last_of_many_is_slower_than_one() -> None:
    wide, narrow = Story(plan(200)), Story(plan(1))
    spread = always(1000, 9.0)
    assert (
        seconds_to(foresee(wide.state, at(0), spread), 0)[0]
        > 1.5 * seconds_to(foresee(narrow.state, at(0), spread), 0)[0]
    )


def test_a_fan_in_that_needs_one_waits_for_the_fastest() -> None:
    made = takes(1000, 9.0)
    first = Story(plan(50, modo=FanIn.PRIMEIRO))
    every = Story(plan(50))
    quick, _ = seconds_to(foresee(first.state, at(0), lambda key, planned: made), 0)
    slow, _ = seconds_to(foresee(every.state, at(0), lambda key, planned: made), 0)
    assert quick < 2
    assert slow > 8


def test_the_same_state_gives_the_same_answer() -> None:
    story = Story(plan(20, 3))
    assert foresee(story.state, at(0), always(700, 3.0)) == foresee(story.state, at(0), always(700, 3.0))


def test_what_was_never_seen_is_said() -> None:
    assert foresee(Story(plan(2)).state, at(0), lambda key, planned: None) is Unforeseen.NO_HISTORY


def test_a_plan_of_fluxo_c_begins_with_its_own_estimate() -> None:
    story = Story(flow({"a": [], "b": ["a"]}))
    found = foresee(story.state, at(0), History().estimate)
    assert isinstance(found, RunForecast)


def test_what_has_ended_ends_no_more() -> None:
    story = Story(plan(1))
    story.ok(0, when=1)
    assert foresee(story.state, at(2), always(1)) is None


@pytest.mark.parametrize(
    ("p50", "p90", "now", "risk"),
    [(5, 8, 0, Risk.NONE), (5, 12, 0, Risk.POSSIBLE), (11, 12, 0, Risk.LIKELY), (12, 13, 10, Risk.MISSED)],
)
def test_a_deadline_is_missed_before_it_is(p50: float, p90: float, now: float, risk: Risk) -> None:
    assert RunForecast(at(p50), at(p90)).risk(at(10), at(now)) is risk
    assert RunForecast(at(p50), at(p90)).risk(None, at(now)) is Risk.NONE


def test_a_very_wide_run_is_judged_by_its_progress_and_costs_next_to_nothing() -> None:
    story = Story(plan(5000), check=False)
    assert foresee(story.state, at(10), always(1)) is Unforeseen.NO_HISTORY, "nothing of it has ended yet"
    for position in range(1000):
        story.ok(position, when=10)
    began = process_time()
    found = foresee(story.state, at(10), always(1))
    assert process_time() - began < 0.05
    p50, p90 = seconds_to(found, 10)
    assert p50 == pytest.approx(40, rel=0.01)
    assert p90 > p50


def test_durations_are_those_from_a_confirmed_order_to_its_answer() -> None:
    story = Story(plan(2, attempts=2))
    story.confirm(when=1)
    done = story.ok(0, when=5)
    assert [(one.key.name, one.ms, one.censored) for one in samples(story.state, done.events, done.at)] == [
        ("fonte0", 4000, False)
    ]
    late = story.wake(40)
    assert [(one.key.name, one.ms, one.censored) for one in samples(story.state, late.events, late.at)] == [
        ("fonte1", 30_000, True)
    ]
    assert key_of(story.state, 0) == TaskKey("default", Kind.COLETA, "fonte0", 0)


def test_a_history_of_a_run_foresees_the_next_one() -> None:
    history = History()
    for number in range(40):
        story = Story(plan(2, 1), run=number + 1, check=False)
        story.confirm(when=0)
        steps = [story.ok(0, when=2), story.ok(1, when=3)]
        story.confirm(when=3)
        for done in (*steps, story.ok(2, when=8)):
            for one in samples(story.state, done.events, done.at):
                history.learn(one.key, one.ms, done.at + timedelta(minutes=number))
    found = foresee(Story(plan(2, 1)).state, at(0), history.estimate)
    p50, p90 = seconds_to(found, 0)
    assert 7 < p50 < 9
    assert p90 < 12
