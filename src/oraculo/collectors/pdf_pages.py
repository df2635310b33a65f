"""Pages of a report: embedded fonts, a structure, a number at the foot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fpdf import FPDF, ViewerPreferences
from fpdf.enums import MethodReturnValue, XPos, YPos

from oraculo.collectors.pdf_fonts import FAMILY, STYLES, Lettering, own_path
from oraculo.collectors.pdf_style import MARGIN, SOFT
from oraculo.collectors.pdf_tags import Element, StructureTree

# fpdf2 replaces this everywhere with the number of pages; `clean` text has no control characters, so only ours.
PAGE_COUNT = "\x1e\x1e"


class Pages(FPDF):
    """A4 pages in one language. What is drawn is content (`tagged`) or decoration (`decoration`), never neither."""

    def __init__(self, title: str, language: str, letters: Lettering) -> None:
        self.letters = letters
        super().__init__(format="A4")
        self.structure = self.struct_builder = StructureTree()
        self.within: Element | None = None
        self.running_title = title
        self.c_margin = 0
        self.alias_nb_pages(PAGE_COUNT)
        self.set_margins(MARGIN, MARGIN, MARGIN)
        self.set_auto_page_break(auto=True, margin=20)
        self.set_title(title)
        self.set_creator("Oráculo")
        self.set_lang(language)
        self.viewer_preferences = ViewerPreferences(display_doc_title=True)
        for style in STYLES:
            self.add_font(FAMILY, style, own_path(style))
        for name, path in letters.fallbacks:
            self.add_font(name, "", path)
        if letters.fallbacks:
            self.set_fallback_fonts([name for name, _ in letters.fallbacks], exact_match=False)
        if letters.is_shaped:
            self.set_text_shaping(True)

    def set_font(self, family: str | None = None, style: Any = "", size: float = 0) -> None:
        """Set the font, also where it is the one that is set already: a word in a font of this machine changed it."""
        if family is not None and self.letters.fallbacks:
            self.font_family = ""
        super().set_font(family, style, size)

    def fit(self, text: str) -> str:
        """The text as the fonts can show it."""
        return self.letters.fit(text)

    def narrow(self, text: str, width: float) -> str:
        """As much of a text as is `width` wide in the font that is set; one that was cut ends in an ellipsis."""
        shown = self.fit(text)
        if self.get_string_width(shown) <= width:
            return shown
        while shown and self.get_string_width(shown + "…") > width:
            shown = shown[:-1]
        return shown.rstrip() + "…"

    def footer(self) -> None:
        with self.decoration():
            self.set_y(-13)
            self.set_font(FAMILY, size=8)
            self.set_text_color(*SOFT)
            self.cell(self.epw * 0.8, 5, self.narrow(self.running_title, self.epw * 0.75))
            self.cell(self.epw * 0.2, 5, f"{self.page_no()} / {PAGE_COUNT}", align="R")

    def ensure(self, height: float) -> bool:
        """Start a page when less than `height` is left; whether it did."""
        if self.get_y() + height <= self.page_break_trigger:
            return False
        self.add_page()
        return True

    @contextmanager
    def element(self, kind: str, attributes: str = "") -> Iterator[Element]:
        """An element that others are in, on one page or on several."""
        outer = self.within
        self.within = self.structure.add(kind, self.page, outer, attributes=attributes)
        try:
            yield self.within
        finally:
            self.within = outer

    @contextmanager
    def tagged(self, kind: str, alt: str | None = None, attributes: str = "") -> Iterator[None]:
        """What is drawn meanwhile, on this page, is one element without others in it."""
        element = self.structure.add(kind, self.page, self.within, alt, attributes)
        with self.more_of(element, kind):
            yield

    @contextmanager
    def more_of(self, element: Element, kind: str) -> Iterator[None]:
        """What is drawn meanwhile belongs to an element that is there already."""
        number, place = self.structure.content(element, self.page)
        self.pages[self.page].struct_parents = place
        self._out(f"/{kind} <</MCID {number}>> BDC")
        yield
        self._out("EMC")

    @contextmanager
    def decoration(self) -> Iterator[None]:
        """What is drawn meanwhile says nothing: lines, numbers of pages."""
        self._out("/Artifact BMC")
        yield
        self._out("EMC")

    def paragraph(self, text: str, height: float, kind: str = "P") -> None:
        """A text over the width of the page in lines of `height`, on one page."""
        shown = self.fit(text)
        lines = self.multi_cell(self.epw, height, shown, align="L", dry_run=True, output=MethodReturnValue.LINES)
        assert isinstance(lines, list)  # by `output`
        font, size, color = self.font_style, self.font_size_pt, self.text_color
        if self.ensure(height * len(lines)):
            self.set_font(FAMILY, font, size)
            self.text_color = color
        with self.tagged(kind):
            self.multi_cell(self.epw, height, shown, align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)
