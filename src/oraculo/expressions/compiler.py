"""Tree → closures. Every operator and call is charged one unit, every round of a macro two."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from oraculo.errors import ExpressionCostError, ExpressionError
from oraculo.expressions.functions import GLOBAL, METHODS, Signature
from oraculo.expressions.macros import MACRO_CODE, Code, StepCode
from oraculo.expressions.operators import OPERATORS
from oraculo.expressions.syntax import (
    Call,
    Chain,
    Conditional,
    Field,
    Has,
    Index,
    ListOf,
    Literal,
    Logic,
    Macro,
    MapOf,
    Member,
    Method,
    Name,
    Node,
    Step,
    Unary,
)
from oraculo.expressions.values import Run, Value, a_kind, checked_int, is_map


class Compiler:
    """`slots` counts the variables of macros that are in use at once."""

    def __init__(self) -> None:
        self.slots = 0
        self._scope: dict[str, int] = {}  # variable → slot
        self._depth = 0

    def code(self, node: Node) -> Code:
        match node:
            case Literal(value):
                return lambda run: value
            case Name(name, position):
                return self._name(name, position)
            case ListOf(items, position):
                return self._list([self.code(item) for item in items], position)
            case MapOf(entries, position):
                return self._map([(self.code(key), self.code(value)) for key, value in entries], position)
            case Call(name, arguments, position):
                return self._call(name, [self.code(one) for one in arguments], position)
            case Has(inner, field, _, position):
                return self._has(self.code(inner), field, position)
            case Member(root, steps):
                return self._member(self.code(root), [self._step(step) for step in steps])
            case Unary(sign, count, operand, position):
                return self._unary(sign, count, self.code(operand), position)
            case Chain(first, rest):
                return self._chain(self.code(first), [(OPERATORS[sign], self.code(n), at) for sign, n, at in rest])
            case Logic(sign, operands, position):
                return _logic(sign == "||", [self.code(one) for one in operands], position)
            case Conditional(condition, yes, no, position):
                return self._conditional(self.code(condition), self.code(yes), self.code(no), position)

    # -- values ------------------------------------------------------------------------------------------------------

    def _name(self, name: str, position: int) -> Code:
        slot = self._scope.get(name)
        if slot is not None:
            return lambda run: run.slots[slot]

        def read(run: Run) -> Value:
            try:
                return run.names[name]
            except KeyError:
                raise ExpressionError(f"there is no {name!r} here", position) from None

        return read

    @staticmethod
    def _list(items: list[Code], position: int) -> Code:
        cost = 1 + len(items)

        def make(run: Run) -> Value:
            run.charge(cost, position)
            return [item(run) for item in items]

        return make

    @staticmethod
    def _map(entries: list[tuple[Code, Code]], position: int) -> Code:
        cost = 1 + len(entries)

        def make(run: Run) -> Value:
            run.charge(cost, position)
            made: dict[str, Value] = {}
            for key_of, value_of in entries:
                key = key_of(run)
                if not isinstance(key, str):
                    raise ExpressionError(f"the key of a map is a string, not {a_kind(key)}", position)
                if key in made:
                    raise ExpressionError(f"the map has the key {key[:64]!r} twice", position)
                made[key] = value_of(run)
            return made

        return make

    @staticmethod
    def _call(name: str, arguments: list[Code], position: int) -> Code:
        counts, function = _function(GLOBAL, name, position)
        _check_count(name, counts, len(arguments), position)

        def call(run: Run) -> Value:
            run.charge(1, position)
            return function(run, position, tuple(one(run) for one in arguments))

        return call

    @staticmethod
    def _has(inner: Code, field: str, position: int) -> Code:
        def has(run: Run) -> Value:
            run.charge(1, position)
            value = inner(run)
            if not is_map(value):
                raise ExpressionError(f"has() is for maps, not for {a_kind(value)}", position)
            return field in value

        return has

    # -- members -----------------------------------------------------------------------------------------------------

    @staticmethod
    def _member(root: Code, steps: list[StepCode]) -> Code:
        def follow(run: Run) -> Value:
            value = root(run)
            for step in steps:
                value = step(run, value)
            return value

        return follow

    def _step(self, step: Step) -> StepCode:
        match step:
            case Field(name, position):
                return lambda run, value: _field(run, value, name, position)
            case Index(index, position):
                code = self.code(index)
                return lambda run, value: _element(run, value, code(run), position)
            case Method(name, arguments, position):
                return self._method(name, [self.code(one) for one in arguments], position)
            case Macro():
                return self._macro(step)

    @staticmethod
    def _method(name: str, arguments: list[Code], position: int) -> StepCode:
        counts, function = _function(METHODS, name, position)
        _check_count(name, {count - 1 for count in counts}, len(arguments), position)

        def call(run: Run, value: Value) -> Value:
            run.charge(1, position)
            return function(run, position, (value, *[one(run) for one in arguments]))

        return call

    def _macro(self, macro: Macro) -> StepCode:
        """The variable hides a name of the same spelling while the macro's own arguments are read."""
        slot, outer = self._depth, self._scope
        self.slots = max(self.slots, slot + 1)
        self._depth, self._scope = slot + 1, {**outer, macro.variable: slot}
        codes = [self.code(one) for one in macro.arguments]
        self._depth, self._scope = slot, outer
        return MACRO_CODE[macro.name](slot, codes, macro.position)

    # -- operators ---------------------------------------------------------------------------------------------------

    @staticmethod
    def _unary(sign: str, count: int, operand: Code, position: int) -> Code:
        def negated(run: Run) -> Value:
            run.charge(count, position)
            value = operand(run)
            if type(value) is int:
                for _ in range(count):
                    value = checked_int(-value, position)
                return value
            if isinstance(value, float):
                return -value if count % 2 else value
            raise ExpressionError(f"- is not defined for {a_kind(value)}", position)

        def inverted(run: Run) -> Value:
            run.charge(count, position)
            value = operand(run)
            if isinstance(value, bool):
                return value if count % 2 == 0 else not value
            raise ExpressionError(f"! is not defined for {a_kind(value)}", position)

        return negated if sign == "-" else inverted

    @staticmethod
    def _chain(first: Code, rest: list[tuple[Callable[[Value, Value, Run, int], Value], Code, int]]) -> Code:
        def follow(run: Run) -> Value:
            value = first(run)
            for operator, code, position in rest:
                run.charge(1, position)
                value = operator(value, code(run), run, position)
            return value

        return follow

    @staticmethod
    def _conditional(condition: Code, yes: Code, no: Code, position: int) -> Code:
        def choose(run: Run) -> Value:
            run.charge(1, position)
            value = condition(run)
            if not isinstance(value, bool):
                raise ExpressionError(f"the condition of ?: is a bool, not {a_kind(value)}", position)
            return yes(run) if value else no(run)

        return choose


