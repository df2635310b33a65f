"""Instants as whole microseconds since 1970, which is how the databases keep them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_micros(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND


def to_micros_or_none(at: datetime | None) -> int | None:
    return None if at is None else to_micros(at)


def from_micros(value: int) -> datetime:
    return _EPOCH + timedelta(microseconds=value)


def from_micros_or_none(value: int | None) -> datetime | None:
    return None if value is None else from_micros(value)
