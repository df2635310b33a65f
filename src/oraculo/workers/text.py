"""Text from strangers, made safe to keep: no control characters, no markup, no links but http and https.

Nothing here escapes for an output format; whoever writes HTML or PDF does that.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

# C0 and C1 controls, lone surrogates, bidirectional overrides and isolates, noncharacters. The zero-width joiner
# stays: emoji and Indic scripts need it.
_UNWANTED = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]"
)
_MARKUP_LIMIT = 20_000
_URL_LIMIT = 2_048
_SILENT = frozenset({"script", "style", "template", "head"})
_BREAKS = frozenset({"p", "br", "div", "li", "tr", "td", "th", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote"})


def clean(value: str) -> str:
    """One line of printable text: unwanted characters become spaces, runs of white space become one."""
    return " ".join(_UNWANTED.sub(" ", value).split())


def shorten(value: str, limit: int) -> str:
    """At most `limit` characters, ending in an ellipsis when something was cut."""
    if len(value) <= limit:
        return value
    return value[: limit - 1].rstrip() + "…"


def plain(markup: str) -> str:
    """The readable text of a piece of HTML, as one line; scripts and styles are left out."""
    if "<" not in markup and "&" not in markup:
        return clean(markup)
    extractor = _TextExtractor()
    extractor.feed(markup[:_MARKUP_LIMIT])
    extractor.close()
    return clean("".join(extractor.pieces))


def http_url(value: str, base: str = "") -> str | None:
    """The address if it is an absolute http(s) one, made so with `base` when relative; otherwise None."""
    address = clean(value).replace(" ", "%20")
    if not address or len(address) > _URL_LIMIT:
        return None
    try:
        joined = urljoin(base, address) if base else address
        parts = urlsplit(joined)
        host = parts.hostname
    except ValueError:
        return None
    return joined if parts.scheme in {"http", "https"} and host else None


def without_credentials(url: str) -> str:
    """The address without `user:password@`, fit for messages and items."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return clean(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def number_text(value: int) -> str:
    """12.345, as written in Brazil."""
    return f"{value:,}".replace(",", ".")


def count_text(value: int, one: str, many: str) -> str:
    """`1 item`, `2 itens`."""
    return f"{number_text(value)} {one if value == 1 else many}"


def readable_url(url: str, limit: int = 60) -> str:
    """A link as people read it: host and path, without scheme, `www.` or credentials."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].removeprefix("www.")
    query = f"?{parts.query}" if parts.query else ""
    return shorten(f"{host}{parts.path.rstrip('/')}{query}", limit)


class _TextExtractor(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SILENT:
            self._silent += 1
        elif tag in _BREAKS:
            self.pieces.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT:
            self._silent = max(0, self._silent - 1)
        elif tag in _BREAKS:
            self.pieces.append(" ")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.pieces.append(data)
