from __future__ import annotations

from itertools import islice

from oraculo.backoff import backoff


def test_pauses_double_until_the_longest_one() -> None:
    assert list(islice(backoff(0.5, 3.0), 5)) == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_a_first_pause_above_the_longest_is_cut() -> None:
    assert list(islice(backoff(5.0, 3.0), 2)) == [3.0, 3.0]


def test_factor_says_how_fast_pauses_grow() -> None:
    assert list(islice(backoff(1.0, 100.0, factor=3.0), 4)) == [1.0, 3.0, 9.0, 27.0]
