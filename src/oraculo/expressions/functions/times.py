"""Functions of instants and durations."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from oraculo.errors import ExpressionError
from oraculo.expressions.functions.registry import function, method, text_of, wrong
from oraculo.expressions.values import Run, Value, instant, length


@function("timestamp", 1)
def _timestamp(run: Run, position: int, given: tuple[Value, ...]) -> datetime:
    value = given[0]
    match value:
        case datetime():
            return value
        case str():
            return instant(value, position)
        case bool():
            pass
        case int():
            try:
                return datetime.fromtimestamp(value, UTC)
            except (OverflowError, OSError, ValueError):
                raise ExpressionError(f"timestamp: {value} is beyond the years 1 to 9999", position) from None
    raise wrong("timestamp", given, position)


@function("duration", 1)
def _duration(run: Run, position: int, given: tuple[Value, ...]) -> timedelta:
    value = given[0]
    if isinstance(value, timedelta):
        return value
    return length(text_of("duration", value, given, position), position)


_OFFSET = re.compile(r"([+-]?)([0-9]{2}):([0-9]{2})")


def _local(name: str, given: tuple[Value, ...], position: int) -> datetime:
    """The instant as a clock in its second argument's zone shows it: a name such as America/Sao_Paulo, or +02:00."""
    at: datetime = given[0]
    if len(given) == 1:
        return at.astimezone(UTC)
    zone = text_of(name, given[1], given, position)
    try:
        if found := _OFFSET.fullmatch(zone):
            away = timedelta(hours=int(found[2]), minutes=int(found[3]))
            return at.astimezone(UTC).replace(tzinfo=None) + (-away if found[1] == "-" else away)
        return at.astimezone(ZoneInfo(zone))
    except (KeyError, ValueError, OSError, OverflowError):
        raise ExpressionError(f"{name}: {zone[:64]!r} is no time zone", position) from None


def _of_instants(name: str, read: Callable[[datetime], int], length_unit: timedelta | None = None) -> None:
    """A part of an instant; of a duration, how many whole `length_unit` it has."""

    def made(run: Run, position: int, given: tuple[Value, ...]) -> int:
        value = given[0]
        if isinstance(value, datetime):
            return read(_local(name, given, position))
        if isinstance(value, timedelta) and length_unit is not None and len(given) == 1:
            whole = abs(value) // length_unit
            return -whole if value < timedelta(0) else whole
        raise wrong(name, given, position)

    method(name, 1, 2)(made)


_of_instants("getFullYear", lambda at: at.year)
_of_instants("getMonth", lambda at: at.month - 1)
_of_instants("getDate", lambda at: at.day)
_of_instants("getDayOfMonth", lambda at: at.day - 1)
_of_instants("getDayOfWeek", lambda at: at.isoweekday() % 7)
_of_instants("getDayOfYear", lambda at: at.timetuple().tm_yday - 1)
_of_instants("getHours", lambda at: at.hour, timedelta(hours=1))
_of_instants("getMinutes", lambda at: at.minute, timedelta(minutes=1))
_of_instants("getSeconds", lambda at: at.second, timedelta(seconds=1))


@method("getMilliseconds", 1, 2)
def _milliseconds(run: Run, position: int, given: tuple[Value, ...]) -> int:
    """The part of a second, of instants and of durations."""
    value = given[0]
    if isinstance(value, datetime):
        return _local("getMilliseconds", given, position).microsecond // 1000
    if isinstance(value, timedelta) and len(given) == 1:
        part = abs(value) % timedelta(seconds=1) // timedelta(milliseconds=1)
        return -part if value < timedelta(0) else part
    raise wrong("getMilliseconds", given, position)
