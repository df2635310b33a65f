"""The report as a PDF, drawn with fpdf2's vector primitives: tagged, its fonts embedded. The same input gives the
same bytes on the same machine.

Markdown and HTML features of fpdf2 are not used, so hostile text is only ever text.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from fpdf.enums import MethodReturnValue

from oraculo.collectors.pdf_charts import draw_bars, draw_columns
from oraculo.collectors.pdf_fonts import Lettering
from oraculo.collectors.pdf_pages import Pages
from oraculo.collectors.pdf_style import ACCENT, FONT, INK, LINE, MARGIN, SOFT, WARN
from oraculo.collectors.report import ReportContent, ReportRow
from oraculo.collectors.report_words import ReportWords
from oraculo.collectors.text import readable_url

_COLUMNS = (("item", 118.0), ("source", 38.0), ("day", 24.0))
_SUMMARY = (("source", 78.0), ("status", 30.0), ("items", 20.0), ("published", 52.0))
_LINE_HEIGHT = 4.2
_COLUMN_HEAD = "<</O /Table /Scope /Column>>"
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


def render_pdf(report: ReportContent) -> bytes:
    """The whole document."""
    letters = Lettering(_texts(report))
    pdf = Pages(report.title, report.words.tag, letters)
    newest = next((row.at for row in report.rows if row.at is not None), None)
    pdf.set_creation_date(newest or _EPOCH)
    pdf.add_page()
    _head(pdf, report)
    _facts(pdf, report)
    _missing(pdf, report)
    _heading(pdf, report.per_source.title, 30)
    draw_bars(pdf, report.per_source)
    _heading(pdf, report.per_day.title, 60)
    draw_columns(pdf, report.per_day)
    _summary(pdf, report)
    _items(pdf, report)
    return bytes(pdf.output())


def _texts(report: ReportContent) -> Iterator[str]:
    """All that was collected or asked for; our own words are in the fonts that ship."""
    yield from (report.title, report.period, report.provenance)
    for source in report.sources:
        yield from (source.name, source.publications, source.missing, source.status)
    for row in report.rows:
        yield from (row.title, row.summary, row.origin, readable_url(row.url) if row.url else "")


def _head(pdf: Pages, report: ReportContent) -> None:
    pdf.set_text_color(*INK)
    pdf.set_font(FONT, "B", 20)
    pdf.paragraph(report.title, 9, "H1")
    pdf.set_font(FONT, size=10)
    pdf.set_text_color(*SOFT)
    pdf.paragraph(report.words("period", period=report.period), 6)
    pdf.set_font(FONT, size=8.5)
    pdf.paragraph(report.provenance, 5)
    pdf.set_draw_color(*ACCENT)
    pdf.set_line_width(0.9)
    with pdf.decoration():
        pdf.line(MARGIN, pdf.get_y() + 2, MARGIN + pdf.epw, pdf.get_y() + 2)
    pdf.set_y(pdf.get_y() + 7)


def _facts(pdf: Pages, report: ReportContent) -> None:
    words = report.words
    facts = (("items", report.total), ("sources", len(report.sources)), ("missing-sources", len(report.missing)))
    gap, top = 5.0, pdf.get_y()
    width = (pdf.epw - gap * (len(facts) - 1)) / len(facts)
    pdf.set_line_width(0.25)
    for index, (name, value) in enumerate(facts):
        x = MARGIN + index * (width + gap)
        pdf.set_draw_color(*LINE)
        with pdf.decoration():
            pdf.rect(x, top, width, 18, round_corners=True, corner_radius=2)
        with pdf.tagged("P"):
            pdf.set_xy(x + 3, top + 2.5)
            pdf.set_font(FONT, size=8.5)
            pdf.set_text_color(*SOFT)
            pdf.cell(width - 6, 4, words(name))
            pdf.set_xy(x + 3, top + 7.5)
            pdf.set_font(FONT, "B", 17)
            pdf.set_text_color(*INK)
            pdf.cell(width - 6, 8, words.number(value))
    pdf.set_xy(MARGIN, top + 22)


def _missing(pdf: Pages, report: ReportContent) -> None:
    if not report.missing:
        return
    _heading(pdf, report.words("missing"), 12, WARN)
    pdf.set_font(FONT, size=10)
    pdf.set_text_color(*WARN)
    for source in report.missing:
        pdf.paragraph(f"• {source.name}: {source.missing}", 5.2)
    pdf.ln(2)


def _heading(pdf: Pages, text: str, room: float, color: tuple[int, int, int] = INK) -> None:
    """A heading with at least `room` below it on the same page."""
    pdf.ensure(room + 12)
    pdf.ln(3)
    pdf.set_font(FONT, "B", 12)
    pdf.set_text_color(*color)
    pdf.paragraph(text, 7, "H2")
    pdf.ln(1)


def _summary(pdf: Pages, report: ReportContent) -> None:
    words = report.words
    _heading(pdf, words("summary"), 20)
    if not report.sources:
        return _nothing(pdf, words("no-source"))
    with pdf.element("Table"):
        table = _Table(pdf, words, _SUMMARY)
        for source in report.sources:
            cells = (source.name, source.status, words.number(source.count), source.span)
            table.row(cells, (source.publications,) if source.publications else ())


def _items(pdf: Pages, report: ReportContent) -> None:
    words = report.words
    _heading(pdf, words("items"), 25)
    if not report.rows:
        return _nothing(pdf, words("no-item"))
    with pdf.element("Table"):
        table = _Table(pdf, words, _COLUMNS)
        for row in report.rows:
            table.row((row.title, row.origin, row.day), _below(row), row.url)
    if report.unlisted:
        _nothing(pdf, words.counted("unlisted", report.unlisted, shown=words.number(len(report.rows))))
    if not pdf.letters.is_whole:
        _nothing(pdf, words("latin"))


def _below(row: ReportRow) -> tuple[str, ...]:
    """What stands below a title: the summary, and where the link goes."""
    return tuple(part for part in (row.summary, row.url and readable_url(row.url)) if part)


def _nothing(pdf: Pages, text: str) -> None:
    pdf.ln(2)
    pdf.set_font(FONT, size=9)
    pdf.set_text_color(*SOFT)
    pdf.paragraph(text, 5)


class _Table:
    """Rows below a head that is drawn again on every page. A row's first column has softer ones below it."""

    def __init__(self, pdf: Pages, words: ReportWords, columns: tuple[tuple[str, float], ...]) -> None:
        self._pdf, self._words, self._columns = pdf, words, columns
        with pdf.element("TR"):
            self._head(is_first=True)

    def _head(self, is_first: bool = False) -> None:
        """The first time its cells are read as heads of columns; on later pages they are there for the eye alone."""
        pdf = self._pdf
        pdf.set_font(FONT, "B", 8.5)
        pdf.set_text_color(*SOFT)
        for name, width in self._columns:
            with pdf.tagged("TH", attributes=_COLUMN_HEAD) if is_first else pdf.decoration():
                _cell(pdf, name, width, 6, pdf.fit(self._words(name)))
        pdf.ln(6)
        pdf.set_draw_color(*SOFT)
        pdf.set_line_width(0.4)
        with pdf.decoration():
            pdf.line(MARGIN, pdf.get_y(), MARGIN + pdf.epw, pdf.get_y())

    def row(self, cells: tuple[str, ...], below: tuple[str, ...] = (), url: str | None = None) -> None:
        pdf = self._pdf
        pdf.set_font(FONT, size=9)
        wrapped = [
            _wrapped(pdf, cell, width - 3, most=2) for cell, (_, width) in zip(cells, self._columns, strict=True)
        ]
        pdf.set_font(FONT, size=8)
        softer = [line for text in below for line in _wrapped(pdf, text, self._columns[0][1] - 3, most=3)]
        lines = max(len(wrapped[0]) + len(softer), *(len(one) for one in wrapped))
        height = _LINE_HEIGHT * lines + 2.6
        if pdf.ensure(height):
            self._head()
        top, x = pdf.get_y(), MARGIN
        with pdf.element("TR"):
            for (name, width), written in zip(self._columns, wrapped, strict=True):
                with pdf.tagged("TD"):
                    linked = url or "" if x == MARGIN else ""
                    pdf.set_font(FONT, size=9)
                    pdf.set_text_color(*(ACCENT if linked else INK))
                    self._lines(x, top, name, width, written, linked)
                    if x == MARGIN and softer:
                        pdf.set_font(FONT, size=8)
                        pdf.set_text_color(*SOFT)
                        self._lines(MARGIN, top + len(written) * _LINE_HEIGHT, name, width, softer, "")
                x += width
        pdf.set_draw_color(*LINE)
        pdf.set_line_width(0.2)
        with pdf.decoration():
            pdf.line(MARGIN, top + height, MARGIN + pdf.epw, top + height)
        pdf.set_xy(MARGIN, top + height)

    def _lines(self, x: float, top: float, name: str, width: float, lines: list[str], link: str) -> None:
        for index, line in enumerate(lines):
            self._pdf.set_xy(x, top + 1.3 + index * _LINE_HEIGHT)
            _cell(self._pdf, name, width, _LINE_HEIGHT, line, link)


def _cell(pdf: Pages, column: str, width: float, height: float, text: str, link: str = "") -> None:
    """One line in a column; numbers are set to the right, clear of the next column."""
    if column == "items":
        pdf.cell(width - 8, height, text, align="R")
        pdf.cell(8, height)
    else:
        pdf.cell(width, height, text, link=link)


def _wrapped(pdf: Pages, text: str, width: float, most: int) -> list[str]:
    """The text in at most `most` lines of that width; a word longer than a line is broken."""
    shown = pdf.fit(text)
    lines = pdf.multi_cell(width, _LINE_HEIGHT, shown, align="L", dry_run=True, output=MethodReturnValue.LINES)
    assert isinstance(lines, list)  # by `output`
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], lines[most - 1].rstrip()[:-1].rstrip() + "…"]
