"""Text from strangers, made safe to keep: no control characters, no markup, no links but http and https.

Nothing here escapes for an output format; the modules that write HTML or PDF do that.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from urllib.parse import urljoin, urlsplit

# C0 and C1 controls, lone surrogates, bidirectional overrides and isolates, noncharacters. The zero-width joiner
# stays: emoji and Indic scripts need it.
_UNWANTED = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]"
)
_MARKUP_LIMIT = 20_000
_URL_LIMIT = 2_048
_SILENT = frozenset({"script", "style", "template", "head"})
_TAG_START = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9:-]{0,40})")
_TAG_REST = re.compile(r"""(?:[^>"']|"[^"]*"|'[^']*'){0,400}+>""")  # what is longer is taken to end at the next >
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
    return clean(html.unescape("".join(_pieces(markup[:_MARKUP_LIMIT]))))


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


def readable_url(url: str, limit: int = 60) -> str:
    """A link as people read it: host and path, without scheme, `www.` or credentials."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].removeprefix("www.")
    query = f"?{parts.query}" if parts.query else ""
    return shorten(f"{host}{parts.path.rstrip('/')}{query}", limit)


def _pieces(markup: str) -> Iterator[str]:
    """The text between the tags; a space where a tag begins a new line. Every character is passed once."""
    position = 0
    while (start := markup.find("<", position)) >= 0:
        yield markup[position:start]
        if markup.startswith("<!--", start):
            position = _after(markup, "-->", start + 4)
            continue
        opened = _TAG_START.match(markup, start)
        if opened is None:  # as in 1 < 2
            yield "<"
            position = start + 1
            continue
        ended = _TAG_REST.match(markup, opened.end())
        position = _after(markup, ">", opened.end()) if ended is None else ended.end()
        name = opened[2].lower()
        if name in _SILENT and not opened[1]:
            closing = re.compile(f"</{name}[^>]*>?", re.IGNORECASE).search(markup, position)
            position = len(markup) if closing is None else closing.end()
        elif name in _BREAKS:
            yield " "
    yield markup[position:]


def _after(text: str, mark: str, start: int) -> int:
    found = text.find(mark, start)
    return len(text) if found < 0 else found + len(mark)
