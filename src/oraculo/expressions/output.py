"""What comes out of an expression: as JSON, or as text between other text. Weighed before it is written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import orjson

from oraculo.errors import ExpressionError
from oraculo.expressions.values import Value, instant_text, length_text

VALUE_MAX_BYTES = 1024 * 1024


def as_json(value: Value, max_bytes: int = VALUE_MAX_BYTES) -> Any:
    """The value with nothing in it but what JSON can say: instants and durations as text. ExpressionError when it
    would be larger than `max_bytes`, or has a number that JSON cannot write. Parts that occur often are weighed each
    time, and the walk stops at the limit."""
    return _Weigher(max_bytes).plain(value)


def as_text(value: Value, max_bytes: int = VALUE_MAX_BYTES) -> str:
    """As it stands between other text: null is nothing, lists and maps are compact JSON."""
    plain = as_json(value, max_bytes)
    match plain:
        case None:
            return ""
        case str():
            return plain
        case bool():
            return "true" if plain else "false"
        case float():
            return double_text(plain)
        case int():
            return str(plain)
        case _:
            return orjson.dumps(plain).decode()


def double_text(value: float) -> str:
    """As CEL writes doubles: whole ones without a point."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    text = repr(value)
    if "e" in text:
        digits, _, exponent = text.partition("e")
        return f"{digits}e{exponent[0] if exponent[0] in '+-' else '+'}{exponent.lstrip('+-').rjust(2, '0')}"
    return text.removesuffix(".0")


class _Weigher:
    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._left = max_bytes

    def plain(self, value: Value) -> Any:
        match value:
            case None | bool() | int():
                self._weigh(4)
                return value
            case str():
                self._weigh(len(value) + 2)
                return value
            case float():
                self._weigh(8)
                if not math.isfinite(value):
                    raise ExpressionError(f"{double_text(value)} cannot be written as JSON", 0)
                return value
            case datetime():
                return self.plain(instant_text(value))
            case timedelta():
                return self.plain(length_text(value))
            case Mapping():
                self._weigh(2)
                return {key: self._entry(key, value[key]) for key in value}
            case _:
                self._weigh(2)
                return [self._item(item) for item in value]

    def _entry(self, key: str, value: Value) -> Any:
        self._weigh(len(key) + 4)
        return self.plain(value)

    def _item(self, value: Value) -> Any:
        self._weigh(1)
        return self.plain(value)

    def _weigh(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise ExpressionError(f"the value is larger than {self._max} bytes", 0)
