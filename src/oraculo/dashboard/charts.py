"""Charts as numbers for SVG: the templates draw them, and nothing but the server works anything out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

HEIGHT = 100.0
_STEPS = (1, 2, 5, 10)


def rounded_up(value: float) -> float:
    """The next 1, 2 or 5 times a power of ten: where an axis ends."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** floor(log10(value))
    return next(step * unit for step in _STEPS if step * unit >= value)


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value of the nearest rank."""
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


@dataclass(frozen=True, slots=True)
class Area:
    """One series as the points of a polyline, from 0 to `width`, and of the area below it."""

    line: str
    area: str


def area(values: Sequence[float], top: float) -> Area:
    """`top` is where the axis ends; the first value stands at 0, each next one a unit to the right."""
    points = [f"{place},{round(HEIGHT - HEIGHT * min(value, top) / top, 2):g}" for place, value in enumerate(values)]
    line = " ".join(points)
    return Area(line, f"0,{HEIGHT:g} {line} {max(0, len(values) - 1)},{HEIGHT:g}" if points else "")


def spark(values: Iterable[float]) -> str:
    """A small line without an axis: as high as its highest value."""
    found = list(values)
    return area(found, max([1e-9, *found])).line
