"""Trails: marks fade by half-lives, one failure does not banish, and a worker that turned bad is let back."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from core.given import Story, at, plan
from oraculo.core import events as ev
from oraculo.core.allocations import Allocation, AllocationMethod
from oraculo.core.commands import AllocateTicket, WithdrawTicket
from oraculo.core.trails.marks import deposits
from oraculo.core.trails.trail import (
    EXPLORED_SHARE,
    EXPLORING_FACTOR,
    HIGHEST_SCORE,
    LOWEST_SCORE,
    Mark,
    Trail,
    TrailKey,
)
from oraculo.core.vocabulary import Cause

HALF = timedelta(hours=1)


def test_marks_fade_by_half_lives_and_go_back_to_neutral() -> None:
    trail = Trail(at(0))
    assert trail.score == 0.5 and trail.factor == 1.0
    for _ in range(8):
        trail = trail.marked(Mark.SUCCESS, at(0), HALF, 100)
    assert trail.success == 8 and trail.score == pytest.approx(0.9)
    later = trail.faded(at(3600 * 3), HALF)
    assert later.success == pytest.approx(1.0) and later.duration_ms == 100
    assert trail.faded(at(3600 * 40), HALF).score == pytest.approx(0.5, abs=1e-6)
    assert trail.faded(at(-5), HALF) == trail  # a clock that steps back adds nothing


def test_one_failure_does_not_banish_and_no_worker_is_ever_sure() -> None:
    assert Trail(at(0)).marked(Mark.FAILURE, at(0), HALF).score == pytest.approx(1 / 3)
    good = bad = Trail(at(0))
    for _ in range(1000):
        good, bad = good.marked(Mark.SUCCESS, at(0), HALF), bad.marked(Mark.FAILURE, at(0), HALF)
    assert (good.score, bad.score) == (HIGHEST_SCORE, LOWEST_SCORE)
    assert Trail(at(0)).marked(Mark.WARNING, at(0), HALF).score == 0.5


def test_the_mean_duration_forgets_what_is_old() -> None:
    trail = Trail(at(0)).marked(Mark.SUCCESS, at(0), HALF, 1000)
    for n in range(20):
        trail = trail.marked(Mark.SUCCESS, at(3600 * 5 + n), HALF, 10)
    assert 10 <= trail.duration_ms < 20
    assert Trail.of_json(trail.as_json()).score == pytest.approx(trail.score)


def test_a_trail_is_read_back_by_its_key() -> None:
    for key in (TrailKey("escavador_x"), TrailKey("espaco_acme.escavador_x", "w-1")):
        assert TrailKey.of_text(key.text) == key
    assert TrailKey("espaco_acme.escavador_x").tenant == "acme"


def found(story: Story, step: object) -> list[tuple[str, str, Mark]]:
    events, when = step.events, step.at  # type: ignore[attr-defined]
    return [(one.key.queue, one.key.worker, one.mark) for one in deposits(story.state, events, when)]


def test_what_leaves_a_mark_and_what_does_not() -> None:
    queue = "escavador_fonte0"
    story = Story(plan(1, attempts=3))
    assert found(story, story.started) == []
    story.confirm()
    failed = story.fail(0)
    assert found(story, failed) == [(queue, "", Mark.FAILURE)]
    story.wake(when=100)
    story.confirm(when=100)
    assert found(story, story.ok(0, when=101)) == [(queue, "", Mark.WARNING)]
    first = Story(plan(1))
    first.confirm()
    [one] = deposits(first.state, first.ok(0, when=2).events, at(2))
    assert one.mark is Mark.SUCCESS and one.duration_ms == pytest.approx(2000)
    final = Story(plan(1))
    final.confirm()
    assert found(final, final.fail(0, definitivo=True)) == []  # no worker could have done it
    cancelled = Story(plan(1))
    cancelled.confirm()
    assert found(cancelled, cancelled.cancel()) == []
    lost = Story(plan(1))
    lost.confirm()
    step = lost.do(WithdrawTicket(0, 1, Cause.REALOCADO, "w-1"))
    assert isinstance(step.events[0], ev.TicketWithdrawn)
    assert found(lost, step) == [(queue, "w-1", Mark.FAILURE)]


def test_an_attempt_that_was_given_by_a_choice_marks_its_worker_too() -> None:
    story = Story(plan(1, attempts=2))
    story.confirm()
    story.do(AllocateTicket(0, 1, Allocation("w-1", AllocationMethod.ONLY, 0.5, 0.5, ())))
    queue = "escavador_fonte0"
    assert found(story, story.fail(0)) == [(queue, "", Mark.FAILURE), (queue, "w-1", Mark.FAILURE)]
    story.wake(when=100)
    story.confirm(when=100)
    assert found(story, story.ok(0, when=101)) == [(queue, "", Mark.WARNING)]  # the second was taken by another one


@pytest.mark.parametrize("seed", range(5))
def test_a_good_worker_that_turns_bad_loses_its_share_within_two_half_lives_and_gets_it_back(seed: int) -> None:
    """Two workers, a ticket every 36 s, both free whenever one is given out: the best score times factor gets it."""
    rng, every, half = random.Random(seed), 36, HALF.total_seconds()
    trails = {name: Trail(at(0)) for name in "ab"}
    shares: list[str] = []

    def give(second: float, a_is_good: bool) -> None:
        def factor(name: str) -> float:
            if rng.random() < EXPLORED_SHARE:
                return EXPLORING_FACTOR
            return trails[name].faded(at(second), HALF).factor

        scores = {name: factor(name) * rng.uniform(0.9, 1.0) for name in "ab"}  # room and speed of the moment
        chosen = max(scores, key=lambda name: scores[name])
        good = rng.random() < (0.99 if chosen == "b" or a_is_good else 0.1)
        trails[chosen] = trails[chosen].marked(Mark.SUCCESS if good else Mark.FAILURE, at(second), HALF)
        shares.append(chosen)

    def share(halves: float) -> float:
        some = shares[-int(halves * half / every) :]
        return some.count("a") / len(some)

    second = 0.0

    def play(halves: float, a_is_good: bool) -> None:
        nonlocal second
        until = second + halves * half
        while second < until:
            give(second, a_is_good)
            second += every

    play(6, a_is_good=True)
    assert 0.3 < share(4) < 0.7
    play(2, a_is_good=False)
    assert 0 < share(1) < 0.2  # within two half-lives
    play(6, a_is_good=False)
    assert 0 < share(4) < 0.2  # and never none
    play(8, a_is_good=True)
    assert share(3) > 0.3  # it recovers
