"""The values of expressions: what each is called, when two are equal, which comes first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from oraculo.errors import ExpressionCostError, ExpressionError
from oraculo.expressions.lexer import INT_MAX, INT_MIN

CHARS_PER_UNIT = 32

Value = Any  # None, bool, int, float, str, list, Mapping with text keys, datetime (aware), timedelta


class Run:
    """One evaluation: the values by name, the variables of macros, and the units that are left."""

    __slots__ = ("left", "names", "slots")

    def __init__(self, names: Mapping[str, Value], units: int, slots: int) -> None:
        self.names = names
        self.left = units
        self.slots: list[Value] = [None] * slots

    def charge(self, units: int, position: int) -> None:
        """Take units off; ExpressionCostError when there are not enough."""
        self.left -= units
        if self.left < 0:
            raise ExpressionCostError("the evaluation costs too much", position)

    def charge_text(self, characters: int, position: int) -> None:
        self.charge(1 + characters // CHARS_PER_UNIT, position)


def kind_of(value: Value) -> str:
    """The name of a value's type, as users of CEL know it."""
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int():
            return "int"
        case float():
            return "double"
        case str():
            return "string"
        case list() | tuple():
            return "list"
        case datetime():
            return "timestamp"
        case timedelta():
            return "duration"
        case _:
            return "map"


def a_kind(value: Value) -> str:
    """The same with its article."""
    kind = kind_of(value)
    return f"an {kind}" if kind == "int" else f"a {kind}"


def is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_map(value: Value) -> bool:
    return type(value) is dict or isinstance(value, Mapping)


def checked_int(value: int, position: int) -> int:
    """ExpressionError beyond 64 bits."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise ExpressionError("an integer is beyond 64 bits", position)


def equal(left: Value, right: Value, run: Run, position: int) -> bool:
    """Numbers are equal by value whatever their type; values of different types are not equal."""
    if isinstance(left, bool) or isinstance(right, bool):
        return isinstance(left, bool) and isinstance(right, bool) and left is right
    if isinstance(left, int | float):
        return isinstance(right, int | float) and left == right
    if isinstance(left, str):
        if not isinstance(right, str):
            return False
        run.charge(min(len(left), len(right)) // CHARS_PER_UNIT, position)
        return left == right
    if isinstance(left, list | tuple):
        if not isinstance(right, list | tuple) or len(left) != len(right):
            return False
        run.charge(len(left), position)
        return all(equal(a, b, run, position) for a, b in zip(left, right, strict=True))
    if is_map(left):
        if not is_map(right) or len(left) != len(right):
            return False
        run.charge(len(left), position)
        return all(key in right and equal(left[key], right[key], run, position) for key in left)
    return type(left) is type(right) and bool(left == right)


def before(left: Value, right: Value, sign: str, run: Run, position: int) -> bool:
    """`left < right` and its relatives, among numbers and within one type."""
    if is_number(left) and is_number(right):
        pass
    elif isinstance(left, str) and isinstance(right, str):
        run.charge(min(len(left), len(right)) // CHARS_PER_UNIT, position)
    elif type(left) is not type(right) or not isinstance(left, bool | datetime | timedelta):
        raise no_overload(sign, left, right, position)
    match sign:
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
        case _:
            return bool(left >= right)


def no_overload(sign: str, left: Value, right: Value, position: int) -> ExpressionError:
    kinds = kind_of(left), kind_of(right)
    hint = "; convert with double(…) or int(…)" if set(kinds) == {"int", "double"} else ""
    return ExpressionError(f"{sign} is not defined for {kinds[0]} and {kinds[1]}{hint}", position)


# -- instants and lengths of time ------------------------------------------------------------------------------------

_INSTANT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)
_PIECE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(h|ms|m|s|us|µs|ns)", re.ASCII)
_MICROSECONDS = {"h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1_000, "us": 1, "µs": 1, "ns": 0.001}
DURATION_MAX = timedelta(microseconds=(2**63 - 1) // 1000)  # 64 bits of nanoseconds, as elsewhere


def instant(text: str, position: int) -> datetime:
    """RFC 3339 with a zone; what is finer than microseconds is cut off."""
    found = _INSTANT.fullmatch(text)
    try:
        if found is None:
            raise ValueError
        year, month, day, hour, minute, second = (int(one) for one in found.groups()[:6])
        micro = int((found[7] or "0").ljust(9, "0")[:6])
        at = datetime(year, month, day, hour, minute, second, micro, UTC)
        if found[8]:
            away = timedelta(hours=int(found[9]), minutes=int(found[10]))
            at = at - away if found[8] == "+" else at + away
        return at
    except (ValueError, OverflowError):
        raise ExpressionError(f"{text[:64]!r} is no instant such as 2026-01-31T08:30:00Z", position) from None


def instant_text(at: datetime) -> str:
    at = at.astimezone(UTC)
    fraction = f".{at.microsecond:06d}".rstrip("0") if at.microsecond else ""
    return f"{at.year:04d}-{at.month:02d}-{at.day:02d}T{at.hour:02d}:{at.minute:02d}:{at.second:02d}{fraction}Z"


def length(text: str, position: int) -> timedelta:
    """`1h30m`, `1.5s`, `-250ms`."""
    body = text[1:] if text[:1] in ("-", "+") else text
    pieces = _PIECE.findall(body)
    if body != "0" and (not pieces or "".join(a + b for a, b in pieces) != body):
        raise ExpressionError(f"{text[:64]!r} is no duration such as 1h30m or 2.5s", position)
    try:
        total = timedelta(microseconds=sum(_micro(number, unit) for number, unit in pieces))
    except OverflowError:
        raise ExpressionError(f"{text[:64]!r} is longer than a duration may be", position) from None
    return checked_length(-total if text.startswith("-") else total, position)


def _micro(number: str, unit: str) -> int:
    whole, _, part = number.partition(".")
    scale = _MICROSECONDS[unit]
    return int(int(whole or 0) * scale) + int(float(f"0.{part or 0}") * scale + 0.5)


def checked_length(value: timedelta, position: int) -> timedelta:
    if abs(value) > DURATION_MAX:
        raise ExpressionError("a duration is beyond 292 years", position)
    return value


def length_text(value: timedelta) -> str:
    micro = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    whole, part = divmod(abs(micro), 1_000_000)
    fraction = f".{part:06d}".rstrip("0") if part else ""
    return f"{'-' if micro < 0 else ''}{whole}{fraction}s"
