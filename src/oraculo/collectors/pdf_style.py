"""Fonts, colours and measures (millimetres) of the PDF."""

from __future__ import annotations

FONT = "noto"  # `pdf_fonts.FAMILY`
MARGIN = 15.0
INK = (28, 35, 48)
SOFT = (92, 102, 117)
LINE = (214, 219, 227)
ACCENT = (47, 98, 181)
WARN = (138, 75, 0)
