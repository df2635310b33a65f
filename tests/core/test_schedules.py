"""Which instants fire, which are skipped or missed, and what is next."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oraculo.adapters.calendars import cron_calendar, cron_fault, interval_calendar, zone_fault
from oraculo.core.schedules import (
    FIRED_AT_ONCE,
    TAKEOVER,
    WAITING_MAX,
    Overlap,
    ScheduleRule,
    ScheduleState,
    decide,
    done,
    fire_at,
    next_due,
    run_name,
)

HOURLY = interval_calendar(3600)


def at(hours: float) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=hours)


def rule(overlap: Overlap = Overlap.PERMITIR, catch_up: float = 24, **more: object) -> ScheduleRule:
    return ScheduleRule("a", overlap, timedelta(hours=catch_up), **more)


def hours(instants: tuple[datetime, ...]) -> list[float]:
    return [(one - at(0)).total_seconds() / 3600 for one in instants]


def test_the_run_of_an_instant_is_named_after_it_in_utc() -> None:
    assert run_name("a", at(1)) == "a@2026-01-01T01:00:00Z"
    assert run_name("a", at(1).astimezone(tz=None)) == "a@2026-01-01T01:00:00Z"


def test_what_is_due_fires_in_order_and_only_once() -> None:
    found = decide(rule(), ScheduleState(at(0)), HOURLY, at(3.5), previous_open=True)
    assert hours(found.state.firing) == [1, 2, 3] and found.state.after == found.state.last == at(3)
    assert next_due(rule(), found.state, HOURLY, at(3.5)) == at(3.5) + TAKEOVER
    rest = done(found.state)
    assert next_due(rule(), rest, HOURLY, at(3.5)) == at(4)
    assert decide(rule(), rest, HOURLY, at(3.9), False).state.firing == ()


def test_a_clock_that_goes_back_fires_nothing_twice() -> None:
    state = done(decide(rule(), ScheduleState(at(0)), HOURLY, at(5), False).state)
    assert decide(rule(), state, HOURLY, at(2), False).state == state


def test_what_is_later_than_the_window_is_missed_and_the_rest_fires() -> None:
    found = decide(rule(catch_up=2), ScheduleState(at(0)), HOURLY, at(1000.5), False)
    assert found.missed == at(1) and hours(found.state.firing) == [999, 1000]
    assert decide(rule(catch_up=0), ScheduleState(at(0)), HOURLY, at(1), False).state.firing == (at(1),)
    assert decide(rule(catch_up=2), ScheduleState(at(0)), HOURLY, at(2.5), False).missed is None


def test_no_more_than_so_many_at_once() -> None:
    minutely = interval_calendar(60)
    found = decide(rule(), ScheduleState(at(0)), minutely, at(10), False)
    assert len(found.state.firing) == FIRED_AT_ONCE
    assert next_due(rule(), done(found.state), minutely, at(10)) < at(10)


def test_nothing_after_the_end() -> None:
    ends = rule(end=at(2))
    found = decide(ends, ScheduleState(at(0)), HOURLY, at(9), False)
    assert hours(found.state.firing) == [1, 2]
    assert next_due(ends, done(found.state), HOURLY, at(9)) is None
    late = decide(rule(catch_up=0, end=at(2)), ScheduleState(at(2)), HOURLY, at(9), False)
    assert late.missed is None and late.state.firing == ()


class TestOverlap:
    def test_pular_leaves_out_what_comes_while_the_run_before_is_open(self) -> None:
        found = decide(rule(Overlap.PULAR), ScheduleState(at(0), last=at(0)), HOURLY, at(2), previous_open=True)
        assert (hours(found.skipped), found.state.firing, found.state.after) == ([1, 2], (), at(2))
        assert found.state.last == at(0)

    def test_pular_fires_one_and_looks_at_the_others_while_its_run_is_open(self) -> None:
        found = decide(rule(Overlap.PULAR), ScheduleState(at(0)), HOURLY, at(3), previous_open=False)
        assert hours(found.state.firing) == [1] and found.skipped == ()
        again = decide(rule(Overlap.PULAR), done(found.state), HOURLY, at(3), previous_open=True)
        assert hours(again.skipped) == [2, 3]

    def test_enfileirar_keeps_them_in_line(self) -> None:
        queue = rule(Overlap.ENFILEIRAR)
        found = decide(queue, ScheduleState(at(0), last=at(0)), HOURLY, at(3), previous_open=True)
        assert hours(found.state.waiting) == [1, 2, 3] and found.state.firing == ()
        assert next_due(queue, found.state, HOURLY, at(3)) == at(3) + timedelta(seconds=1)
        fired, state = [], found.state
        for _ in range(5):
            state = decide(queue, state, HOURLY, at(3.5), previous_open=False).state
            fired += hours(state.firing)
            state = done(state)
        assert fired == [1, 2, 3] and next_due(queue, state, HOURLY, at(3.5)) == at(4)

    def test_the_line_has_an_end(self) -> None:
        full = ScheduleState(at(0), last=at(0), waiting=tuple(at(-n) for n in range(WAITING_MAX - 1, 0, -1)))
        found = decide(rule(Overlap.ENFILEIRAR), full, HOURLY, at(3), previous_open=True)
        assert len(found.state.waiting) == WAITING_MAX and hours(found.skipped) == [2, 3]

    def test_cancelar_anterior_fires_the_newest_and_names_what_it_replaces(self) -> None:
        cancel = rule(Overlap.CANCELAR_ANTERIOR)
        found = decide(cancel, ScheduleState(at(0), last=at(0)), HOURLY, at(2), previous_open=True)
        assert (hours(found.state.firing), hours(found.skipped), found.state.cancel) == ([2], [1], at(0))
        assert decide(cancel, ScheduleState(at(0), last=at(0)), HOURLY, at(2), previous_open=False).state.cancel is None
        assert (
            decide(cancel, ScheduleState(at(0), last=at(0)), HOURLY, at(0.5), previous_open=True).state.cancel is None
        )


def test_jitter_puts_off_and_leaves_name_and_order() -> None:
    late = rule(jitter=timedelta(hours=3))
    instants = [at(n) for n in range(1, 200)]
    delays = [fire_at(late, one) - one for one in instants]
    assert all(timedelta() <= one < timedelta(hours=3) for one in delays) and len(set(delays)) > 190
    assert [fire_at(late, one) for one in instants] == [fire_at(late, one) for one in instants]
    fired, state = [], ScheduleState(at(0))
    for n in range(1000):
        state = decide(late, state, HOURLY, at(n / 4), False).state
        assert all(fire_at(late, one) <= at(n / 4) for one in state.firing)
        fired += hours(state.firing)
        state = done(state)
    assert fired == [float(n) for n in range(1, len(fired) + 1)] and len(fired) > 240


@given(st.lists(st.floats(0, 30), max_size=40), st.sampled_from(Overlap), st.booleans())
def test_every_instant_is_dealt_with_once_whatever_the_clock_does(
    looks: list[float], overlap: Overlap, open_before: bool
) -> None:
    """`looks` are the times at which a process looks, in any order."""
    state, fired, skipped = ScheduleState(at(0)), list[float](), list[float]()
    for now in [*looks, *([31.0] * 40)]:
        found = decide(rule(overlap, catch_up=1000), state, HOURLY, at(now), open_before and now < 31)
        fired += hours(found.state.firing)
        skipped += hours(found.skipped)
        state = done(found.state)
    assert sorted(fired + skipped) == [float(n) for n in range(1, 32)]
    assert fired == sorted(fired)


class TestCalendars:
    @pytest.mark.parametrize(
        ("cron", "start", "expected"),
        [  # New York: 2025-03-09 has no 02:xx, 2025-11-02 has 01:xx twice
            ("30 2 * * *", "2025-03-08T12:00", ["2025-03-09T07:00", "2025-03-10T06:30"]),
            ("0,30 2 * * *", "2025-03-08T12:00", ["2025-03-09T07:00", "2025-03-10T06:00"]),
            ("30 1 * * *", "2025-11-01T12:00", ["2025-11-02T05:30", "2025-11-03T06:30"]),
            ("*/30 * * * *", "2025-11-02T04:59", ["2025-11-02T05:00", "2025-11-02T05:30", "2025-11-02T06:00"]),
            ("30 * * * *", "2025-03-09T06:00", ["2025-03-09T06:30", "2025-03-09T07:30", "2025-03-09T08:30"]),
            ("0 12 29 2 *", "2025-01-01T00:00", ["2028-02-29T17:00", "2032-02-29T17:00"]),
        ],
    )
    def test_changes_of_the_clocks(self, cron: str, start: str, expected: list[str]) -> None:
        following, instant = cron_calendar(cron, "America/New_York"), datetime.fromisoformat(f"{start}+00:00")
        found = []
        for _ in expected:
            instant = following(instant)
            found.append(instant.strftime("%Y-%m-%dT%H:%M"))
        assert found == expected

    @pytest.mark.parametrize("cron", ["50 1 * * *", "10 2 * * *", "*/20 1-3 * * *", "5,55 0-3 * * 0", "0 0 1 * *"])
    @pytest.mark.parametrize("zone", ["America/New_York", "America/Sao_Paulo", "Australia/Lord_Howe", "UTC"])
    def test_instants_are_the_same_wherever_one_begins(self, cron: str, zone: str) -> None:
        following = cron_calendar(cron, zone)
        for day in (
            datetime(2025, 3, 8, tzinfo=UTC),
            datetime(2025, 4, 5, tzinfo=UTC),
            datetime(2025, 11, 1, tzinfo=UTC),
        ):
            chain = _chain(following, day, day + timedelta(days=3))
            for start in (day + timedelta(minutes=7 * n) for n in range(600)):
                expected = next((one for one in chain if one > start), None)
                if expected is not None:
                    assert following(start) == expected, start

    def test_intervals_are_counted_from_1970(self) -> None:
        assert interval_calendar(86400)(at(3)) == at(24)
        assert interval_calendar(7)(at(0)) == interval_calendar(7)(at(0) + timedelta(microseconds=1))

    @pytest.mark.parametrize("cron", ["", "* * * *", "* * * * * *", "60 * * * *", "0 0 31 2 *", "a b c d e"])
    def test_what_is_no_cron_expression_is_said(self, cron: str) -> None:
        assert cron_fault(cron)

    def test_zones(self) -> None:
        assert zone_fault("America/Sao_Paulo") is None and zone_fault("UTC") is None
        assert all(zone_fault(name) for name in ("", "Mars/Olympus", "../etc/passwd", "America"))


def _chain(following: Callable[[datetime], datetime | None], since: datetime, until: datetime) -> list[datetime]:
    found, instant = [], following(since)
    while instant is not None and instant < until:
        found.append(instant)
        instant = following(instant)
    assert all(one < other for one, other in pairwise(found))
    return found
