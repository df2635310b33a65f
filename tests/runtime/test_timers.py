from __future__ import annotations

import random

from core.given import at
from oraculo.runtime.kernel.timers import Timers


def test_each_is_named_once_when_its_time_has_come() -> None:
    timers = Timers()
    for run, when in ((1, 5), (2, 3), (3, 9)):
        timers.set(run, at(when))
    assert timers.next() == at(3)
    assert timers.due(at(2.999)) == []
    assert timers.due(at(5)) == [2, 1]
    assert timers.due(at(5)) == []
    assert (len(timers), timers.next()) == (1, at(9))


def test_moved_later_it_does_not_fire_early() -> None:
    timers = Timers()
    timers.set(1, at(5))
    timers.set(1, at(8))
    assert timers.due(at(7)) == []
    assert timers.next() == at(8)
    assert timers.due(at(8)) == [1]


def test_moved_earlier_it_fires_once_at_the_earlier_time() -> None:
    timers = Timers()
    timers.set(1, at(8))
    timers.set(1, at(5))
    assert timers.due(at(5)) == [1]
    assert timers.due(at(100)) == []


def test_removed_it_does_not_fire() -> None:
    timers = Timers()
    timers.set(1, at(5))
    timers.set(1, None)
    timers.set(2, None)
    assert (timers.due(at(9)), len(timers)) == ([], 0)


def test_removed_and_set_again() -> None:
    timers = Timers()
    timers.set(1, at(5))
    timers.set(1, None)
    timers.set(1, at(7))
    assert timers.due(at(6)) == []
    assert timers.due(at(7)) == [1]


def test_memory_does_not_grow_with_the_number_of_changes() -> None:
    timers = Timers()
    for n in range(20_000):
        timers.set(n % 10, at(100_000 - n))
    assert len(timers._heap) <= 2 * 10 + 1001
    assert sorted(timers.due(at(200_000))) == list(range(10))


def test_against_a_plain_model() -> None:
    draw = random.Random(3)
    timers, model, now = Timers(), {}, 0
    for _ in range(5_000):
        run = draw.randrange(40)
        when = None if draw.random() < 0.2 else now + draw.randrange(1, 50)
        timers.set(run, None if when is None else at(when))
        if when is None:
            model.pop(run, None)
        else:
            model[run] = when
        if draw.random() < 0.3:
            now += draw.randrange(10)
            due = {run for run, when in model.items() if when <= now}
            assert set(timers.due(at(now))) == due
            for run in due:
                del model[run]
    assert len(timers) == len(model)
