"""The table of functions, and how one is put into it."""

from __future__ import annotations

from collections.abc import Callable

from oraculo.errors import ExpressionError
from oraculo.expressions.values import Run, Value, kind_of

Function = Callable[[Run, int, tuple[Value, ...]], Value]  # run, position, arguments
Signature = tuple[frozenset[int], Function]  # how many arguments it may have

GLOBAL: dict[str, Signature] = {}
METHODS: dict[str, Signature] = {}  # the receiver counts as the first argument


def function(name: str, *counts: int) -> Callable[[Function], Function]:
    """Register what is called as `name(…)`."""

    def add(made: Function) -> Function:
        GLOBAL[name] = frozenset(counts), made
        return made

    return add


def method(name: str, *counts: int) -> Callable[[Function], Function]:
    """Register what is called as `value.name(…)`."""

    def add(made: Function) -> Function:
        METHODS[name] = frozenset(counts), made
        return made

    return add


def wrong(name: str, given: tuple[Value, ...], position: int) -> ExpressionError:
    """The error for arguments of these types."""
    return ExpressionError(f"{name} is not defined for {', '.join(kind_of(one) for one in given)}", position)


def text_of(name: str, value: Value, given: tuple[Value, ...], position: int) -> str:
    if not isinstance(value, str):
        raise wrong(name, given, position)
    return value


def list_of(name: str, value: Value, given: tuple[Value, ...], position: int) -> list[Value]:
    if not isinstance(value, list | tuple):
        raise wrong(name, given, position)
    return list(value) if isinstance(value, tuple) else value


def whole_of(name: str, value: Value, given: tuple[Value, ...], position: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong(name, given, position)
    return value
