"""Plans of Fluxo C that run out of time are named in the log, once for each alarm."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import structlog

from core.given import RUN, T0, Story, flow, plan
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.core.step import Step
from oraculo.errors import StoreUnavailableError
from oraculo.logs import deadlines
from oraculo.logs.deadlines import DeadlineLog, level_of
from oraculo.ports.catalogue import Query, Summary
from oraculo.ports.journal import Batch
from oraculo.ports.observer import group_by_type
from runtime.doubles import ManualClock
from waiting import until

FOUR_HOURS = timedelta(hours=4)


@pytest.mark.parametrize(
    ("minutes", "level"),
    [
        (240, None),
        (30, None),
        (29.99, logging.WARNING),
        (5, logging.WARNING),
        (4.99, logging.ERROR),
        (-1, logging.ERROR),
    ],
)
def test_how_loud(minutes: float, level: int | None) -> None:
    assert level_of(timedelta(minutes=minutes)) == level


class Heard:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.log = DeadlineLog(self.clock)

    def group_by_type(self, step: Step) -> None:
        self.log.saw(Batch(step.at, [step]), group_by_type([step]))

    def after(self, minutes: float) -> list[tuple[str, str, int]]:
        """Said by then, since it was asked last: how loud, of whom, seconds left."""
        self.clock.forward((T0 + timedelta(minutes=minutes) - self.clock.now()).total_seconds())
        with structlog.testing.capture_logs() as said:
            self.log.look()
        return [(one["log_level"], one["correlation_id"], one["sla_remaining_seconds"]) for one in said]


def started(run: int = RUN, **more: Any) -> Story:
    wanted = replace(flow({"a": []}), timeout=FOUR_HOURS)
    return Story(replace(wanted, **more), run=run)


def test_half_an_hour_and_five_minutes_before_the_end() -> None:
    heard, story = Heard(), started()
    heard.group_by_type(story.started)
    name = story.state.correlation_id
    assert heard.after(209) == []
    assert heard.after(210.5) == [("warning", name, 29 * 60 + 30)]
    assert heard.after(230) == []
    assert heard.after(236) == [("error", name, 4 * 60)]
    assert heard.after(300) == []


def test_nothing_of_what_has_ended_is_short_anyway_or_is_no_plan_of_fluxo_c() -> None:
    heard = Heard()
    over, short, plain = (
        started(),
        started(RUN + 1, timeout=timedelta(minutes=4)),
        Story(plan(1, timeout=14_400), run=RUN + 2),
    )
    for story in (over, short, plain):
        heard.group_by_type(story.started)
    heard.group_by_type(over.ok(0))
    assert heard.after(239) == [] and list(heard.log._open) == [RUN + 1]


async def test_plans_of_an_earlier_process() -> None:
    store = SqliteStore(":memory:")
    await store.open()
    story = started()
    await store.append(Batch(T0, [story.started]))
    heard = Heard()
    await heard.log._recover(store)
    assert [level for level, _, _ in heard.after(220)] == ["warning"]
    await store.close()


async def test_a_store_that_is_away_at_the_start_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Away(SqliteStore):
        times = 2

        async def find(self, query: Query) -> list[Summary]:
            if self.times:
                self.times -= 1
                raise StoreUnavailableError("away")
            return await super().find(query)

    monkeypatch.setattr(deadlines, "CHECK_INTERVAL_S", 0.001)
    store, heard = Away(":memory:"), Heard()
    await store.open()
    await store.append(Batch(T0, [started().started]))
    running = asyncio.create_task(heard.log.run(store))
    await until(lambda: heard.log._open)
    running.cancel()
    await store.close()
