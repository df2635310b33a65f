"""Orchestrations for tests of stores: stories whose steps are written as an engine would write them."""

from __future__ import annotations

import itertools
from collections import Counter

from core.given import Story, at, plan
from oraculo.core.consolidation import aggregate
from oraculo.core.plan import Plan
from oraculo.core.step import Step
from oraculo.ports.dead_letters import DeadLetter
from oraculo.ports.journal import Batch, Key
from oraculo.ports.store import Store
from oraculo.ports.unique_keys import KeyHolder
from oraculo.runtime.ids import oldest_run_at
from oraculo.wire import strict_json

_numbers = itertools.count(1)


def begin(
    name: str | None = None,
    wanted: Plan | None = None,
    *,
    when: float = 0.0,
    fingerprint: str = "f",
    actor: str | None = None,
) -> Story:
    """A story with a run number and a correlation_id of its own. Nothing is written yet."""
    number = next(_numbers)
    run = oldest_run_at(at(when)) + number
    name = name or f"corr-{number}"
    asked = wanted or plan(1)
    return Story(asked, run=run, correlation_id=name, fingerprint=fingerprint, when=when, check=False, actor=actor)


def batch(
    *steps: Step,
    when: float = 0.0,
    dead: list[DeadLetter] | None = None,
    keys: list[Key] | None = None,
    counts: dict[tuple[str, str], int] | None = None,
    holders: dict[int, KeyHolder] | None = None,
) -> Batch:
    """One transaction; orchestrations that ended in it get their result."""
    made = Batch(at(when), list(steps), dead=dead or [], keys=keys or [], counts=Counter(counts or {}))
    made.holders = holders or {}
    for step in steps:
        if any(type(event).__name__ == "OrchestrationClosed" for event in step.events):
            made.results[step.state.run] = strict_json.dumps(aggregate(step.state))
    return made


async def write(store: Store, *steps: Step, when: float = 0.0) -> None:
    await store.append(batch(*steps, when=when))


async def finished(store: Store, name: str | None = None, *, when: float = 0.0, wanted: Plan | None = None) -> Story:
    """An orchestration that began and ended at `when`."""
    story = begin(name, wanted, when=when)
    await write(store, story.started, story.ok(0), when=when)
    return story