def _function(table: dict[str, Signature], name: str, position: int) -> Signature:
    if name in table:
        return table[name]
    kind, other = ("function", "a method") if table is GLOBAL else ("method", "a function")
    if name in (METHODS if table is GLOBAL else GLOBAL):
        raise ExpressionError(f"{name} is {other} here", position)
    near = get_close_matches(name, table if table is GLOBAL else [*MACRO_CODE, *table], 1)
    raise ExpressionError(f"there is no {kind} {name!r}" + (f"; did you mean {near[0]}?" if near else ""), position)


def _check_count(name: str, counts: set[int] | frozenset[int], given: int, position: int) -> None:
    if given not in counts:
        low, high = min(counts), max(counts)
        wanted = str(low) if low == high else f"{low} to {high}"
        raise ExpressionError(f"{name} takes {wanted} argument{'' if wanted == '1' else 's'}, not {given}", position)


def _field(run: Run, value: Value, name: str, position: int) -> Value:
    run.charge(1, position)
    if type(value) is dict or is_map(value):
        try:
            return value[name]
        except KeyError:
            near = get_close_matches(name, [key for key in list(value)[:200] if isinstance(key, str)], 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ExpressionError(f"there is no field {name!r}{hint}", position) from None
    raise ExpressionError(f"{a_kind(value)} has no field {name!r}", position)


def _element(run: Run, value: Value, index: Value, position: int) -> Value:
    run.charge(1, position)
    if isinstance(value, list | tuple):
        if isinstance(index, float) and index.is_integer():
            index = int(index)
        if type(index) is not int:
            raise ExpressionError(f"the index of a list is an int, not {a_kind(index)}", position)
        if not 0 <= index < len(value):
            raise ExpressionError(f"the list has {len(value)} elements, there is no [{index}]", position)
        return value[index]
    if is_map(value):
        if not isinstance(index, str):
            raise ExpressionError(f"the key of a map is a string, not {a_kind(index)}", position)
        if index not in value:
            raise ExpressionError(f"there is no key {index[:64]!r}", position)
        return value[index]
    raise ExpressionError(f"{a_kind(value)} has no elements", position)


def _logic(wanted: bool, operands: list[Code], position: int) -> Code:
    """`||` (wanted: true) and `&&` (false): the wanted value decides, also beside an operand that fails."""
    sign = "||" if wanted else "&&"

    def decide(run: Run) -> Value:
        failure: ExpressionError | None = None
        for operand in operands:
            run.charge(1, position)
            try:
                value = operand(run)
                if not isinstance(value, bool):
                    raise ExpressionError(f"{sign} is not defined for {a_kind(value)}", position)
            except ExpressionCostError:
                raise
            except ExpressionError as error:
                failure = failure or error
                continue
            if value is wanted:
                return wanted
        if failure is not None:
            raise failure
        return not wanted

    return decide
