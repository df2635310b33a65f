"""The items of a map → its rows: the parameters cut at their holes, once, and the values of the holes for each item.
The rounds of a loop have rows of the same kind, one at a time.

What names no item is evaluated once and is part of the template. An item whose condition is false, or whose expression
has no value, has no row and a resolution instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from oraculo.core.commands import Grow
from oraculo.core.named_tasks import LoopSpec, MapSpec
from oraculo.core.resolution import IdleItems, Obstacle, Outcome, Resolution
from oraculo.expressions import VALUE_MAX_BYTES, Template, parse_template
from oraculo.runtime.evaluation_names import ItemNames
from oraculo.runtime.evaluator import EXPRESSION_SHOWN_CHARS, Evaluator, FaultError, shown
from oraculo.wire import strict_json

ROWS_MAX_BYTES = 16 * 1024 * 1024  # of all rows of a map
MAP_MAX_UNITS = 50_000_000  # of all items of a map together
ITEM_UNITS = 20  # what an item costs besides its expressions, in an inline budget
CHUNK_ROWS, CHUNK_BYTES = 2000, 512 * 1024
REASONS_COMPARED = 8
PARAMS, CHILD = "faz.parametros", "faz.filha"


@dataclass(slots=True)
class Hole:
    """One text that is another value for each item."""

    word: str
    text: str
    template: Template


def place(task: str, word: str) -> str:
    """A word of a task as a fault names it."""
    return f"tarefas.{task}.{word}"


def word_of(spec: MapSpec | LoopSpec) -> str:
    """Where the expressions of its items or rounds stand, inside of the task."""
    return PARAMS if spec.item.child is None else CHILD


def items_of(evaluator: Evaluator, spec: MapSpec) -> list[Any]:
    """The list that a map goes over."""
    said = strict_json.loads_trusted(spec.items)
    if not isinstance(said, str):
        return [evaluator.filled(one, f"para_cada.{number}") for number, one in enumerate(said)]
    template = parse_template(said)
    value = said if template is None else evaluator.evaluated(template, said, "para_cada", whole=False)
    if not isinstance(value, list | tuple):
        raise FaultError("para_cada", said[:EXPRESSION_SHOWN_CHARS], f"a map goes over a list, not over {_kind(value)}")
    return list(value)


def _kind(value: Any) -> str:
    kinds: list[tuple[Any, str]] = [(type(None), "null"), (bool, "a bool"), (str, "a text"), (int | float, "a number")]
    kinds.append((Mapping, "an object"))
    return next((name for kind, name in kinds if isinstance(value, kind)), type(value).__name__)


class Rows:
    """Evaluates the rows of one map, whose items are known, or of one loop."""

    def __init__(self, evaluator: Evaluator, spec: MapSpec | LoopSpec, names: ItemNames, word: str = PARAMS) -> None:
        self._names = names
        self._task = spec.item.name
        self._word = word
        self._outside = evaluator
        self._inside = evaluator.inside(self._names)
        self._when = strict_json.loads_trusted(spec.item.when)
        self._pieces: list[bytearray] = [bytearray()]
        self._holes: list[Hole] = []
        self._cut(strict_json.loads_trusted(spec.task.parametros), word)
        self._weight = 0
        self._keeps_item = spec.item.undo is not None and spec.item.undo.keeps_item

    @property
    def template(self) -> list[str]:
        return [piece.decode() for piece in self._pieces]

    def commands(self, owner: int, items: list[Any]) -> Iterator[Grow]:
        """The rows in chunks; one without rows when there are no items."""
        total = len(items)
        chunk, size = Grow(owner, 0, 0, total, [], self.template), 0
        for index, item in enumerate(items):
            row, why = self.row(index, item)
            length = sum(map(len, row))
            if chunk.count and (chunk.count == CHUNK_ROWS or size + length > CHUNK_BYTES):
                yield chunk
                chunk, size = Grow(owner, index, 0, total, []), 0
            chunk.rows.append(row)
            chunk.count += 1
            size += length
            if why is not None:
                _keep(chunk.idle, index, replace(why, ticket=owner))
        yield chunk

    def row(self, index: int, item: Any) -> tuple[tuple[bytes, ...], Resolution | None]:
        """The values of the holes for one item, and why it does not start, if it does not."""
        inside, nothing = self._inside, tuple([b"null"] * (len(self._holes) + self._keeps_item))
        self._names.item, self._names.index = item, index
        inside.charge(ITEM_UNITS)
        if inside.spent > MAP_MAX_UNITS:
            raise FaultError(self._word, "", f"all items together need more than {MAP_MAX_UNITS} units")
        try:
            if self._when is not None and not inside.condition(self._when, "faz.quando"):
                saw = inside.saw(self._when, self._names.own)  # the same for all items: they share one reason
                skip = Resolution(0, Outcome.SKIP, word="faz.quando", expression=shown(self._when), detail=saw)
                return nothing, skip
            row = tuple(
                strict_json.compact(inside.evaluated(hole.template, hole.text, hole.word)) for hole in self._holes
            )
            if self._keeps_item:
                row = (*row, strict_json.compact(item))
            length = sum(map(len, row))
            if length > VALUE_MAX_BYTES:
                raise FaultError(self._word, "", f"larger than {VALUE_MAX_BYTES} bytes")
        except FaultError as fault:
            word = place(self._task, fault.word)
            failed = Resolution(0, Outcome.FAIL, word=word, expression=fault.expression, detail=fault.detail)
            return nothing, failed
        self._weight += length
        if self._weight > ROWS_MAX_BYTES:
            detail = f"what the items need is larger than {ROWS_MAX_BYTES} bytes"
            raise FaultError(self._word, "", detail, Obstacle.DATA)
        return row, None

    # -- the template ------------------------------------------------------------------------------------------------

    def _cut(self, value: Any, word: str) -> None:
        match value:
            case str():
                self._cut_text(value, word)
            case list():
                self._cut_all("[", [("", inner, f"{word}.{n}") for n, inner in enumerate(value)], "]")
            case dict():
                inner = [(_text(key) + ":", one, f"{word}.{key}") for key, one in value.items()]
                self._cut_all("{", inner, "}")
            case _:
                self._write(_text(value))

    def _cut_all(self, opening: str, inner: list[tuple[str, Any, str]], closing: str) -> None:
        self._write(opening)
        for number, (before, value, word) in enumerate(inner):
            self._write(("," if number else "") + before)
            self._cut(value, word)
        self._write(closing)

    def _cut_text(self, text: str, word: str) -> None:
        template = parse_template(text)
        if template is None or not any(self._names.own(name) for one in template.expressions for name in one.names):
            self._write(_text(self._outside.text(text, word)))
        else:
            self._holes.append(Hole(word, text, template))
            self._pieces.append(bytearray())

    def _write(self, text: str) -> None:
        self._pieces[-1] += text.encode()


def _keep(idle: list[IdleItems], index: int, why: Resolution) -> None:
    """Put an item that does not start beside those with the same reason, as far as it is one of the last."""
    for known in idle[-REASONS_COMPARED:]:
        if known.why == why:
            known.items.append(index)
            return
    idle.append(IdleItems([index], why))


def _text(value: Any) -> str:
    return strict_json.dumps(value).decode()
