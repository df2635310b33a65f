"""Evaluates single texts over names, within a budget of units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from oraculo.core.resolution import Obstacle
from oraculo.core.vocabulary import Status
from oraculo.errors import ExpressionCostError, ExpressionError
from oraculo.expressions import EVALUATION_MAX_UNITS, VALUE_MAX_BYTES, Template, Use, parse_template
from oraculo.plans.faults import shown as shown_value
from oraculo.runtime.evaluation_names import TaskView
from oraculo.wire import strict_json

SAW_MAX_CHARS = 2048
EXPRESSION_SHOWN_CHARS = 300
VALUE_SHOWN_CHARS = 120
GONE = (Status.IGNORADA, Status.ERRO, Status.TIMEOUT, Status.CANCELADA)


class MoreNeededError(Exception):
    """The inline budget is spent."""


class FaultError(Exception):
    """Something evaluated has no value that can be used: where it stands, its text, and what is wrong."""

    def __init__(self, word: str, expression: str, detail: str, obstacle: Obstacle = Obstacle.EXPRESSION) -> None:
        super().__init__(detail)
        self.word, self.expression, self.detail, self.obstacle = word, expression, detail, obstacle


class Evaluator:
    """`inline`: units for all of it, MoreNeededError when they are spent; None: the whole budget for each text. `spent`
    is what it took so far."""

    def __init__(self, names: Mapping[str, Any], inline: int | None = None) -> None:
        self.names = names
        self._inline = inline
        self.spent = 0

    @property
    def left(self) -> int:
        """What is left of the inline budget."""
        return 0 if self._inline is None else self._inline - self.spent

    def inside(self, names: Mapping[str, Any]) -> Evaluator:
        """One for other names, with what is left of the budget."""
        return Evaluator(names, None if self._inline is None else self.left)

    def charge(self, units: int) -> None:
        """Take something that is not an expression into account."""
        self.spent += units
        if self._inline is not None and self.spent > self._inline:
            raise MoreNeededError

    def condition(self, condition: bool | str, word: str = "quando") -> bool:
        value = condition if isinstance(condition, bool) else self.text(condition, word)
        if not isinstance(value, bool):
            detail = f"a condition is true or false, not {shown_value(value)}"
            raise FaultError(word, str(condition)[:EXPRESSION_SHOWN_CHARS], detail)
        return value

    def written(self, template: bytes, word: str) -> bytes:
        """JSON text with its expressions filled in."""
        written = strict_json.compact(self.filled(strict_json.loads_trusted(template), word))
        if len(written) > VALUE_MAX_BYTES:
            raise FaultError(word, "", f"larger than {VALUE_MAX_BYTES} bytes")
        return written

    def filled(self, value: Any, word: str) -> Any:
        match value:
            case str():
                return self.text(value, word)
            case list():
                return [self.filled(inner, f"{word}.{number}") for number, inner in enumerate(value)]
            case dict():
                return {key: self.filled(inner, f"{word}.{key}") for key, inner in value.items()}
            case _:
                return value

    def text(self, text: str, word: str) -> Any:
        """The value of a text, which is itself when it has no expression."""
        template = parse_template(text)
        return text if template is None else self.evaluated(template, text, word)

    def evaluated(self, template: Template, text: str, word: str, *, whole: bool = True) -> Any:
        """The value of a text that was read; `whole` False: of its only expression, before it is weighed."""
        budget = EVALUATION_MAX_UNITS if self._inline is None else self._inline - self.spent
        measured = template.measured if whole or template.alone is None else template.alone.measured
        try:
            value, spent = measured(self.names, budget)
        except ExpressionCostError as error:
            if self._inline is not None:
                raise MoreNeededError from None
            raise self._fault(text, word, error) from None
        except ExpressionError as error:
            raise self._fault(text, word, error) from None
        self.spent += spent
        return value

    def _fault(self, text: str, word: str, error: ExpressionError) -> FaultError:
        why = f"{error.message} (column {error.position + 1}){self._gone(text)}"
        return FaultError(word, text[:EXPRESSION_SHOWN_CHARS], why)

    def _gone(self, text: str) -> str:
        """Which of the tasks that an expression asks did not conclude: what they offer is null."""
        told = [f"{name}: {status}" for name, status in self._statuses(text) if status in GONE]
        return f" [{', '.join(told)}]" if told else ""

    def saw(self, condition: bool | str, hidden: Callable[[str], bool] = lambda _: False) -> str:
        """The tasks that a condition asks, with their statuses, and the values that it reads by plain paths; not those
        of `hidden` names."""
        if isinstance(condition, bool):
            return ""
        told = {f"{name}: {status}": None for name, status in self._statuses(condition)}
        template = parse_template(condition)
        uses = [use for one in (template.expressions if template else ()) for use in one.uses]
        for use in uses:
            if use.path[-1:] != ("status",) and not hidden(use.name):
                told |= dict.fromkeys(self._read(use))
        return ", ".join(told)[:SAW_MAX_CHARS]

    def _read(self, use: Use) -> Iterator[str]:
        """What stands at the path of a use, when there is anything and it is a plain value."""
        try:
            value: Any = self.names[use.name]
            for step in use.path:
                value = value[step]
        except (KeyError, IndexError, TypeError, ExpressionError):
            return  # the condition did without it
        if value is None or isinstance(value, bool | int | float | str):
            written = strict_json.dumps(value).decode()[:VALUE_SHOWN_CHARS]
            yield f"{'.'.join(map(str, (use.name, *use.path)))}: {written}"

    def _statuses(self, text: str) -> Iterator[tuple[str, str]]:
        template = parse_template(text)
        used = dict.fromkeys(name for one in (template.expressions if template else ()) for name in sorted(one.names))
        for name in used:
            value = self.names.get(name)
            if isinstance(value, TaskView):
                yield name, value["status"]


def shown(condition: bool | str) -> str:
    """A condition as it is told."""
    return (str(condition).lower() if isinstance(condition, bool) else condition)[:EXPRESSION_SHOWN_CHARS]
