"""Journals that releases wrote fold and replay to what they showed then."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from golden_journals.journals import Golden, all_of_them, shown
from oraculo.core import events as ev
from oraculo.core.replay import rebuild, replay_step
from oraculo.core.state import Orchestration

GOLDENS = all_of_them()
ENGINES = ("core", "local", "celery", "temporal")
each = pytest.mark.parametrize("golden", GOLDENS, ids=lambda golden: golden.name)


@each
def test_a_journal_folds_to_what_was_shown_of_it(golden: Golden) -> None:
    recorded = golden.recorded()
    state = rebuild(recorded)
    for name, document in shown(state, recorded).items():
        assert document == _comparable(golden.shown[name]), name


def _comparable(document: Any) -> Any:
    """A state of format 1 held its plan, and an empty list of errors for none."""
    if isinstance(document, dict) and "plan" in document:
        tickets = [{**ticket, "erros": ticket["erros"] or None} for ticket in document["tickets"]]
        return {**{name: value for name, value in document.items() if name != "plan"}, "tickets": tickets}
    return document


@each
def test_a_journal_replays_to_itself(golden: Golden) -> None:
    recorded, state = golden.recorded(), None
    for one, line in zip(recorded, golden.lines, strict=True):
        done = replay_step(state, one)
        assert type(done.cause).__name__ == line["cause"]
        assert done.events == one.events
        assert done.first == one.first
        state = done.state
    assert isinstance(state, Orchestration)
    assert state == rebuild(recorded)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_told_every_story(engine: str) -> None:
    told = {golden.name.partition("/")[2] for golden in GOLDENS if golden.name.startswith(f"{engine}/")}
    others = {golden.name.partition("/")[2] for golden in GOLDENS if not golden.name.startswith("core")}
    assert len(told) >= 14
    assert engine == "core" or told == others


def test_every_event_is_in_one_of_them() -> None:
    found = {type(event) for golden in GOLDENS for one in golden.recorded() for event in one.events}
    assert found == set(get_args(ev.Event))
