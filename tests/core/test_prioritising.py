"""How urgent an orchestration is, changed while it runs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from core.given import Story, at, plan
from oraculo.adapters.clock import MonotonicClock
from oraculo.core.commands import Cancel, Prioritise
from oraculo.core.events import PriorityChanged, actor_of
from oraculo.core.priority import fresh_score_of, score_of_priority, ticket_score
from oraculo.core.vocabulary import Verdict
from oraculo.runtime.kernel.ceiling.ceiling import ConcurrencyCeiling, score_of


def test_it_is_an_event_that_names_its_actor_and_the_same_again_is_none() -> None:
    story = Story(plan(2))
    done = story.do(Prioritise(9, "urge", "ana"), 1)
    assert (done.verdict, done.events, done.effects) == (Verdict.APPLIED, [PriorityChanged(9, "urge", "ana")], [])
    assert actor_of(done.events[0]) == "ana" and story.state.priority == 9
    again = story.do(Prioritise(9), 2)
    assert (again.verdict, again.events) == (Verdict.DUPLICATE, [])
    story.do(Cancel("chega"), 3)
    assert story.do(Prioritise(1), 4).verdict is Verdict.IDLE


def test_all_its_tickets_count_by_it_whatever_the_plan_says() -> None:
    story = Story(plan(2))
    assert fresh_score_of(story.state, 0) == score_of_priority(5)
    story.do(Prioritise(9), 1)
    assert fresh_score_of(story.state, 1) == score_of_priority(9)
    assert ticket_score(story.state, 1, at(2)).value > score_of_priority(5).value


@pytest.mark.parametrize("live", [True, False], ids=["the state that is changed", "a state that was read before"])
def test_what_waits_under_a_ceiling_takes_its_new_place(live: bool) -> None:
    ceiling: ConcurrencyCeiling[str] = ConcurrencyCeiling(0)
    first, second = Story(plan(1)), Story(plan(1), run=2)
    changed: dict[int, int] = {}
    for story, name in ((first, "first"), (second, "second")):
        order = (story.state.run, 0, 1)
        ceiling.add(order, score_of(story.state, 0, at(0), MonotonicClock(), changed), name)
    if live:
        second.do(Prioritise(9), 1)
    else:
        changed[second.state.run] = 9
    ceiling.rescore(lambda _: True)
    ceiling.limit = 2
    assert ceiling.due(lambda _: True) == ["second", "first"]


def test_a_retry_of_a_ticket_counts_by_it_too() -> None:
    story = Story(plan(1, attempts=2, timeout=100))
    story.do(Prioritise(1), 1)
    story.confirm(0, when=2)
    assert ticket_score(story.state, 0, at(2) + timedelta(seconds=90)).risk == score_of_priority(1).risk
