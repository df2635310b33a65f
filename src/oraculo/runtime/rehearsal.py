"""A run played again with the answers that it got: expressions are evaluated anew, nothing is published.

`oraculo replay` puts recorded commands through the rules and compares events, evaluating nothing. A rehearsal takes
from the journal only what came from outside (answers, signals, decisions, confirmations, instants) and lets this
version do the rest. What ends otherwise than it did would end otherwise today.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from typing import Any

import orjson

from oraculo.core.commands import Command, Grow, RecordDelivery, RecordResult, Resolve, Wake
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
    meant nothing this time, as (number of their first event, name of the command). `digest` is one of how it ended,
    without when: of the aggregate, and of every answer that counted, those of items and rounds too."""

    result: dict[str, Any]
    recorded: dict[str, Any]
    unused: list[tuple[int, str]] = field(default_factory=list)
    digest: str = ""

    @property
    def differences(self) -> list[str]:
        """Where the two aggregates differ, as paths; nothing when the run would end as it did."""
        return list(_differences(self.recorded, self.result, ""))


def rehearse(steps: Sequence[Recorded]) -> Rehearsal:
    """Play recorded steps of one run again. Expressions are evaluated when they were."""
    stage = _Stage()
    unused: list[tuple[int, str]] = []
    answers: list[tuple[Any, ...]] = []
    for one in steps:
        cause = cause_of(one.events)
        if isinstance(cause, RecordDelivery):
            continue
        if isinstance(cause, _MADE_HERE):
            stage.evaluate_as(cause, one.at)
            continue
        meant = stage.put(cause, one.at)
        if not meant and stage.evaluate_all(one.at):  # the record evaluated nothing before it, this version does
            meant = stage.put(cause, one.at)
        if not meant and not isinstance(cause, Wake):  # notices are not sent, nor tried again
            unused.append((one.first, type(cause).__name__))
        if meant and isinstance(cause, RecordResult):
            answers.append((cause.position, cause.attempt, cause.ok, cause.dados.decode(), _timeless(cause.erros)))
    if not steps:
        raise ValueError("a run without steps cannot be rehearsed")
    stage.evaluate_all(steps[-1].at)
    assert stage.state is not None
    return Rehearsal(_told(stage.state), _told(rebuild(steps)), unused, _digest(stage.state, answers))


class _Stage:
    """A run that is being played again."""

    def __init__(self) -> None:
        self.state: Orchestration | None = None
        self._rows: dict[int, list[Grow]] = {}  # map → its chunks, until the last of them has come

    def put(self, command: Command, at: datetime) -> bool:
        """Give the run a command; return whether it meant anything."""
        try:
            done = step(self.state, command, at)
        except IndexError:  # it is about a ticket that there is not this time
            if self.state is None:
                raise
            return False
        self.state = done.state
        return bool(done.events)

    def evaluate_all(self, at: datetime) -> bool:
        """Evaluate what is asked until nothing is; return whether that meant anything."""
        meant = False
        while True:
            left = [each for chunks in self._rows.values() for each in chunks]
            self._rows.clear()
            if not any([self.put(command, at) for command in [*left, *self._evaluated()]]):
                return meant
            meant = True

    def _evaluated(self) -> Sequence[Resolve | Grow]:
        asked = None if self.state is None else snapshot(self.state)
        return [] if asked is None else evaluate(asked)

    def evaluate_as(self, recorded: Resolve | Grow, at: datetime) -> None:
        """Evaluate what a recorded command brought: the same tasks, and of a map the same rows."""
        if isinstance(recorded, Resolve):
            positions, output = {one.ticket for one in recorded.resolutions}, recorded.output is not None
        else:
            positions, output = {recorded.owner}, False
            if recorded.owner in self._rows:
                self._grow(recorded, at)
                return
        for one in self._evaluated():
            if isinstance(one, Resolve):
                some = [each for each in one.resolutions if each.ticket in positions]
                if some or (output and one.output is not None):
                    self.put(Resolve(some, one.output if output else None), at)
            elif one.owner in positions:
                self._rows.setdefault(one.owner, []).append(one)
        for owner in positions & self._rows.keys():
            same = isinstance(recorded, Grow) and recorded.total == self._rows[owner][0].total
            if same and isinstance(recorded, Grow):
                self._grow(recorded, at)
            else:
                for chunk in self._rows.pop(owner):
                    self.put(chunk, at)

    def _grow(self, recorded: Grow, at: datetime) -> None:
        """Give the run as many rows of a map as a recorded chunk had."""
        first, *others = self._rows.pop(recorded.owner)
        while first.count < recorded.count and others:
            first = _joined(first, others.pop(0))
        if first.count > recorded.count:
            first, rest = _cut(first, recorded.count)
            others.insert(0, rest)
        if others:
            self._rows[recorded.owner] = others
        self.put(first, at)


def _joined(one: Grow, other: Grow) -> Grow:
    return replace(one, count=one.count + other.count, rows=one.rows + other.rows, idle=one.idle + other.idle)


def _cut(one: Grow, count: int) -> tuple[Grow, Grow]:
    """A chunk in two; what does not start is named with the second, by which it is known."""
    rest = replace(one, offset=one.offset + count, count=one.count - count, rows=one.rows[count:], template=None)
    return replace(one, count=count, rows=one.rows[:count], idle=[]), rest


def _told(state: Orchestration) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(strict_json.dumps(document(state, state.closed_at or state.started_at)))
    return found


def _digest(state: Orchestration, answers: list[tuple[Any, ...]]) -> str:
    told = orjson.dumps([_timeless(_told(state)), answers], option=orjson.OPT_SORT_KEYS)
    return sha256(told).hexdigest()


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(one) for key, one in value.items() if key not in _NOT_ITS_OWN}
    return [_timeless(one) for one in value] if isinstance(value, list) else value


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
