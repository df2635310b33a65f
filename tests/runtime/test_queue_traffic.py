"""Rates of queues: the last minute counts, what is older does not."""

from __future__ import annotations

from core.given import Story, plan
from oraculo.ports.journal import Batch
from oraculo.ports.observer import group_by_type
from oraculo.runtime.queue_traffic import OTHER_QUEUES, QUEUES_MAX, OneWay, QueueTraffic


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_rate_is_of_the_last_minute() -> None:
    clock = Clock()
    flow = OneWay(clock)
    flow.add({"a": 30})
    assert flow.per_second("a") == 6  # five seconds at least
    clock.now += 60
    flow.add({"a": 60, "b": 6})
    assert (flow.per_second("a"), flow.per_second("b"), flow.per_second("c")) == (1.0, 0.1, 0)
    clock.now += 61
    assert flow.per_second("a") == 0
    assert flow.total == {"a": 90, "b": 6}


def test_queues_beyond_a_number_share_one() -> None:
    flow = OneWay(Clock())
    flow.add({f"q{n}": 1 for n in range(QUEUES_MAX)})
    flow.add({"q0": 1, "mais": 2, "outra": 3})
    assert flow.total["q0"] == 2 and flow.total[OTHER_QUEUES] == 5 and "mais" not in flow.total


def test_answers_and_orders_are_counted_once_whichever_is_recorded_first() -> None:
    traffic, story = QueueTraffic(Clock()), Story(plan(3))
    steps = [story.started, story.confirm(0), story.ok(0), story.ok(1), story.fail(2, definitivo=True)]
    for step in steps:
        traffic.saw(Batch(step.at, [step]), group_by_type([step]))
    queues = [task.queue for task in story.state.plan.tasks]
    assert sum(traffic.sent.total.values()) == 3
    assert {queue: traffic.answered.total[queue] for queue in queues} == dict.fromkeys(queues, queues.count(queues[0]))
