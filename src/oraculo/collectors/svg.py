"""The charts as inline SVG: no script, text escaped, colours from the page's CSS so that dark mode and print work."""

from __future__ import annotations

from html import escape

from oraculo.collectors.charts import ChartSeries
from oraculo.collectors.text import shorten

# About as wide as a chart's card on a desk screen, so that a unit is a pixel and text keeps its size.
WIDTH = 440
_ROW = 32
_CHARACTER = 8.2
_COLUMN_HEIGHT = 180


def bars_svg(series: ChartSeries) -> str:
    """Horizontal bars, one per label, with the value at the end of each."""
    if not series.labels:
        return _nothing(series)
    names = [shorten(label, 16) for label in series.labels]
    left = 14 + _CHARACTER * max(len(name) for name in names)
    room = WIDTH - left - 58
    highest = max(series.values) or 1
    height = _ROW * len(series.labels) + 8
    parts = [_open(series, height)]
    for index, (label, name, value) in enumerate(zip(series.labels, names, series.values, strict=True)):
        middle = 4 + index * _ROW + _ROW / 2
        length = room * value / highest
        parts.append(
            f"<g><title>{escape(label)}: {value}</title>"
            f'<text class="label" x="{left - 10:.1f}" y="{middle + 4:g}" text-anchor="end">'
            f"{escape(name)}</text>"
            f'<path class="bar" d="{_rounded_right(left, middle - 10, length, 20)}"/>'
            f'<text class="value" x="{left + length + 8:.1f}" y="{middle + 4:g}">'
            f"{series.words.number(value)}</text></g>"
        )
    parts.append(f'<line class="axis" x1="{left:.1f}" y1="0" x2="{left:.1f}" y2="{height}"/></svg>')
    return "".join(parts)


def columns_svg(series: ChartSeries) -> str:
    """Vertical columns over time, with grid lines; each column says its value when pointed at."""
    if not series.labels:
        return _nothing(series)
    left, right, top, bottom = 40, 18, 10, 26
    ticks = series.ticks
    slot = (WIDTH - left - right) / len(series.labels)
    thick = max(1.5, min(28.0, slot * 0.72))
    floor = top + _COLUMN_HEIGHT
    parts = [_open(series, floor + bottom)]
    for tick in ticks:
        y = floor - _COLUMN_HEIGHT * tick / ticks[-1]
        style = "axis" if tick == 0 else "grid"
        parts.append(
            f'<line class="{style}" x1="{left}" y1="{y:.1f}" x2="{WIDTH}" y2="{y:.1f}"/>'
            f'<text class="tick" x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{series.words.number(tick)}</text>'
        )
    written = series.shown_labels(int((WIDTH - left) / 54))
    for index, (label, value) in enumerate(zip(series.labels, series.values, strict=True)):
        middle = left + slot * (index + 0.5)
        high = _COLUMN_HEIGHT * value / ticks[-1]
        parts.append(f"<g><title>{escape(label)}: {value}</title>")
        # An invisible target over the whole slot makes thin columns easy to point at.
        parts.append(
            f'<rect x="{middle - slot / 2:.1f}" y="{top}" width="{slot:.1f}" height="{_COLUMN_HEIGHT}" '
            'fill="none" pointer-events="all"/>'
        )
        if value:
            parts.append(f'<path class="bar" d="{_rounded_top(middle - thick / 2, floor, thick, high)}"/>')
        if index in written:
            parts.append(
                f'<text class="tick" x="{middle:.1f}" y="{floor + 18}" text-anchor="middle">{escape(label)}</text>'
            )
        parts.append("</g>")
    return "".join([*parts, "</svg>"])


def _open(series: ChartSeries, height: float) -> str:
    pairs = ", ".join(f"{label} {value}" for label, value in zip(series.labels, series.values, strict=True))
    name = escape(shorten(f"{series.title}: {pairs}", 1_000))
    return f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{name}">'


def _nothing(series: ChartSeries) -> str:
    return f'<p class="empty">{escape(series.title)}: {escape(series.words("nothing-shown"))}</p>'


def _rounded_right(x: float, y: float, length: float, thick: float) -> str:
    radius = min(4.0, length)
    return (
        f"M{x:.1f} {y:.1f}h{length - radius:.1f}a{radius:.1f} {radius:.1f} 0 0 1 {radius:.1f} {radius:.1f}"
        f"v{thick - 2 * radius:.1f}a{radius:.1f} {radius:.1f} 0 0 1 {-radius:.1f} {radius:.1f}h{radius - length:.1f}z"
    )


def _rounded_top(x: float, floor: float, thick: float, high: float) -> str:
    radius = min(4.0, thick / 2, high)
    return (
        f"M{x:.1f} {floor:.1f}v{radius - high:.1f}a{radius:.1f} {radius:.1f} 0 0 1 {radius:.1f} {-radius:.1f}"
        f"h{thick - 2 * radius:.1f}a{radius:.1f} {radius:.1f} 0 0 1 {radius:.1f} {radius:.1f}v{high - radius:.1f}z"
    )
