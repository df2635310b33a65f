"""Error budgets and burn rates of an objective, from minutes with counts of good and bad ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from oraculo.core.sla.slo import Slo

MINUTES_PER_HOUR = 60
CRITICAL_SHARE = 0.2  # of the budget, with which it is critical unless another is set
EVENTS_NEEDED = 10  # in the long window of a pair, before it fires


class BudgetStatus(StrEnum):
    """By the share of the budget that is left: more than 50 %, 20 % (or what is set), 10 %, less; unknown while nothing
    has ended."""

    UNKNOWN = "UNKNOWN"
    HEALTHY = "HEALTHY"
    WARNING = "WARNING"
    CRITICAL = "CRITICAL"
    EXHAUSTED = "EXHAUSTED"


LOW_STATUSES = (BudgetStatus.CRITICAL, BudgetStatus.EXHAUSTED)


class BurnLevel(StrEnum):
    NORMAL = "NORMAL"
    ELEVATED = "ELEVATED"
    FAST = "FAST"
    CRITICAL = "CRITICAL"


@dataclass(frozen=True, slots=True)
class Pair:
    """A long window that says it is so, and a short one that says it is still so. Fires above `rate` in both."""

    name: str
    long: timedelta
    short: timedelta
    rate: float
    severity: str


PAIRS = (  # as the SRE workbook has them
    Pair("1h", timedelta(hours=1), timedelta(minutes=5), 14.4, "CRITICAL"),
    Pair("6h", timedelta(hours=6), timedelta(minutes=30), 6.0, "CRITICAL"),
    Pair("3d", timedelta(days=3), timedelta(hours=6), 1.0, "WARNING"),
)
SHOWN_HOURS = (1, 6, 24)
_LEVELS = ((14.4, BurnLevel.CRITICAL), (6.0, BurnLevel.FAST), (2.0, BurnLevel.ELEVATED))


@dataclass(frozen=True, slots=True)
class Count:
    good: int = 0
    bad: int = 0

    @property
    def total(self) -> int:
        return self.good + self.bad

    @property
    def error_ratio(self) -> float | None:
        """None while nothing has ended: no data is not the same as good."""
        return self.bad / self.total if self.total else None


def minute_of(at: datetime) -> int:
    return int(at.timestamp()) // 60


@dataclass(slots=True)
class Minutes:
    """Counts of each minute, by hours. `changed` are hours that were added to since it was last emptied."""

    hours: dict[int, dict[int, list[int]]] = field(default_factory=dict)
    changed: set[int] = field(default_factory=set)

    def add(self, at: datetime, good: bool) -> None:
        hour, minute = divmod(minute_of(at), MINUTES_PER_HOUR)
        self.hours.setdefault(hour, {}).setdefault(minute, [0, 0])[0 if good else 1] += 1
        self.changed.add(hour)

    def within(self, window: timedelta, now: datetime) -> Count:
        """What ended within a window up to now, in whole minutes."""
        last = minute_of(now)
        first = last - int(window.total_seconds()) // 60 + 1
        good = bad = 0
        for hour, minutes in self.hours.items():
            begin = hour * MINUTES_PER_HOUR
            if begin + MINUTES_PER_HOUR <= first or begin > last:
                continue
            for minute, (well, badly) in minutes.items():
                if first <= begin + minute <= last:
                    good += well
                    bad += badly
        return Count(good, bad)

    def forget(self, before: datetime) -> list[int]:
        """Remove and return the hours that ended before an instant."""
        limit = minute_of(before) // MINUTES_PER_HOUR
        gone = [hour for hour in self.hours if hour < limit]
        for hour in gone:
            del self.hours[hour]
        return gone


def burn_rate(slo: Slo, count: Count) -> float | None:
    """Error ratio over error budget."""
    ratio = count.error_ratio
    return None if ratio is None else ratio / (1 - slo.target)


def level_of(rate: float) -> BurnLevel:
    return next((level for least, level in _LEVELS if rate >= least), BurnLevel.NORMAL)


def status_of(remaining: float | None, critical: float = CRITICAL_SHARE) -> BudgetStatus:
    if remaining is None:
        return BudgetStatus.UNKNOWN
    if remaining > 0.5:
        return BudgetStatus.HEALTHY
    if remaining > critical:
        return BudgetStatus.WARNING
    return BudgetStatus.CRITICAL if remaining > 0.1 else BudgetStatus.EXHAUSTED


@dataclass(frozen=True, slots=True)
class Burn:
    hours: int
    rate: float | None
    exhaustion_hours: float | None  # until nothing is left, at this rate

    @property
    def level(self) -> BurnLevel:
        return level_of(self.rate or 0.0)


@dataclass(frozen=True, slots=True)
class Budget:
    """`remaining` is a share of the whole, 0 to 1; None while nothing has ended. `firing` are names of pairs."""

    counted: Count
    remaining: float | None
    burns: tuple[Burn, ...]
    firing: tuple[str, ...]
    critical: float = CRITICAL_SHARE

    @property
    def status(self) -> BudgetStatus:
        return status_of(self.remaining, self.critical)


@dataclass(frozen=True, slots=True)
class OutsideBudget:
    """A budget that another service measures; `remaining` is a share of the whole, 0 to 1."""

    slo: str
    service: str
    remaining: float


def budget_of(slo: Slo, minutes: Minutes, now: datetime, critical: float = CRITICAL_SHARE) -> Budget:
    counted = minutes.within(slo.window, now)
    used = burn_rate(slo, counted)
    remaining = None if used is None else max(0.0, 1.0 - used)
    burns = tuple(_burn(slo, minutes, hours, remaining, now) for hours in SHOWN_HOURS)
    firing = tuple(pair.name for pair in PAIRS if _fires(slo, minutes, pair, now))
    return Budget(counted, remaining, burns, firing, critical)


def _burn(slo: Slo, minutes: Minutes, hours: int, remaining: float | None, now: datetime) -> Burn:
    rate = burn_rate(slo, minutes.within(timedelta(hours=hours), now))
    left = None if not rate or remaining is None else remaining * (slo.window / timedelta(hours=1)) / rate
    return Burn(hours, rate, left)


def _fires(slo: Slo, minutes: Minutes, pair: Pair, now: datetime) -> bool:
    long = minutes.within(pair.long, now)
    if long.total < EVENTS_NEEDED or (burn_rate(slo, long) or 0.0) <= pair.rate:
        return False
    return (burn_rate(slo, minutes.within(pair.short, now)) or 0.0) > pair.rate
