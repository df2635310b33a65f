"""When publishing leaves a broker and when it comes back."""

from __future__ import annotations

from oraculo.adapters.brokers.breaker import FAILURES_MAX, PROBES_NEEDED, SILENCE_TIMEOUT_S, Breaker


def opened(dwell: float = 30.0) -> Breaker:
    breaker = Breaker(dwell)
    for _ in range(FAILURES_MAX):
        breaker.failed(0.0, "away")
    assert breaker.open
    return breaker


def test_it_opens_after_several_failures_in_a_row() -> None:
    breaker = Breaker()
    assert [breaker.failed(0.1 * n, "away") for n in range(FAILURES_MAX)] == [False] * (FAILURES_MAX - 1) + [True]
    assert breaker.open and breaker.error == "away"


def test_a_confirmation_between_failures_starts_the_count_again() -> None:
    breaker = Breaker()
    for _ in range(10):
        for _ in range(FAILURES_MAX - 1):
            assert not breaker.failed(0.0, "away")
        breaker.confirmed()
    assert not breaker.open


def test_it_opens_when_nothing_is_confirmed_for_a_while() -> None:
    breaker = Breaker()
    assert not breaker.failed(10.0, "away")
    assert breaker.failed(10.0 + SILENCE_TIMEOUT_S, "away")


def test_one_failure_that_took_long_is_enough() -> None:
    assert Breaker().failed(10.0, "no confirmation", took=SILENCE_TIMEOUT_S)


def test_it_is_told_of_more_failures_and_opens_once() -> None:
    breaker = opened()
    assert not breaker.failed(1.0, "still away") and breaker.open_since == 0.0


def test_it_closes_after_the_dwell_and_several_probes() -> None:
    breaker = opened(dwell=30)
    assert not any(breaker.probed(float(second), True) for second in range(1, 30))
    assert breaker.probed(30.0, True)
    assert not breaker.open and breaker.error == ""


def test_a_failed_probe_starts_the_count_again() -> None:
    breaker = opened(dwell=0)
    for _ in range(PROBES_NEEDED - 1):
        assert not breaker.probed(1.0, True)
    assert not breaker.probed(1.0, False)
    assert [breaker.probed(1.0, True) for _ in range(PROBES_NEEDED)] == [False] * (PROBES_NEEDED - 1) + [True]


def test_a_confirmation_does_not_close_it() -> None:
    breaker = opened(dwell=0)
    breaker.confirmed()
    assert breaker.open


def test_probes_mean_nothing_to_one_that_is_closed() -> None:
    breaker = Breaker()
    assert not breaker.probed(1.0, True) and not breaker.probed(1.0, False) and not breaker.open
