"""Evaluates what a state asks for: conditions, parameters, the items of maps, the rounds of loops and the output of
plans with named tasks.

Pure: the same state gives the same commands on every machine, so evaluating twice is harmless. `snapshot` takes what
is needed from a live state; `evaluate` may then run beside other work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from oraculo.core import maps
from oraculo.core.commands import Grow, Resolve
from oraculo.core.named_tasks import NamedTask, NamedTasks, named_in
from oraculo.core.plan import Plan
from oraculo.core.resolution import OUTPUT, Outcome, Resolution
from oraculo.core.state import Orchestration
from oraculo.errors import ExpressionError
from oraculo.expressions import INLINE_MAX_UNITS, parse_template
from oraculo.plans.json_values import texts_in
from oraculo.runtime.evaluation_names import ItemNames, TaskNames, UndoneNames, undone_names
from oraculo.runtime.evaluator import Evaluator, FaultError, MoreNeededError, shown
from oraculo.runtime.loop_rounds import next_round
from oraculo.runtime.map_rows import Rows, items_of, place, word_of
from oraculo.runtime.wait_values import awaited
from oraculo.wire import strict_json

Evaluated = list[Resolve | Grow]  # the commands that bring what was asked, in the order in which they count


@dataclass(frozen=True, slots=True)
class Asked:
    """One thing to evaluate; `spec` None: the output. `rounds` are those of a loop so far."""

    position: int
    spec: NamedTask | None
    template: bytes
    rounds: int = 0
    own: Mapping[str, bytes] | None = None  # names of its own, as JSON text; None: it undoes nothing

    @property
    def texts(self) -> Iterator[bytes]:
        """Every JSON text that is evaluated."""
        yield self.template
        if self.spec is not None:
            yield self.spec.when
            if self.spec.map is not None:
                yield from (self.spec.map.items, self.spec.map.item.when, self.spec.map.task.parametros)
            if self.spec.loop is not None:
                yield from (self.spec.loop.stop_when, self.spec.loop.task.parametros)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a state asks, and what expressions may see of it."""

    asked: tuple[Asked, ...]
    names: TaskNames
    plan: Plan
    tickets: int


def snapshot(state: Orchestration) -> Snapshot | None:
    """What is asked now, apart from the state; None when nothing is."""
    found = _asked(state)
    if found is not None:
        found.names.freeze(_used(found.asked))
    return found


def _asked(state: Orchestration) -> Snapshot | None:
    named = named_in(state.plan)
    if named is None or not state.asks_anything:
        return None
    asked = [_one(state, named, position) for position in sorted(state.asks)]
    if state.asks_output:
        asked.append(Asked(OUTPUT, None, named.output))
    return Snapshot(tuple(asked), TaskNames(state, named), state.plan, len(state.tickets))


def _one(state: Orchestration, named: NamedTasks, position: int) -> Asked:
    template = state.plan.tasks[position].parametros
    own = undone_names(state, named, position) if state.ending is not None else None
    return Asked(position, named.spec(position), template, len(state.items(position)), own)


def _used(asked: tuple[Asked, ...]) -> set[str]:
    """The names that expressions use."""
    used: set[str] = set()
    for one in asked:
        for text in one.texts:
            for _, found in texts_in(strict_json.loads_trusted(text), ()):
                try:
                    template = parse_template(found)
                except ExpressionError:
                    continue
                used.update(
                    name for expression in (template.expressions if template else ()) for name in expression.names
                )
    return used


def evaluate(asked: Snapshot) -> Evaluated:
    """Evaluate with the whole budget for each text."""
    found = _Found()
    for one in asked.asked:
        found.add(_evaluated(asked, one, Evaluator(asked.names)))
    return found.commands


def evaluate_inline(state: Orchestration) -> Evaluated:
    """Evaluate as much as may be done beside other work on an event loop; nothing when nothing is asked, or all of it
    needs more."""
    asked = _asked(state)
    found = _Found()
    left = INLINE_MAX_UNITS
    for one in asked.asked if asked is not None else ():
        assert asked is not None
        evaluator = Evaluator(asked.names, left)
        try:
            found.add(_evaluated(asked, one, evaluator))
        except MoreNeededError:
            break
        left = evaluator.left
    return found.commands


class _Found:
    """What evaluating gave so far, as commands."""

    def __init__(self) -> None:
        self._resolve = Resolve([])
        self._grown: list[Grow] = []

    def add(self, what: Resolution | list[Grow]) -> None:
        if isinstance(what, list):
            self._grown += what
        elif what.ticket == OUTPUT:
            self._resolve.output = what
        else:
            self._resolve.resolutions.append(what)

    @property
    def commands(self) -> Evaluated:
        resolved = bool(self._resolve.resolutions) or self._resolve.output is not None
        return [*([self._resolve] if resolved else []), *self._grown]


def _evaluated(snapshot: Snapshot, asked: Asked, evaluator: Evaluator) -> Resolution | list[Grow]:
    position, spec = asked.position, asked.spec
    try:
        if spec is None:
            return Resolution(position, Outcome.GO, evaluator.written(asked.template, "saida"))
        if asked.own is not None:
            inside = evaluator.inside(UndoneNames(evaluator.names, asked.own))
            value = inside.written(asked.template, "desfaz.parametros")
            evaluator.spent += inside.spent
            return Resolution(position, Outcome.GO, value)
        condition: Any = strict_json.loads_trusted(spec.when)
        if condition is not None and not asked.rounds and not evaluator.condition(condition):
            saw = evaluator.saw(condition)
            return Resolution(position, Outcome.SKIP, word="quando", expression=shown(condition), detail=saw)
        if spec.wait is not None:
            return Resolution(position, Outcome.GO, awaited(evaluator, spec.wait, asked.template))
        if spec.loop is not None:
            return next_round(evaluator, spec.loop, position, asked.rounds, snapshot.tickets)
        if spec.map is None:
            word = "parametros" if spec.child is None else "filha"
            return Resolution(position, Outcome.GO, evaluator.written(asked.template, word))
        items = items_of(evaluator, spec.map)
        refused = maps.refusal(snapshot.plan, snapshot.tickets, position, len(items))
        if refused is not None:
            return replace(refused, word=place(spec.name, refused.word))
        names = ItemNames(evaluator.names, spec.map.item_name)
        return list(Rows(evaluator, spec.map, names, word_of(spec.map)).commands(position, items))
    except FaultError as fault:
        return Resolution(
            position,
            Outcome.FAIL,
            word=fault.word if spec is None else place(spec.name, fault.word),
            expression=fault.expression,
            detail=fault.detail,
            obstacle=fault.obstacle,
        )
