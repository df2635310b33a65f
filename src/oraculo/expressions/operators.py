"""`+ - * / %` and `in`, with what each costs."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta

from oraculo.errors import ExpressionError
from oraculo.expressions.values import (
    Run,
    Value,
    before,
    checked_int,
    checked_length,
    equal,
    is_map,
    no_overload,
)

Operator = Callable[[Value, Value, Run, int], Value]


def _plain_int(value: Value) -> bool:
    return type(value) is int


def _plus(left: Value, right: Value, run: Run, position: int) -> Value:
    if _plain_int(left) and _plain_int(right):
        return checked_int(left + right, position)
    if isinstance(left, str) and isinstance(right, str):
        run.charge_text(len(left) + len(right), position)
        return left + right
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        run.charge(len(left) + len(right), position)
        return [*left, *right]
    if isinstance(left, float) and isinstance(right, float):
        return left + right
    return _shifted(left, right, "+", position)


def _minus(left: Value, right: Value, run: Run, position: int) -> Value:
    if _plain_int(left) and _plain_int(right):
        return checked_int(left - right, position)
    if isinstance(left, float) and isinstance(right, float):
        return left - right
    if isinstance(left, datetime) and isinstance(right, datetime):
        return checked_length(left - right, position)
    if isinstance(right, timedelta):
        return _shifted(left, -right, "-", position, right)
    raise no_overload("-", left, right, position)


def _shifted(left: Value, right: Value, sign: str, position: int, shown: Value = None) -> Value:
    """An instant or a duration, moved by a duration."""
    if isinstance(left, timedelta) and isinstance(right, datetime):
        left, right = right, left
    if not isinstance(left, datetime | timedelta) or not isinstance(right, timedelta):
        raise no_overload(sign, left, right if shown is None else shown, position)
    try:
        moved = left + right
    except OverflowError:
        raise ExpressionError("an instant is beyond the years 1 to 9999", position) from None
    return checked_length(moved, position) if isinstance(moved, timedelta) else moved


def _times(left: Value, right: Value, run: Run, position: int) -> Value:
    if _plain_int(left) and _plain_int(right):
        return checked_int(left * right, position)
    if isinstance(left, float) and isinstance(right, float):
        return left * right
    raise no_overload("*", left, right, position)


def _divided(left: Value, right: Value, run: Run, position: int) -> Value:
    """Whole numbers are cut towards zero; doubles follow IEEE 754."""
    if _plain_int(left) and _plain_int(right):
        if right == 0:
            raise ExpressionError("division by zero", position)
        whole = abs(left) // abs(right)
        return checked_int(whole if (left < 0) == (right < 0) else -whole, position)
    if isinstance(left, float) and isinstance(right, float):
        if right != 0:
            return left / right
        if left == 0 or math.isnan(left):
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1.0, right)
    raise no_overload("/", left, right, position)


def _rest(left: Value, right: Value, run: Run, position: int) -> Value:
    if _plain_int(left) and _plain_int(right):
        if right == 0:
            raise ExpressionError("division by zero", position)
        rest = abs(left) % abs(right)
        return -rest if left < 0 else rest
    raise no_overload("%", left, right, position)


def _in(left: Value, right: Value, run: Run, position: int) -> bool:
    if isinstance(right, list | tuple):
        run.charge(len(right), position)
        return any(equal(left, item, run, position) for item in right)
    if is_map(right):
        return isinstance(left, str) and left in right
    raise no_overload("in", left, right, position)


def _relation(sign: str) -> Operator:
    def compared(left: Value, right: Value, run: Run, position: int) -> bool:
        return before(left, right, sign, run, position)

    return compared


OPERATORS: dict[str, Operator] = {
    "+": _plus,
    "-": _minus,
    "*": _times,
    "/": _divided,
    "%": _rest,
    "in": _in,
    "==": equal,
    "!=": lambda left, right, run, position: not equal(left, right, run, position),
    **{sign: _relation(sign) for sign in ("<", "<=", ">", ">=")},
}
