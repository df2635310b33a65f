"""Calendars: the instants of a cron expression in a time zone, by cronsim, or of an interval.

Cron follows Debian's: a fixed time that a change of the clocks leaves out is at the first minute after it, one that
comes twice counts once, the first time; expressions whose minute or hour begins with `*` go by elapsed time. Intervals
are counted from 1970-01-01T00:00:00Z, so they are the same in every process and after every change.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from oraculo.core.schedules import NextInstant
from oraculo.wire.schedules import Agenda

CRON_FIELDS = 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_YEAR = 9000  # beyond it datetime ends


def calendar_of(agenda: Agenda) -> NextInstant:
    """The calendar of a schedule whose document has no fault."""
    if agenda.intervalo_s is not None:
        return interval_calendar(agenda.intervalo_s)
    return cron_calendar(agenda.cron or "", agenda.fuso)


def calendar_fault(agenda: Agenda) -> tuple[str, str] | None:
    """The field of a document that makes no calendar, and why; None when there is none."""
    wrong = None if agenda.cron is None else cron_fault(agenda.cron)
    if wrong is not None:
        return "cron", wrong
    wrong = zone_fault(agenda.fuso)
    return None if wrong is None else ("fuso", wrong)


def cron_fault(expression: str) -> str | None:
    """What is wrong with a cron expression; None: nothing."""
    if len(expression.split()) != CRON_FIELDS:
        return f"{expression[:100]!r} has {len(expression.split())} fields; minute hour day month weekday are needed"
    try:
        next(CronSim(expression, _EPOCH))
    except (CronSimError, StopIteration) as error:
        return f"{expression[:100]!r} is no cron expression: {error or 'it never happens'}"
    return None


def zone_fault(name: str) -> str | None:
    """What is wrong with the name of a time zone; None: nothing."""
    return None if name in available_timezones() else f"{name[:100]!r} is no time zone; America/Sao_Paulo and UTC are"


def cron_calendar(expression: str, zone: str) -> NextInstant:
    """The instants of a cron expression in a time zone."""
    here = ZoneInfo(zone)

    def following(after: datetime) -> datetime | None:
        if after.year >= _LAST_YEAR:
            return None
        local = after.astimezone(here) if zone != "UTC" else after.astimezone(UTC)
        for found in CronSim(expression, local):
            utc = found.astimezone(UTC)
            if utc > after:  # in the hour that comes twice, a fixed time may lie in its first pass
                return utc
        return None

    return following


def interval_calendar(seconds: int) -> NextInstant:
    """The instants of an interval."""
    step = timedelta(seconds=seconds)

    def following(after: datetime) -> datetime | None:
        return None if after.year >= _LAST_YEAR else _EPOCH + ((after - _EPOCH) // step + 1) * step

    return following
