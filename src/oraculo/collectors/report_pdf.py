"""The report as a PDF, drawn with fpdf2's vector primitives; the same input gives the same bytes.

Text is turned into what the standard fonts can show by `latin`. Markdown and HTML features of fpdf2 are not used, so
hostile text is only ever text.
"""

from __future__ import annotations

from datetime import UTC, datetime

from fpdf import FPDF, XPos, YPos
from fpdf.enums import MethodReturnValue

from oraculo.collectors.latin import ENCODING, latin
from oraculo.collectors.pdf_charts import draw_bars, draw_columns
from oraculo.collectors.pdf_style import ACCENT, FONT, INK, LINE, MARGIN, SOFT, WARN
from oraculo.collectors.report import ReportContent, ReportRow
from oraculo.collectors.report_words import ReportWords
from oraculo.collectors.text import readable_url, shorten

_COLUMNS = (("item", 118.0), ("source", 38.0), ("day", 24.0))
_SUMMARY = (("source", 78.0), ("status", 30.0), ("items", 20.0), ("published", 52.0))
_LINE_HEIGHT = 4.2
# fpdf2 replaces this everywhere with the number of pages; `clean` text has no control characters, so only ours.
_PAGE_COUNT = "\x1e\x1e"
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


class _Pages(FPDF):
    """A4 pages with a number at the foot."""

    def __init__(self, title: str) -> None:
        super().__init__(format="A4")
        self.running_title = shorten(title, 90)
        self.core_fonts_encoding = ENCODING
        self.c_margin = 0
        self.alias_nb_pages(_PAGE_COUNT)
        self.set_margins(MARGIN, MARGIN, MARGIN)
        self.set_auto_page_break(auto=True, margin=20)

    def footer(self) -> None:
        self.set_y(-13)
        self.set_font(FONT, size=8)
        self.set_text_color(*SOFT)
        self.cell(self.epw * 0.8, 5, self.running_title)
        self.cell(self.epw * 0.2, 5, f"{self.page_no()} / {_PAGE_COUNT}", align="R")

    def ensure(self, height: float) -> bool:
        """Start a page when less than `height` is left; whether it did."""
        if self.get_y() + height <= self.page_break_trigger:
            return False
        self.add_page()
        return True


def render_pdf(report: ReportContent) -> bytes:
    """The whole document."""
    pdf = _Pages(latin(report.title))
    newest = next((row.at for row in report.rows if row.at is not None), None)
    pdf.set_creation_date(newest or _EPOCH)
    pdf.set_title(report.title)
    pdf.set_creator("Oráculo")
    pdf.set_lang(report.words.tag)
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


