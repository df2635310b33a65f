"""Values that are known only when the plan runs, as Python objects: they become `${{ … }}`.

videos.data                      ${{ videos.dados }}
top.result.itens[0]              ${{ top.resultado.itens[0] }}
(top.result.n > 3) & ok.data.sim ${{ (top.resultado.n > 3) && ok.dados.sim }}
f"Olá {plan.input.nome}"         Olá ${{ entrada.nome }}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from oraculo.plans.limits import IDENTIFIER, RESERVED_NAMES


class PlanExpression:
    """An expression of a plan. Fields and items of it are expressions, too; comparisons, `&`, `|`, `~` and `+` make
    new ones. Anything else of the language is written as text: `"${{ top.resultado.map(x, x.nome) }}"`."""

    __slots__ = ("_compound", "_source")
    __hash__ = None  # type: ignore[assignment]  # == makes an expression

    def __init__(self, source: str, *, compound: bool = False) -> None:
        self._source = source
        self._compound = compound

    def __str__(self) -> str:
        return f"${{{{ {self._source} }}}}"

    def __repr__(self) -> str:
        return f"<PlanExpression {self._source}>"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __getattr__(self, name: str) -> PlanExpression:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._field(name)

    def __getitem__(self, key: str | int | PlanExpression) -> PlanExpression:
        return self._field(key) if isinstance(key, str) else PlanExpression(f"{self._operand}[{_written(key)}]")

    def _field(self, name: str) -> PlanExpression:
        plain = IDENTIFIER.fullmatch(name) and name not in RESERVED_NAMES
        return PlanExpression(f"{self._operand}.{name}" if plain else f"{self._operand}[{_literal(name)}]")

    def __iter__(self) -> Any:
        raise TypeError(f"{self._source} is known when the plan runs: use plan.for_each")

    def __bool__(self) -> bool:
        raise TypeError(f"{self._source} is known when the plan runs: give it to when=, and join conditions by & | ~")

    @property
    def _operand(self) -> str:
        return f"({self._source})" if self._compound else self._source

    def _joined(self, sign: str, other: object, *, turned: bool = False) -> PlanExpression:
        left, right = (_operand(other), self._operand) if turned else (self._operand, _operand(other))
        return PlanExpression(f"{left} {sign} {right}", compound=True)

    def __eq__(self, other: object) -> PlanExpression:  # type: ignore[override]
        return self._joined("==", other)

    def __ne__(self, other: object) -> PlanExpression:  # type: ignore[override]
        return self._joined("!=", other)

    def __lt__(self, other: object) -> PlanExpression:
        return self._joined("<", other)

    def __le__(self, other: object) -> PlanExpression:
        return self._joined("<=", other)

    def __gt__(self, other: object) -> PlanExpression:
        return self._joined(">", other)

    def __ge__(self, other: object) -> PlanExpression:
        return self._joined(">=", other)

    def __add__(self, other: object) -> PlanExpression:
        return self._joined("+", other)

    def __radd__(self, other: object) -> PlanExpression:
        return self._joined("+", other, turned=True)

    def __and__(self, other: object) -> PlanExpression:
        return self._joined("&&", other)

    def __rand__(self, other: object) -> PlanExpression:
        return self._joined("&&", other, turned=True)

    def __or__(self, other: object) -> PlanExpression:
        return self._joined("||", other)

    def __ror__(self, other: object) -> PlanExpression:
        return self._joined("||", other, turned=True)

    def __invert__(self) -> PlanExpression:
        return PlanExpression(f"!{self._operand}", compound=True)


class TaskHandle:
    """A task of a plan: what it offers to expressions. It may stand in `needs`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<TaskHandle {self.name}>"

    def _offer(self, field: str) -> PlanExpression:
        return PlanExpression(f"{self.name}.{field}")

    @property
    def data(self) -> PlanExpression:
        """What a collect gave, or what came with a signal or an approval."""
        return self._offer("dados")

    @property
    def result(self) -> PlanExpression:
        """What an execute or a child gave, or the last round of a loop."""
        return self._offer("resultado")

    @property
    def results(self) -> PlanExpression:
        """What a map gave, in the order of its items, null where one failed."""
        return self._offer("resultados")

    @property
    def status(self) -> PlanExpression:
        """How the task ended, in Portuguese."""
        return self._offer("status")

    @property
    def ok(self) -> PlanExpression:
        """Whether the task ended `concluida` or `parcial`."""
        return self._offer("ok")

    @property
    def errors(self) -> PlanExpression:
        """The errors of the task."""
        return self._offer("erros")

    @property
    def attempts(self) -> PlanExpression:
        """How often the task was tried."""
        return self._offer("tentativas")

    @property
    def total(self) -> PlanExpression:
        """How many items a map had."""
        return self._offer("total")

    @property
    def failures(self) -> PlanExpression:
        """The items of a map that failed."""
        return self._offer("falhas")


def plain(value: object) -> Any:
    """The value as JSON data: expressions as texts, instants with their zone."""
    match value:
        case PlanExpression():
            return str(value)
        case datetime():
            return value.isoformat()
        case TaskHandle():
            raise TypeError(f"{value.name} is a task; ask for what it offers: .data, .result, .results, .ok")
        case Mapping():
            return {key: plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [plain(inner) for inner in value]
        case _:
            return value


def _operand(value: object) -> str:
    return value._operand if isinstance(value, PlanExpression) else _literal(value)


def _written(value: object) -> str:
    return value._source if isinstance(value, PlanExpression) else _literal(value)


def _literal(value: object) -> str:
    """A constant in the language of expressions, which has the constants of JSON."""
    if isinstance(value, TaskHandle):
        raise TypeError(f"{value.name} is a task; ask for what it offers: .data, .result, .results, .ok")
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
