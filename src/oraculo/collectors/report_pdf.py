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
from oraculo.collectors.text import count_text, number_text, readable_url, shorten

_COLUMNS = (("Título", 82.0), ("Fonte", 26.0), ("Data", 22.0), ("Link", 50.0))
_SUMMARY = (("Fonte", 62.0), ("Situação", 38.0), ("Itens", 20.0), ("Publicados", 60.0))
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
    pdf.set_lang("pt-BR")
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
    pdf.cell(pdf.epw, 6, latin(f"Período: {report.period}"), new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    pdf.set_draw_color(*ACCENT)
    pdf.set_line_width(0.9)
    pdf.line(MARGIN, pdf.get_y() + 2, MARGIN + pdf.epw, pdf.get_y() + 2)
    pdf.set_y(pdf.get_y() + 7)


def _facts(pdf: _Pages, report: ReportContent) -> None:
    facts = (("Itens", report.total), ("Fontes", len(report.sources)), ("Fontes ausentes", len(report.missing)))
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
        pdf.cell(width - 6, 4, name)
        pdf.set_xy(x + 3, top + 7.5)
        pdf.set_font(FONT, "B", 17)
        pdf.set_text_color(*INK)
        pdf.cell(width - 6, 8, number_text(value))
    pdf.set_xy(MARGIN, top + 22)


def _missing(pdf: _Pages, report: ReportContent) -> None:
    if not report.missing:
        return
    _heading(pdf, "Fontes que faltam neste relatório", 12, WARN)
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
    _heading(pdf, "Resumo por fonte", 20)
    if not report.sources:
        return _nothing(pdf, "Nenhuma fonte foi coletada.")
    _table_head(pdf, _SUMMARY)
    for source in report.sources:
        cells = (source.name, source.status, number_text(source.count), source.span)
        _table_row(pdf, _SUMMARY, cells, None)


def _items(pdf: _Pages, report: ReportContent) -> None:
    _heading(pdf, "Itens", 25)
    if not report.rows:
        return _nothing(pdf, "Nenhum item foi coletado.")
    _table_head(pdf, _COLUMNS)
    for row in report.rows:
        _table_row(pdf, _COLUMNS, _cells(row), row.url)
    if report.unlisted:
        more = count_text(report.unlisted, "outro item não está listado", "outros itens não estão listados")
        _nothing(pdf, f"Estes são os {number_text(len(report.rows))} mais recentes; {more}.")
    _nothing(pdf, "Datas em UTC. Outros alfabetos e símbolos aparecem em letras latinas; o original está no HTML.")


def _cells(row: ReportRow) -> tuple[str, ...]:
    return (row.title, row.source, row.day, "—" if row.url is None else readable_url(row.url))


def _nothing(pdf: _Pages, text: str) -> None:
    pdf.ln(2)
    pdf.set_font(FONT, size=9)
    pdf.set_text_color(*SOFT)
    pdf.multi_cell(pdf.epw, 5, latin(text), align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)


def _table_head(pdf: _Pages, columns: tuple[tuple[str, float], ...]) -> None:
    pdf.set_font(FONT, "B", 8.5)
    pdf.set_text_color(*SOFT)
    for name, width in columns:
        _cell(pdf, name, width, 6, name)
    pdf.ln(6)
    pdf.set_draw_color(*SOFT)
    pdf.set_line_width(0.4)
    pdf.line(MARGIN, pdf.get_y(), MARGIN + pdf.epw, pdf.get_y())


def _table_row(pdf: _Pages, columns: tuple[tuple[str, float], ...], cells: tuple[str, ...], url: str | None) -> None:
    pdf.set_font(FONT, size=9)
    wrapped = [
        _wrapped(pdf, latin(cell), width - 3, most=1 if name == "Link" else 3)
        for cell, (name, width) in zip(cells, columns, strict=True)
    ]
    height = _LINE_HEIGHT * max(len(lines) for lines in wrapped) + 2.6
    if pdf.ensure(height):
        _table_head(pdf, columns)
        pdf.set_font(FONT, size=9)
    top, x = pdf.get_y(), MARGIN
    for (name, width), lines in zip(columns, wrapped, strict=True):
        linked = url if name == "Link" and url is not None else ""
        pdf.set_text_color(*(ACCENT if linked else INK))
        for index, line in enumerate(lines):
            pdf.set_xy(x, top + 1.3 + index * _LINE_HEIGHT)
            _cell(pdf, name, width, _LINE_HEIGHT, line, linked)
        x += width
    pdf.set_draw_color(*LINE)
    pdf.set_line_width(0.2)
    pdf.line(MARGIN, top + height, MARGIN + pdf.epw, top + height)
    pdf.set_xy(MARGIN, top + height)


def _cell(pdf: _Pages, column: str, width: float, height: float, text: str, link: str = "") -> None:
    """One line in a column; numbers are set to the right, clear of the next column."""
    if column == "Itens":
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
