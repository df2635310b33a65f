"""One compiled expression: which names it uses, whether it is only a path, and its value."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

from oraculo.errors import ExpressionError
from oraculo.expressions.compiler import Compiler
from oraculo.expressions.macros import Code
from oraculo.expressions.parser import NAMESPACES, parse
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
from oraculo.expressions.values import Run, Value

EVALUATION_MAX_UNITS = 1_000_000
INLINE_MAX_UNITS = 20_000  # what may be spent beside other work on an event loop, some milliseconds
COMPILED_KEPT = 4096


@dataclass(frozen=True, slots=True)
class Use:
    """One place where a name is used; `field` is the first one that is asked of it, "" when it is used whole. `path`
    are the fields and constant indexes behind the name, as far as they are plain."""

    name: str
    field: str
    position: int
    field_position: int
    path: tuple[str | int, ...] = ()


class Expression:
    """`uses`: every place where a name from outside is used. `reference`: name and path when the expression is nothing
    but a path of fields and constant indexes (`videos.dados[0].titulo`), else None."""

    def __init__(self, source: str) -> None:
        self.source = source
        try:
            tree = parse(source)
            compiler = Compiler()
            self._code: Code = compiler.code(tree)
        except ExpressionError as error:
            error.source = source
            raise
        self._slots = compiler.slots
        self.uses: tuple[Use, ...] = tuple(_uses(tree, frozenset()))
        self.names: frozenset[str] = frozenset(use.name for use in self.uses)
        self.reference: tuple[str | int, ...] | None = _reference(tree)

    def __repr__(self) -> str:
        return f"Expression({self.source!r})"

    def check(self, known: Collection[str]) -> None:
        """ExpressionError when the expression uses a name that is not among `known`."""
        for use in self.uses:
            if use.name not in known:
                near = get_close_matches(use.name, known, 1)
                hint = f"did you mean {near[0]!r}? " if near else ""
                there = ", ".join(sorted(known)) or "none"
                raise ExpressionError(f"there is no {use.name!r} here; {hint}known: {there}", use.position, self.source)

    def evaluate(self, names: Mapping[str, Value], units: int = EVALUATION_MAX_UNITS) -> Value:
        """The value over these names. ExpressionError when there is none, ExpressionCostError when it would need more
        than `units`: evaluating anew with more is harmless."""
        return self.measured(names, units)[0]

    def measured(self, names: Mapping[str, Value], units: int = EVALUATION_MAX_UNITS) -> tuple[Value, int]:
        """The value, and the units that it took."""
        run = Run(names, units, self._slots)
        try:
            return self._code(run), units - run.left
        except ExpressionError as error:
            error.source = self.source
            raise
        except RecursionError:
            raise ExpressionError("the values are nested too deeply", 0, self.source) from None


@lru_cache(maxsize=COMPILED_KEPT)
def compile_expression(source: str) -> Expression:
    """The expression, compiled once for each text. ExpressionError with the position of what is wrong."""
    return Expression(source)


def _uses(node: Node, bound: frozenset[str]) -> Iterator[Use]:
    match node:
        case Literal():
            pass
        case Name(name, position):
            if name not in bound:
                yield Use(name, "", position, position)
        case ListOf(items):
            for item in items:
                yield from _uses(item, bound)
        case MapOf(entries):
            for key, value in entries:
                yield from _uses(key, bound)
                yield from _uses(value, bound)
        case Call(_, arguments):
            for one in arguments:
                yield from _uses(one, bound)
        case Has(inner, field, position, _):
            if isinstance(inner, Name) and inner.name not in bound:
                yield Use(inner.name, field, inner.position, position, (field,))
            else:
                yield from _uses(inner, bound)
        case Unary(_, _, operand):
            yield from _uses(operand, bound)
        case Chain(first, rest):
            yield from _uses(first, bound)
            for _, operand, _ in rest:
                yield from _uses(operand, bound)
        case Logic(_, operands):
            for operand in operands:
                yield from _uses(operand, bound)
        case Conditional(condition, yes, no):
            for one in (condition, yes, no):
                yield from _uses(one, bound)
        case Member():
            yield from _member_uses(node, bound)


def _member_uses(node: Member, bound: frozenset[str]) -> Iterator[Use]:
    root, first = node.root, node.steps[0]
    if isinstance(root, Name) and root.name not in bound and isinstance(first, Field):
        yield Use(root.name, first.name, root.position, first.position, _plain(node.steps))
    else:
        yield from _uses(root, bound)
    for step in node.steps:
        match step:
            case Index(index):
                yield from _uses(index, bound)
            case Method(_, arguments):
                for one in arguments:
                    yield from _uses(one, bound)
            case Macro(_, variable, arguments):
                for one in arguments:
                    yield from _uses(one, bound | {variable})
            case Field():
                pass


def _reference(tree: Node) -> tuple[str | int, ...] | None:
    if isinstance(tree, Name):
        return (tree.name,)
    if not isinstance(tree, Member) or not isinstance(tree.root, Name) or tree.root.name in NAMESPACES:
        return None
    path = _plain(tree.steps)
    return (tree.root.name, *path) if len(path) == len(tree.steps) else None


def _plain(steps: tuple[Step, ...]) -> tuple[str | int, ...]:
    """The fields and constant indexes that the steps begin with."""
    path: list[str | int] = []
    for step in steps:
        match step:
            case Field(name):
                path.append(name)
            case Index(Literal(str() | int() as key)) if not isinstance(key, bool):
                path.append(key)
            case _:
                break
    return tuple(path)
