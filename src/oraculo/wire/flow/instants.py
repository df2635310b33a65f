"""Instants on the wire of Fluxo C: epoch milliseconds, or ISO 8601 text from those who write JSON by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST = 253_402_300_799_999  # the last millisecond of the year 9999


def milliseconds(at: datetime) -> int:
    return (at - EPOCH) // timedelta(milliseconds=1)


def optional(at: datetime | None) -> int | None:
    return None if at is None else milliseconds(at)


def instant(value: Any) -> datetime:
    """ValueError for what is neither. A text without a zone is UTC."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is int and 0 <= value <= LAST:
        return EPOCH + timedelta(milliseconds=value)
    if isinstance(value, str):
        try:
            at = datetime.fromisoformat(value)
            return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise ValueError("epoch milliseconds, or ISO 8601 like 2025-10-14T12:00:00Z")
