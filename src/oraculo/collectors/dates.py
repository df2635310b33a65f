"""Instants as feeds write them, and back as the wire wants them.

Feeds use RFC 822 (RSS) and ISO 8601 (Atom, Dublin Core), often without a zone; a missing zone is read as UTC.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime

_PERIOD = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")


def parse_instant(value: str) -> datetime | None:
    """An aware UTC instant, or None when the text is no date."""
    text = value.strip()
    if not text:
        return None
    instant = _iso(text) or _rfc822(text)
    if instant is None:
        return None
    if instant.tzinfo is None:
        return instant.replace(tzinfo=UTC)
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        return None


def iso_z(instant: datetime) -> str:
    """ISO 8601 in UTC to the second: `2025-10-14T12:00:00Z`."""
    return instant.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def is_period(value: str) -> bool:
    """Whether the text is a year, a month or a day: `2025`, `2025-10`, `2025-10-14`."""
    if not _PERIOD.fullmatch(value):
        return False
    try:
        date.fromisoformat((value + "-01-01")[:10])
    except ValueError:
        return False
    return True


def in_period(instant: datetime | None, period: str | None) -> bool:
    """Whether the instant falls, in UTC, in the period; what has no date is in no period."""
    if period is None:
        return True
    return instant is not None and iso_z(instant).startswith(period)


def _iso(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _rfc822(text: str) -> datetime | None:
    try:
        return parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
