"""Rules of retention: the most exact counts, cut-offs move in few steps, wrong ones are named."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from oraculo.core.retention import cutoff, read_rules

RULES = read_rules("30d, relatorio=7d, acme/*=90d, acme/relatorio=52w")


@pytest.mark.parametrize(
    ("tenant", "tipo", "days"),
    [
        ("default", None, 30),
        ("default", "outro", 30),
        ("default", "relatorio", 7),
        ("acme", None, 90),
        ("acme", "outro", 90),
        ("acme", "relatorio", 364),
    ],
)
def test_the_most_exact_rule_counts(tenant: str, tipo: str | None, days: int) -> None:
    assert RULES.age_of(tenant, tipo) == timedelta(days=days)


def test_what_no_rule_names_is_kept() -> None:
    only = read_rules("relatorio=12h")
    assert only.age_of("default", "outro") is None and only.age_of("acme", "relatorio") == timedelta(hours=12)
    assert not read_rules("") and RULES.ages == [timedelta(days=n) for n in (7, 30, 90, 364)]


@pytest.mark.parametrize("text", ["30", "d", "0d", "a=", "a b=1d", "A B/*=1d", "1d, 2d", "x=1d, x=2d", "=1y"])
def test_a_wrong_rule_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is none|is there twice"):
        read_rules(text)


def test_a_cutoff_moves_in_whole_hours_or_by_the_age_when_that_is_less() -> None:
    now = datetime(2026, 1, 31, 12, 34, 56, tzinfo=UTC)
    assert cutoff(now, timedelta(days=30)) == datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert cutoff(now, timedelta(seconds=2)) == datetime(2026, 1, 31, 12, 34, 54, tzinfo=UTC)
