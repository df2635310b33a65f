"""The numbers and the geometry of the charts, shared by the HTML (SVG) and the PDF so that both say the same."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from oraculo.collectors.report_words import ReportWords

MAX_BARS = 12
MAX_DAYS = 62
MAX_MONTHS = 62
# Dates outside are misprints of a feed; one of them would flatten every other bar.
_FIRST_YEAR, _LAST_YEAR = 1970, 2100
_PORTUGUESE = ReportWords()


@dataclass(frozen=True, slots=True)
class ChartSeries:
    """A chart to draw: a title, one value per label, and what the chart leaves out, in words."""

    title: str
    labels: tuple[str, ...]
    values: tuple[int, ...]
    note: str = ""
    words: ReportWords = _PORTUGUESE

    @property
    def ticks(self) -> tuple[int, ...]:
        """Round values from 0 to at least the highest one, for the grid lines."""
        return nice_ticks(max(self.values, default=0))

    def shown_labels(self, most: int) -> frozenset[int]:
        """Which labels to write when there is room for `most`: evenly spaced, and the last one."""
        count = len(self.labels)
        stride = max(1, math.ceil(count / max(1, most)))
        return frozenset(range(count - 1, -1, -stride))


def by_source(counts: Sequence[tuple[str, int]], words: ReportWords = _PORTUGUESE) -> ChartSeries:
    """Items per source, most first; the smallest share one bar when there are many."""
    ordered = sorted(counts, key=lambda pair: -pair[1])
    shown = ordered if len(ordered) <= MAX_BARS else ordered[: MAX_BARS - 1]
    rest = ordered[len(shown) :]
    if rest:
        shown = [*shown, (words("others", count=len(rest)), sum(count for _, count in rest))]
    labels, values = tuple(name for name, _ in shown), tuple(count for _, count in shown)
    return ChartSeries(words("by-source"), labels, values, words=words)


def over_time(days: Sequence[date], undated: int = 0, words: ReportWords = _PORTUGUESE) -> ChartSeries:
    """Items per day, or per month or year when the days are too many to tell apart; days without items count."""
    charted = [day for day in days if _FIRST_YEAR <= day.year <= _LAST_YEAR]
    left_out = undated + len(days) - len(charted)
    note = words.counted("undated", left_out) if left_out else ""
    if not charted:
        return ChartSeries(words("by-day"), (), (), note, words)
    first, last = min(charted), max(charted)
    months = (last.year - first.year) * 12 + last.month - first.month + 1
    if (last - first).days < MAX_DAYS:
        steps = [first + timedelta(days=offset) for offset in range((last - first).days + 1)]
        counted = _counted(charted, steps, _same_day)
        return ChartSeries(words("by-day"), tuple(words.day_label(step) for step in steps), counted, note, words)
    if months <= MAX_MONTHS:
        steps = [_month_after(first, offset) for offset in range(months)]
        counted = _counted(charted, steps, _same_month)
        return ChartSeries(words("by-month"), tuple(words.month_label(step) for step in steps), counted, note, words)
    steps = [date(year, 1, 1) for year in range(first.year, last.year + 1)]
    counted = _counted(charted, steps, _same_year)
    return ChartSeries(words("by-year"), tuple(str(step.year) for step in steps), counted, note, words)


def nice_ticks(highest: int) -> tuple[int, ...]:
    """0 and up to five round steps that reach `highest`; counts are whole, so steps are too."""
    if highest <= 0:
        return (0, 1)
    rough = highest / 4
    magnitude = 10 ** math.floor(math.log10(rough)) if rough >= 1 else 1
    step = next(int(factor * magnitude) for factor in (1, 2, 5, 10) if factor * magnitude >= rough)
    return tuple(range(0, math.ceil(highest / step) * step + 1, step))


def _counted(days: Sequence[date], steps: Sequence[date], start_of: Callable[[date], date]) -> tuple[int, ...]:
    counts = Counter(start_of(day) for day in days)
    return tuple(counts[step] for step in steps)


def _month_after(first: date, offset: int) -> date:
    years, month = divmod(first.month - 1 + offset, 12)
    return date(first.year + years, month + 1, 1)


def _same_day(day: date) -> date:
    return day


def _same_month(day: date) -> date:
    return day.replace(day=1)


def _same_year(day: date) -> date:
    return day.replace(month=1, day=1)
