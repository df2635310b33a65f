"""The charts as vector drawings in a PDF, at the pen's position and as wide as the page's text. Each is a
figure with its numbers in words."""

from __future__ import annotations

from oraculo.collectors.charts import ChartSeries
from oraculo.collectors.pdf_pages import Pages
from oraculo.collectors.pdf_style import ACCENT, FONT, INK, LINE, MARGIN, SOFT

_ROW = 7.5
_LABEL = 42.0
_COLUMN_HEIGHT = 42.0


def draw_bars(pdf: Pages, series: ChartSeries) -> None:
    """Horizontal bars, one per label, with the value at the end of each."""
    if not series.labels:
        return _note(pdf, series.words("nothing-shown"))
    pdf.ensure(_ROW * len(series.labels))
    bottom = pdf.get_y() + _ROW * len(series.labels)
    with pdf.tagged("Figure", alt=in_words(series)):
        _bars(pdf, series)
    pdf.set_xy(MARGIN, bottom + 2)
    if series.note:
        _note(pdf, series.note)


def in_words(series: ChartSeries) -> str:
    """What a chart shows, for those who hear it."""
    told = (f"{label}: {series.words.number(value)}" for label, value in zip(series.labels, series.values, strict=True))
    return f"{series.title}. {'; '.join(told)}"


def _bars(pdf: Pages, series: ChartSeries) -> None:
    top, left = pdf.get_y(), MARGIN + _LABEL
    room = pdf.epw - _LABEL - 18
    highest = max(series.values) or 1
    for index, (label, value) in enumerate(zip(series.labels, series.values, strict=True)):
        y = top + index * _ROW
        length = room * value / highest
        pdf.set_font(FONT, size=9)
        pdf.set_text_color(*INK)
        pdf.set_xy(MARGIN, y)
        pdf.cell(_LABEL - 3, _ROW, pdf.narrow(label, _LABEL - 3), align="R")
        pdf.set_fill_color(*ACCENT)
        if length:
            pdf.rect(left, y + 1.4, length, _ROW - 2.8, style="F")
        pdf.set_xy(left + length + 2, y)
        pdf.set_font(FONT, "B", 9)
        pdf.cell(16, _ROW, series.words.number(value))
    _rule(pdf, left, top, left, top + _ROW * len(series.labels), SOFT)


def draw_columns(pdf: Pages, series: ChartSeries) -> None:
    """Vertical columns over time, with grid lines and as many dates as fit."""
    if not series.labels:
        return _note(pdf, series.note or series.words("nothing-shown"))
    pdf.ensure(_COLUMN_HEIGHT + 9)
    floor = pdf.get_y() + 2 + _COLUMN_HEIGHT
    with pdf.tagged("Figure", alt=in_words(series)):
        _columns(pdf, series)
    pdf.set_xy(MARGIN, floor + 7)
    if series.note:
        _note(pdf, series.note)


def _columns(pdf: Pages, series: ChartSeries) -> None:
    top, left = pdf.get_y() + 2, MARGIN + 12
    floor, width = top + _COLUMN_HEIGHT, pdf.epw - 12
    ticks = series.ticks
    pdf.set_font(FONT, size=8)
    pdf.set_text_color(*SOFT)
    for tick in ticks:
        y = floor - _COLUMN_HEIGHT * tick / ticks[-1]
        _rule(pdf, left, y, left + width, y, LINE if tick else SOFT)
        pdf.set_xy(MARGIN, y - 2)
        pdf.cell(10, 4, series.words.number(tick), align="R")
    slot = width / len(series.labels)
    thick = min(8.0, slot * 0.72)
    written = series.shown_labels(int(width / 14))
    pdf.set_fill_color(*ACCENT)
    for index, (label, value) in enumerate(zip(series.labels, series.values, strict=True)):
        middle = left + slot * (index + 0.5)
        if value:
            high = _COLUMN_HEIGHT * value / ticks[-1]
            pdf.rect(middle - thick / 2, floor - high, thick, high, style="F")
        if index in written:
            pdf.set_xy(middle - 8, floor + 1)
            pdf.cell(16, 4, label, align="C")


def _rule(pdf: Pages, x1: float, y1: float, x2: float, y2: float, color: tuple[int, int, int]) -> None:
    pdf.set_draw_color(*color)
    pdf.set_line_width(0.2)
    pdf.line(x1, y1, x2, y2)


def _note(pdf: Pages, text: str) -> None:
    pdf.set_font(FONT, size=9)
    pdf.set_text_color(*SOFT)
    pdf.set_x(MARGIN)
    pdf.paragraph(text, 5)
    pdf.ln(1)
