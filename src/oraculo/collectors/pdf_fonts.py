"""The fonts of a PDF, embedded: Noto Sans for Latin, Greek and Cyrillic ships with the package; other alphabets are
written with fonts of this machine, where it has them.

What no font has is written in Latin letters ("日本" → "RiBen", "🚀" → ":rocket:"), never dropped as a row of boxes; the
HTML beside the PDF has the original. Alphabets whose letters change by their neighbours, or run from right to left,
need `uharfbuzz` too (the extra `alphabets`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path

from anyascii import anyascii
from fontTools.ttLib import TTFont, TTLibError

FAMILY = "noto"
STYLES: Mapping[str, str] = {"": "NotoSans-Regular.ttf", "B": "NotoSans-Bold.ttf"}
FOLDERS = (
    "/usr/share/fonts",
    "/usr/local/share/fonts",
    "/Library/Fonts",
    "/System/Library/Fonts/Supplemental",
    "C:/Windows/Fonts",
)
# Looked for in this order. The first group needs no shaping; a font of it is used as it is.
PLAIN_FONTS = (
    "NotoSansArmenian-Regular.ttf",
    "NotoSansGeorgian-Regular.ttf",
    "NotoSansEthiopic-Regular.ttf",
    "NotoSansCherokee-Regular.ttf",
    "NotoSansSymbols-Regular.ttf",
    "NotoSansSymbols2-Regular.ttf",
    "NotoSansMath-Regular.ttf",
    "NotoSansCJK-Regular.ttc",
    "DroidSansFallbackFull.ttf",
    "Arial Unicode.ttf",
    "msyh.ttc",
    "DejaVuSans.ttf",
)
SHAPED_FONTS = (
    "NotoSansHebrew-Regular.ttf",
    "NotoSansArabic-Regular.ttf",
    "NotoSansDevanagari-Regular.ttf",
    "NotoSansBengali-Regular.ttf",
    "NotoSansGurmukhi-Regular.ttf",
    "NotoSansGujarati-Regular.ttf",
    "NotoSansTamil-Regular.ttf",
    "NotoSansTelugu-Regular.ttf",
    "NotoSansKannada-Regular.ttf",
    "NotoSansMalayalam-Regular.ttf",
    "NotoSansSinhala-Regular.ttf",
    "NotoSansThai-Regular.ttf",
    "NotoSansLao-Regular.ttf",
    "NotoSansKhmer-Regular.ttf",
    "NotoSansMyanmar-Regular.ttf",
)
SHAPED_RANGES = ((0x0590, 0x08FF), (0x0900, 0x109F), (0x1780, 0x17FF), (0xFB1D, 0xFDFF), (0xFE70, 0xFEFF))
FOLDER_DEPTH_MAX_FILES = 20_000  # of one folder of fonts that are looked through


class Lettering:
    """The fonts that some texts need, and what those texts become in them."""

    def __init__(self, texts: Iterable[str], folders: Iterable[str] = FOLDERS, shapes: bool | None = None) -> None:
        """`shapes` tells whether letters may be shaped; by default, whether `uharfbuzz` is there."""
        self.shapes = find_spec("uharfbuzz") is not None if shapes is None else shapes
        self.fallbacks: list[tuple[str, Path]] = []  # name of a font, its file
        self._known = set(own_characters())
        wanted = {ord(one) for text in texts for one in unicodedata.normalize("NFC", text)} - self._known
        if wanted:
            self._look(wanted, tuple(folders))
        self.is_shaped = any(name in SHAPED_FONTS for name, _ in self.fallbacks)
        self.is_whole = True  # nothing had to be written in Latin letters so far

    def _look(self, wanted: set[int], folders: tuple[str, ...]) -> None:
        shaped = {one for one in wanted if _needs_shaping(one)}
        there = fonts_there(folders)
        for names, left in ((PLAIN_FONTS, wanted - shaped), (SHAPED_FONTS if self.shapes else (), shaped)):
            for name in names:
                if not left:
                    break
                path = there.get(name)
                has = frozenset() if path is None else _characters(path) & left
                if path is not None and has:
                    self.fallbacks.append((name, path))
                    self._known |= has
                    left = left - has

    def fit(self, text: str) -> str:
        """The text with every character in one of the fonts."""
        composed = unicodedata.normalize("NFC", text)
        if all(ord(one) in self._known for one in composed):
            return composed
        self.is_whole = False
        spelled = "".join(one if ord(one) in self._known else anyascii(one) for one in composed)
        return " ".join(spelled.split()) or "?"


def _needs_shaping(character: int) -> bool:
    return any(first <= character <= last for first, last in SHAPED_RANGES)


@cache
def own_path(style: str) -> Path:
    """The file of a style."""
    with as_file(files("oraculo.collectors") / "fonts" / STYLES[style]) as path:
        return path


@cache
def own_characters() -> frozenset[int]:
    return _characters(own_path(""))


@cache
def _characters(path: Path) -> frozenset[int]:
    """The characters that a font has; none when it cannot be read."""
    try:
        with path.open("rb") as file, TTFont(file, fontNumber=0, lazy=True) as font:
            return frozenset(font.getBestCmap())
    except (OSError, TTLibError, ValueError, KeyError, AttributeError, TypeError):
        return frozenset()


@cache
def fonts_there(folders: tuple[str, ...]) -> Mapping[str, Path]:
    """File name → where it is, of the fonts that are looked for."""
    looked_for = {*PLAIN_FONTS, *SHAPED_FONTS}
    found: dict[str, Path] = {}
    for folder in folders:
        for number, path in enumerate(Path(folder).rglob("*.tt[fc]")):
            if path.name in looked_for:
                found.setdefault(path.name, path)
            if number >= FOLDER_DEPTH_MAX_FILES:
                break
    return found
