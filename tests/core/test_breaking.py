"""Breakers: failures in a row open them, a probe closes them, and nothing else does."""

from __future__ import annotations

from datetime import timedelta

import pytest

from core.given import at, seconds
from oraculo.core.breaking import (
    PROBE_SEND_TIMEOUT,
    BreakerRules,
    DestinationBreaker,
    OrderSign,
    Sign,
    due_now,
    heard,
    probing,
)

RULES = BreakerRules(3, timedelta(seconds=30), timedelta(seconds=100))
W, F, S, V = Sign.WORKED, Sign.FAILED, Sign.SENT, Sign.VOID
PROBE = (7, 0, 1)


def told(one: DestinationBreaker, *signs: Sign, order: tuple[int, int, int] = (1, 0, 1)) -> DestinationBreaker:
    for sign in signs:
        said = OrderSign(order, sign, timedelta(seconds=60), "fora do ar")
        one = heard(one, [said], one.position + 1, at(one.position + 1), RULES)
    return one


@pytest.mark.parametrize(
    ("signs", "failures", "is_open"),
    [
        ((), 0, False),
        ((F, F), 2, False),
        ((F, F, W), 0, False),
        ((F, F, W, F, F), 2, False),
        ((F, F, S, V), 2, False),  # neither an order that goes nor one that is cancelled says anything
        ((F, F, F), 3, True),
        ((F, F, F, W, W), 3, True),  # answers to orders from before do not close it
        ((F, F, F, F), 3, True),
    ],
)
def test_failures_in_a_row_open_it(signs: tuple[Sign, ...], failures: int, is_open: bool) -> None:
    one = told(DestinationBreaker("q", position=0), *signs)
    assert (one.failures, one.is_open) == (failures, is_open)


def opened() -> DestinationBreaker:
    return told(DestinationBreaker("q"), F, F, F)


def probed() -> DestinationBreaker:
    one = opened()
    assert one.probe_at is not None
    chosen = probing(one, PROBE, one.probe_at)
    assert chosen is not None
    return chosen


def test_an_open_one_lets_its_probe_through_and_nothing_else_when_its_time_has_come() -> None:
    one = opened()
    assert one.probe_at == at(3) + RULES.probe_after
    assert probing(one, PROBE, one.probe_at - seconds(1)) is None
    out = probed()
    assert (out.lets_through(PROBE), out.lets_through((7, 0, 2)), one.lets_through(PROBE)) == (True, False, False)
    assert not out.wants_probe(one.probe_at) and out.wants_probe(one.probe_at + PROBE_SEND_TIMEOUT)


def test_a_probe_that_is_answered_closes_it() -> None:
    one = told(probed(), W, order=PROBE)
    assert (one.is_open, one.failures, one.probe, one.error) == (False, 0, None, "")
    assert one.lets_through((1, 0, 1))


def test_a_probe_that_fails_makes_the_next_one_wait_twice_as_long_up_to_a_limit() -> None:
    one, waits = probed(), []
    for _ in range(4):
        one = told(one, F, order=PROBE)
        assert one.is_open and one.probe is None and one.probe_at is not None
        waits.append((one.probe_at - at(one.position)).total_seconds())
        chosen = probing(one, PROBE, one.probe_at)
        assert chosen is not None
        one = chosen
    assert waits == [60, 100, 100, 100]


def test_a_probe_on_its_way_has_the_time_of_its_attempt_and_one_that_is_void_is_followed_at_once() -> None:
    sent = told(probed(), S, order=PROBE)
    assert sent.probe_at == at(sent.position) + timedelta(seconds=60) + PROBE_SEND_TIMEOUT
    void = told(sent, V, order=PROBE)
    assert void.probe is None and void.wants_probe(at(void.position))


def test_a_step_that_is_read_twice_counts_once() -> None:
    one = told(DestinationBreaker("q"), F, F)
    said = [OrderSign((1, 0, 1), F)]
    assert heard(one, said, one.position, at(9), RULES) is one
    assert heard(one, [OrderSign((1, 0, 1), V)], one.position + 1, at(9), RULES) is one


def test_an_operator_may_ask_for_the_next_probe_now() -> None:
    one = opened()
    asked = due_now(one, at(4))
    assert asked is not None and asked.wants_probe(at(4)) and asked.version == one.version + 1
    assert due_now(asked, at(4)) is None and due_now(probed(), at(4)) is None
    assert due_now(DestinationBreaker("q"), at(4)) is None
