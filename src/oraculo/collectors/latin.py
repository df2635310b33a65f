"""Any text in the alphabet that the PDF's own fonts have (Windows-1252: Portuguese, typographic quotes, dashes, €).

The fourteen standard PDF fonts need no file and keep reports small, but know no other script. What they lack is
written in Latin letters ("Привет" → "Privet", "🚀" → ":rocket:"), never dropped as a row of question marks; the HTML
beside the PDF has the original.
"""

from __future__ import annotations

import unicodedata

from anyascii import anyascii

ENCODING = "windows-1252"


def latin(text: str) -> str:
    """The text with every character in `ENCODING`; characters that are there already stay as they are."""
    composed = unicodedata.normalize("NFC", text)
    if _fits(composed):
        return composed
    spelled = "".join(character if _fits(character) else anyascii(character) for character in composed)
    return " ".join(spelled.split()) or "?"


def _fits(text: str) -> bool:
    try:
        text.encode(ENCODING)
    except UnicodeEncodeError:
        return False
    return True
