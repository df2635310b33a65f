"""Burn rates by their definition, budgets, pairs of windows; no data is not the same as good."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from oraculo.core.sla.budget import BudgetStatus, Minutes, budget_of, burn_rate
from oraculo.core.sla.slo import End, Indicator, Slo
from oraculo.core.vocabulary import Status
from oraculo.errors import WireError
from oraculo.wire import sla as wire

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)


def slo(target: float = 0.99, **more: object) -> Slo:
    return Slo("s", Indicator.RUNS_DONE, target, timedelta(days=30), "s", **more)


def steady(ratio: float, hours: int, per_minute: int = 20) -> Minutes:
    """A service whose share of bad ends is the same in every minute."""
    minutes = Minutes()
    owed = 0.0
    for number in range(hours * 60):
        at = NOW - timedelta(minutes=number)
        for _ in range(per_minute):
            owed += ratio
            bad = owed >= 1
            owed -= bad
            minutes.add(at, not bad)
    return minutes


@pytest.mark.parametrize("ratio", [0.01, 0.05, 0.144])
def test_the_burn_rate_is_the_error_ratio_over_the_budget_in_every_window(ratio: float) -> None:
    budget = budget_of(slo(), steady(ratio, 24), NOW)
    for burn in budget.burns:
        assert burn.rate == pytest.approx(ratio / 0.01, rel=0.01)
    assert burn_rate(slo(), steady(ratio, 2).within(timedelta(hours=1), NOW)) == pytest.approx(ratio / 0.01, rel=0.01)


def test_a_service_at_its_limit_uses_its_budget_up_and_burns_at_one() -> None:
    budget = budget_of(slo(), steady(0.01, 24), NOW)
    assert budget.remaining == pytest.approx(0, abs=0.01)
    assert budget.status is BudgetStatus.EXHAUSTED
    assert budget.firing == ()


def test_half_the_errors_leave_half_the_budget() -> None:
    budget = budget_of(slo(), steady(0.005, 24), NOW)
    assert budget.remaining == pytest.approx(0.5, abs=0.01)
    assert budget.burns[0].exhaustion_hours == pytest.approx(0.5 * 720 / 0.5, rel=0.02)


@pytest.mark.parametrize(
    ("ratio", "firing"), [(0.2, ("1h", "6h", "3d")), (0.1, ("6h", "3d")), (0.02, ("3d",)), (0, ())]
)
def test_a_pair_fires_when_both_windows_burn(ratio: float, firing: tuple[str, ...]) -> None:
    assert budget_of(slo(), steady(ratio, 72, 10), NOW).firing == firing


def test_a_pair_stops_when_the_short_window_is_good_again() -> None:
    minutes = Minutes()
    for number in range(60):
        for _ in range(10):
            minutes.add(NOW - timedelta(minutes=number), number < 6)
    assert "1h" not in budget_of(slo(), minutes, NOW).firing


def test_few_ends_fire_nothing() -> None:
    minutes = Minutes()
    for _ in range(9):
        minutes.add(NOW, False)
    assert budget_of(slo(), minutes, NOW).firing == ()
    minutes.add(NOW, False)
    assert budget_of(slo(), minutes, NOW).firing != ()


def test_no_data_is_unknown_and_not_good() -> None:
    budget = budget_of(slo(), Minutes(), NOW)
    assert (budget.remaining, budget.status) == (None, BudgetStatus.UNKNOWN)
    assert all(burn.rate is None for burn in budget.burns)


def test_what_is_older_than_the_window_is_forgotten() -> None:
    minutes = steady(1.0, 3, 1)
    assert len(minutes.forget(NOW - timedelta(hours=1))) > 0
    assert minutes.within(timedelta(days=1), NOW).total <= 2 * 60


def end(status: Status = Status.CONCLUIDA, **more: object) -> End:
    values = {
        "tenant": "default",
        "of_run": True,
        "tipo": "r",
        "destination": None,
        "in_time": True,
        "took": timedelta(seconds=9),
    }
    return End(status=status, **{**values, **more})


@pytest.mark.parametrize(
    ("wanted", "seen", "good"),
    [
        ({}, end(), True),
        ({}, end(Status.PARCIAL), False),
        ({}, end(tenant="acme"), None),
        ({}, end(of_run=False), None),
        ({"tipo": "x"}, end(), None),
        ({"indicator": Indicator.RUNS_IN_TIME}, end(Status.ERRO), True),
        ({"indicator": Indicator.RUNS_IN_TIME}, end(Status.TIMEOUT, in_time=False), False),
        ({"indicator": Indicator.RUNS_IN_TIME}, end(in_time=None), None),
        ({"indicator": Indicator.RUNS_IN_TIME, "limit": timedelta(seconds=5)}, end(), False),
        ({"indicator": Indicator.TICKETS_DONE, "destination": "blog"}, end(of_run=False, destination="blog"), True),
        ({"indicator": Indicator.TICKETS_DONE, "destination": "blog"}, end(of_run=False, destination="youtube"), None),
    ],
)
def test_what_counts_and_what_is_good(wanted: dict[str, object], seen: End, good: bool | None) -> None:
    values = {"name": "s", "indicator": Indicator.RUNS_DONE, "target": 0.9, "window": timedelta(days=1), "service": "s"}
    assert Slo(**{**values, **wanted}).judge(seen) is good


@pytest.mark.parametrize("target", [1, 1.0, 100, 0, -1, "0.9", True, None])
def test_a_target_that_leaves_no_budget_is_refused_with_what_is_allowed(target: object) -> None:
    with pytest.raises(WireError, match="more than 0 and less than 1"):
        wire.parse({"indicador": "execucoes_concluidas", "objetivo": target})


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"indicador": "outra"}, "execucoes_concluidas"),
        ({"destino": "blog"}, "indicators of tickets"),
        ({"limite_s": 5}, "indicators in time"),
        ({"congelar": {"abaixo": 0.5, "acima": 0.2}}, "above abaixo"),
        ({"janela": 3}, "janela"),
    ],
)
def test_faults_say_what_is_allowed(document: dict[str, object], said: str) -> None:
    with pytest.raises(WireError, match=said):
        wire.parse({"indicador": "execucoes_concluidas", "objetivo": 0.9, **document})