def _head(pdf: _Pages, report: ReportContent) -> None:
    pdf.set_text_color(*INK)
    pdf.set_font(FONT, "B", 20)
    pdf.multi_cell(pdf.epw, 9, latin(report.title), align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    pdf.set_font(FONT, size=10)
    pdf.set_text_color(*SOFT)
    period = report.words("period", period=report.period)
    pdf.cell(pdf.epw, 6, latin(period), new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    pdf.set_font(FONT, size=8.5)
    pdf.multi_cell(pdf.epw, 5, latin(report.provenance), align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    pdf.set_draw_color(*ACCENT)
    pdf.set_line_width(0.9)
    pdf.line(MARGIN, pdf.get_y() + 2, MARGIN + pdf.epw, pdf.get_y() + 2)
    pdf.set_y(pdf.get_y() + 7)


def _facts(pdf: _Pages, report: ReportContent) -> None:
    words = report.words
    facts = (("items", report.total), ("sources", len(report.sources)), ("missing-sources", len(report.missing)))
    gap, top = 5.0, pdf.get_y()
    width = (pdf.epw - gap * (len(facts) - 1)) / len(facts)
    pdf.set_line_width(0.25)
    for index, (name, value) in enumerate(facts):
        x = MARGIN + index * (width + gap)
        pdf.set_draw_color(*LINE)
        pdf.rect(x, top, width, 18, round_corners=True, corner_radius=2)
        pdf.set_xy(x + 3, top + 2.5)
        pdf.set_font(FONT, size=8.5)
        pdf.set_text_color(*SOFT)
        pdf.cell(width - 6, 4, words(name))
        pdf.set_xy(x + 3, top + 7.5)
        pdf.set_font(FONT, "B", 17)
        pdf.set_text_color(*INK)
        pdf.cell(width - 6, 8, words.number(value))
    pdf.set_xy(MARGIN, top + 22)


def _missing(pdf: _Pages, report: ReportContent) -> None:
    if not report.missing:
        return
    _heading(pdf, report.words("missing"), 12, WARN)
    pdf.set_font(FONT, size=10)
    pdf.set_text_color(*WARN)
    for source in report.missing:
        text = latin(f"• {source.name}: {source.missing}")
        pdf.multi_cell(pdf.epw, 5.2, text, align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    pdf.ln(2)


def _heading(pdf: _Pages, text: str, room: float, color: tuple[int, int, int] = INK) -> None:
    """A heading with at least `room` below it on the same page."""
    pdf.ensure(room + 12)
    pdf.ln(3)
    pdf.set_font(FONT, "B", 12)
    pdf.set_text_color(*color)
    pdf.cell(pdf.epw, 7, latin(text), new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    pdf.ln(1)


def _summary(pdf: _Pages, report: ReportContent) -> None:
    words = report.words
    _heading(pdf, words("summary"), 20)
    if not report.sources:
        return _nothing(pdf, words("no-source"))
    table = _Table(pdf, words, _SUMMARY)
    for source in report.sources:
        cells = (source.name, source.status, words.number(source.count), source.span)
        table.row(cells, (source.publications,) if source.publications else ())


def _items(pdf: _Pages, report: ReportContent) -> None:
    words = report.words
    _heading(pdf, words("items"), 25)
    if not report.rows:
        return _nothing(pdf, words("no-item"))
    table = _Table(pdf, words, _COLUMNS)
    for row in report.rows:
        table.row((row.title, row.origin, row.day), _below(row), row.url)
    if report.unlisted:
        _nothing(pdf, words.counted("unlisted", report.unlisted, shown=words.number(len(report.rows))))
    _nothing(pdf, words("latin"))


def _below(row: ReportRow) -> tuple[str, ...]:
    """What stands below a title: the summary, and where the link goes."""
    return tuple(part for part in (row.summary, row.url and readable_url(row.url)) if part)


def _nothing(pdf: _Pages, text: str) -> None:
    pdf.ln(2)
    pdf.set_font(FONT, size=9)
    pdf.set_text_color(*SOFT)
    pdf.multi_cell(pdf.epw, 5, latin(text), align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)


class _Table:
    """Rows below a head that is written again on every page. A row's first column has softer ones below it."""

    def __init__(self, pdf: _Pages, words: ReportWords, columns: tuple[tuple[str, float], ...]) -> None:
        self._pdf, self._words, self._columns = pdf, words, columns
        self._head()

    def _head(self) -> None:
        pdf = self._pdf
        pdf.set_font(FONT, "B", 8.5)
        pdf.set_text_color(*SOFT)
        for name, width in self._columns:
            _cell(pdf, name, width, 6, latin(self._words(name)))
        pdf.ln(6)
        pdf.set_draw_color(*SOFT)
        pdf.set_line_width(0.4)
        pdf.line(MARGIN, pdf.get_y(), MARGIN + pdf.epw, pdf.get_y())

    def row(self, cells: tuple[str, ...], below: tuple[str, ...] = (), url: str | None = None) -> None:
        pdf = self._pdf
        pdf.set_font(FONT, size=9)
        wrapped = [
            _wrapped(pdf, latin(cell), width - 3, most=2) for cell, (_, width) in zip(cells, self._columns, strict=True)
        ]
        pdf.set_font(FONT, size=8)
        softer = [line for text in below for line in _wrapped(pdf, latin(text), self._columns[0][1] - 3, most=3)]
        lines = max(len(wrapped[0]) + len(softer), *(len(one) for one in wrapped))
        height = _LINE_HEIGHT * lines + 2.6
        if pdf.ensure(height):
            self._head()
        top, x = pdf.get_y(), MARGIN
        for (name, width), written in zip(self._columns, wrapped, strict=True):
            linked = url or "" if x == MARGIN else ""
            pdf.set_font(FONT, size=9)
            pdf.set_text_color(*(ACCENT if linked else INK))
            self._lines(x, top, name, width, written, linked)
            x += width
        pdf.set_font(FONT, size=8)
        pdf.set_text_color(*SOFT)
        name, width = self._columns[0]
        self._lines(MARGIN, top + len(wrapped[0]) * _LINE_HEIGHT, name, width, softer, "")
        pdf.set_draw_color(*LINE)
        pdf.set_line_width(0.2)
        pdf.line(MARGIN, top + height, MARGIN + pdf.epw, top + height)
        pdf.set_xy(MARGIN, top + height)

    def _lines(self, x: float, top: float, name: str, width: float, lines: list[str], link: str) -> None:
        for index, line in enumerate(lines):
            self._pdf.set_xy(x, top + 1.3 + index * _LINE_HEIGHT)
            _cell(self._pdf, name, width, _LINE_HEIGHT, line, link)


def _cell(pdf: _Pages, column: str, width: float, height: float, text: str, link: str = "") -> None:
    """One line in a column; numbers are set to the right, clear of the next column."""
    if column == "items":
        pdf.cell(width - 8, height, text, align="R")
        pdf.cell(8, height)
    else:
        pdf.cell(width, height, text, link=link)


def _wrapped(pdf: _Pages, text: str, width: float, most: int) -> list[str]:
    """The text in at most `most` lines of that width; a word longer than a line is broken."""
    lines = pdf.multi_cell(width, _LINE_HEIGHT, text, align="L", dry_run=True, output=MethodReturnValue.LINES)
    assert isinstance(lines, list)  # by `output`
    # fpdf2 gives lines back as the font's bytes read as Latin-1.
    kept = [line.encode("latin-1").decode(ENCODING) for line in lines[:most]]
    if len(lines) <= most:
        return kept
    kept[-1] = kept[-1].rstrip()[:-1].rstrip() + "…"
    return kept
