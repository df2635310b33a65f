"""From one type to another, and the size of a value."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta

from oraculo.errors import ExpressionError
from oraculo.expressions.functions.registry import function, method, wrong
from oraculo.expressions.lexer import INT_MAX, INT_MIN
from oraculo.expressions.output import double_text
from oraculo.expressions.values import Run, Value, checked_int, instant_text, is_map, length_text


@function("size", 1)
@method("size", 1)
def _size(run: Run, position: int, given: tuple[Value, ...]) -> int:
    value = given[0]
    if isinstance(value, str | list | tuple) or is_map(value):
        return len(value)
    raise wrong("size", given, position)


@function("dyn", 1)
def _dyn(run: Run, position: int, given: tuple[Value, ...]) -> Value:
    return given[0]


@function("int", 1)
def _int(run: Run, position: int, given: tuple[Value, ...]) -> int:
    value = given[0]
    match value:
        case bool():
            pass
        case int():
            return checked_int(value, position)
        case float():
            if not math.isfinite(value) or not INT_MIN < value < INT_MAX:
                raise ExpressionError("int: the double is beyond 64 bits", position)
            return checked_int(int(value), position)
        case str():
            run.charge_text(len(value), position)
            if re.fullmatch(r"[+-]?[0-9]{1,20}", value):
                return checked_int(int(value), position)
            raise ExpressionError(f"int: {value[:64]!r} is no whole number", position)
        case datetime():
            return math.floor(value.timestamp())
    raise wrong("int", given, position)


@function("double", 1)
def _double(run: Run, position: int, given: tuple[Value, ...]) -> float:
    value = given[0]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        run.charge_text(len(value), position)
        if re.fullmatch(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?|NaN|[+-]?Inf(?:inity)?", value):
            return float(value)
        raise ExpressionError(f"double: {value[:64]!r} is no number", position)
    raise wrong("double", given, position)


@function("string", 1)
def _string(run: Run, position: int, given: tuple[Value, ...]) -> str:
    value = given[0]
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return double_text(value)
        case datetime():
            return instant_text(value)
        case timedelta():
            return length_text(value)
    raise wrong("string", given, position)


_BOOLS = {
    word: said
    for said, words in ((True, "1 t true True TRUE"), (False, "0 f false False FALSE"))
    for word in words.split()
}


@function("bool", 1)
def _bool(run: Run, position: int, given: tuple[Value, ...]) -> bool:
    value = given[0]
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        if value in _BOOLS:
            return _BOOLS[value]
        raise ExpressionError(f"bool: {value[:64]!r} is neither true nor false", position)
    raise wrong("bool", given, position)
