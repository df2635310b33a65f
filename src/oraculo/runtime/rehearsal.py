"""A run played again with the answers that it got: expressions are evaluated anew, nothing is published.

`oraculo replay` puts recorded commands through the rules and compares events, evaluating nothing. A rehearsal takes
from the journal only what came from outside (answers, signals, decisions, confirmations, instants) and lets this
version do the rest. What ends otherwise than it did would end otherwise today.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from oraculo.core.commands import Grow, RecordDelivery, Resolve, Wake
from oraculo.core.replay import cause_of, rebuild
from oraculo.core.state import Orchestration
from oraculo.core.step import step
from oraculo.ports.journal import Recorded
from oraculo.runtime.evaluation import evaluate, snapshot
from oraculo.wire import records, strict_json
from oraculo.wire.result import document

_MADE_HERE = (Resolve, Grow)  # what evaluating gave
_NOT_ITS_OWN = frozenset({"inicio", "fim", "duracao_ms"})


@dataclass(slots=True)
class Rehearsal:
    """How a run ended when it was played again, and how it had ended: aggregates. `unused` are recorded commands that
    meant nothing this time, as (number of their first event, name of the command)."""

    result: dict[str, Any]
    recorded: dict[str, Any]
    unused: list[tuple[int, str]] = field(default_factory=list)

    @property
    def differences(self) -> list[str]:
        """Where the two aggregates differ, as paths; nothing when the run would end as it did."""
        return list(_differences(self.recorded, self.result, ""))


def rehearse(steps: Sequence[Recorded]) -> Rehearsal:
    """Play recorded steps of one run again."""
    state: Orchestration | None = None
    unused: list[tuple[int, str]] = []
    for one in steps:
        cause = cause_of(one.events)
        if isinstance(cause, (*_MADE_HERE, RecordDelivery)):
            continue
        done = step(state, cause, one.at)
        state = done.state
        if not done.events and not isinstance(cause, Wake):  # notices are not sent, nor tried again
            unused.append((one.first, type(cause).__name__))
        _evaluate(state, one.at)
    if state is None:
        raise ValueError("a run without steps cannot be rehearsed")
    return Rehearsal(_told(state), _told(rebuild(steps)), unused)


def _evaluate(state: Orchestration, at: datetime) -> None:
    """Evaluate what is asked until nothing is."""
    while (asked := snapshot(state)) is not None:
        if not any(step(state, command, at).events for command in evaluate(asked)):
            return


def _told(state: Orchestration) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(strict_json.dumps(document(state, state.closed_at or state.started_at)))
    return found


def _differences(before: Any, after: Any, where: str) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            if key not in _NOT_ITS_OWN:
                yield from _differences(before.get(key), after.get(key), f"{where}.{key}" if where else key)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _differences(one, other, f"{where}.{number}")
    elif before != after:
        yield where


# -- as text -----------------------------------------------------------------------------------------------------------


def written(steps: Iterable[Recorded]) -> str:
    """Recorded steps as JSON lines."""
    lines = [{"run": one.run, "first": one.first, "at": one.at, "events": records.encode(one.events)} for one in steps]
    return "".join(strict_json.dumps(line).decode() + "\n" for line in lines)


def read(text: str) -> list[Recorded]:
    """The steps that `written` wrote."""
    found = []
    for line in text.splitlines():
        if line.strip():
            one = orjson.loads(line)
            events = records.revive(one["events"])
            found.append(Recorded(one["run"], one["first"], datetime.fromisoformat(one["at"]), events))
    return found
