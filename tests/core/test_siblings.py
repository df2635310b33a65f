"""Answers that are only counted: nothing follows from them, whatever the plan."""

from __future__ import annotations

import random

import pytest

from core.given import Story, dag, flow, plan
from oraculo.core.events import TicketConcluded
from oraculo.core.plan import Plan
from oraculo.core.siblings import MISSING_MAX_TICKETS, are_only_counted
from oraculo.core.vocabulary import FanIn, Phase

DIAMOND = {"a": (), "b": (), "c": ("a", "b"), "d": ("a",), "e": ("c", "d")}
PLANS = {
    "three and one": plan(3, 1),
    "one": plan(1, 1),
    "collections alone": plan(4),
    "first": plan(4, 1, modo=FanIn.PRIMEIRO),
    "two of five": plan(5, 2, modo=FanIn.QUORUM, minimo=2),
    "executions": plan(2, 4),
    "dag": dag(DIAMOND),
    "flow": flow(DIAMOND),
    "wide": plan(40, 1),
}


def running(story: Story) -> list[int]:
    return [number for number, one in enumerate(story.state.tickets) if one.phase in (Phase.OWED, Phase.RUNNING)]


@pytest.mark.parametrize("name", PLANS)
def test_nothing_follows_from_answers_that_are_only_counted(name: str) -> None:
    luck = random.Random(name)
    counted = decided = 0
    for _ in range(60):
        story = Story(PLANS[name])
        while story.state.closed_at is None:
            some = luck.sample(running(story), luck.randint(1, len(running(story))))
            said = are_only_counted(story.state, some)
            done = [story.ok(position) for position in some if position in running(story)]
            followed = any(not isinstance(event, TicketConcluded) for one in done for event in one.events)
            few = len(story.state.plan.tasks) <= MISSING_MAX_TICKETS
            assert said is not followed if few else not (said and followed), (some, [one.events for one in done])
            counted += said
            decided += followed
            if story.state.owed and luck.random() < 0.5:
                story.confirm()
    assert decided
    assert bool(counted) is _has_siblings(PLANS[name])


def _has_siblings(one: Plan) -> bool:
    """Whether some fan-in needs more than one success."""
    return any(gate.mode is not FanIn.PRIMEIRO and len(gate.inputs) > 1 for gate in one.gates)


def test_what_is_not_with_a_worker_is_never_waited_for() -> None:
    story = Story(plan(3, 1))
    story.confirm()
    story.ok(0)
    assert are_only_counted(story.state, [1])
    assert not are_only_counted(story.state, [0])
    assert not are_only_counted(story.state, [3])
    story.cancel()
    assert not are_only_counted(story.state, [1])
