"""Small SVG pictures of figures, with nothing but the standard library; readable on light and on dark pages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

WIDTH, ROW, LEFT, RIGHT, TOP = 720, 26, 190, 90, 44
TEXT, OURS, OTHERS, LINES = "#7a7f87", "#2f7ed8", "#a9b0ba", "#d0d4da"
PALETTE = ("#2f7ed8", "#e08e2b", "#5aa469", "#b05fb0")
FONT = "font-family='system-ui, sans-serif' font-size='13'"


def number(value: float) -> str:
    """As many digits as mean something."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def bars(title: str, values: Mapping[str, float], unit: str) -> str:
    """A bar for each value, as long as its logarithm; those whose name begins with oraculo stand out."""
    least = 10 ** math.floor(math.log10(min(values.values())))
    span = math.log10(max(values.values()) / least) or 1.0
    parts = [f"<text x='0' y='20' {FONT} font-weight='600' fill='{TEXT}'>{escape(title)}</text>"]
    for at, (name, value) in enumerate(values.items()):
        y = TOP + at * ROW
        length = max(2.0, math.log10(value / least) / span * (WIDTH - LEFT - RIGHT))
        colour = OURS if name.startswith("oraculo") else OTHERS
        parts += [
            f"<text x='{LEFT - 8}' y='{y + 14}' {FONT} text-anchor='end' fill='{TEXT}'>{escape(name)}</text>",
            f"<rect x='{LEFT}' y='{y}' width='{length:.1f}' height='{ROW - 8}' rx='2' fill='{colour}'/>",
            f"<text x='{LEFT + length + 6:.1f}' y='{y + 14}' {FONT} fill='{TEXT}'>{number(value)} {unit}</text>",
        ]
    return _svg(TOP + len(values) * ROW, title, parts)


def lines(title: str, series: Mapping[str, Sequence[tuple[float, float]]], across: str, up: str) -> str:
    """Lines over logarithmic axes, with their points."""
    height, bottom = 340, 60
    xs = [x for points in series.values() for x, _ in points]
    ys = [y for points in series.values() for _, y in points]
    decades = range(math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys))) + 1)

    def across_at(x: float) -> float:
        return 70 + math.log10(x / min(xs)) / (math.log10(max(xs) / min(xs)) or 1) * (WIDTH - 250)

    def up_at(y: float) -> float:
        share = (math.log10(y) - decades[0]) / (decades[-1] - decades[0] or 1)
        return height - bottom - share * (height - bottom - TOP)

    parts = [f"<text x='0' y='20' {FONT} font-weight='600' fill='{TEXT}'>{escape(title)}</text>"]
    for decade in decades:
        y = up_at(10.0**decade)
        parts += [
            f"<line x1='70' y1='{y:.1f}' x2='{WIDTH - 170}' y2='{y:.1f}' stroke='{LINES}'/>",
            f"<text x='62' y='{y + 4:.1f}' {FONT} text-anchor='end' fill='{TEXT}'>{10.0**decade:g}</text>",
        ]
    for x in sorted(set(xs)):
        parts.append(
            f"<text x='{across_at(x):.1f}' y='{height - bottom + 22}' {FONT} text-anchor='middle' fill='{TEXT}'>"
            f"{x:g}</text>"
        )
    for colour, points in zip(PALETTE, series.values(), strict=False):
        path = " ".join(f"{across_at(x):.1f},{up_at(y):.1f}" for x, y in points)
        parts.append(f"<polyline points='{path}' fill='none' stroke='{colour}' stroke-width='2'/>")
        parts += [f"<circle cx='{across_at(x):.1f}' cy='{up_at(y):.1f}' r='3' fill='{colour}'/>" for x, y in points]
    below = float(height)
    ends = sorted(zip(PALETTE, series.items(), strict=False), key=lambda one: one[1][1][-1][1])
    for colour, (name, points) in ends:  # the lowest first; no label stands on another
        below = min(up_at(points[-1][1]) + 4, below - 16)
        x = across_at(points[-1][0]) + 10
        parts.append(f"<text x='{x:.1f}' y='{below:.1f}' {FONT} fill='{colour}'>{escape(name)}</text>")
    parts += [
        f"<text x='{70 + (WIDTH - 250) / 2}' y='{height - 12}' {FONT} text-anchor='middle' fill='{TEXT}'>"
        f"{escape(across)}</text>",
        f"<text x='0' y='{TOP - 8}' {FONT} fill='{TEXT}'>{escape(up)}</text>",
    ]
    return _svg(height, title, parts)


def _svg(height: int, title: str, parts: Sequence[str]) -> str:
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' width='{WIDTH}' role='img' "
        f"aria-label='{escape(title)}'>"
    )
    return "\n".join([head, *parts, "</svg>"]) + "\n"
