"""Atom, RSS 2.0 and RSS 1.0 (RDF) documents as one kind of `Feed`.

The XML is a stranger's: it is parsed with defusedxml, which refuses entity declarations, so neither an entity bomb nor
an external reference is ever expanded. Entries are looked for where feeds have them, not at every depth, and 1,000 of
them are read: the time that a document takes grows with its length and no faster.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from oraculo.collectors.dates import parse_instant
from oraculo.collectors.text import clean, http_url, plain, shorten
from oraculo.errors import WorkError

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

ATOM = "{http://www.w3.org/2005/Atom}"
RSS1 = "{http://purl.org/rss/1.0/}"
RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
DC = "{http://purl.org/dc/elements/1.1/}"
CONTENT = "{http://purl.org/rss/1.0/modules/content/}"
MEDIA = "{http://search.yahoo.com/mrss/}"
YOUTUBE = "{http://www.youtube.com/xml/schemas/2015}"

TITLE_LIMIT = 300
SUMMARY_LIMIT = 500
MAX_ENTRIES = 1000
_MEDIA_PATHS = ("", f"{MEDIA}group/", f"{MEDIA}group/{MEDIA}community/")  # where media elements of an entry stand


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One thing that a feed announces; texts are plain, links are http(s) or None."""

    title: str
    url: str | None
    published_at: datetime | None
    updated_at: datetime | None
    summary: str
    author: str
    identity: str
    views: int | None = None
    thumbnail: str | None = None


@dataclass(frozen=True, slots=True)
class ParsedFeed:
    """A feed's own title and its entries, in the document's order."""

    title: str
    entries: tuple[FeedEntry, ...]


def parse_feed(body: bytes, url: str) -> ParsedFeed:
    """The feed in `body`, whose relative links are joined to `url`; it has at least one entry."""
    root = _root(body)
    if root.tag == f"{ATOM}feed":
        feed = ParsedFeed(
            _atom_text(root, "title"), _kept(_atom_entry(item, url) for item in root.findall(f"{ATOM}entry"))
        )
    elif root.tag == "rss" and (channel := root.find("channel")) is not None:
        feed = ParsedFeed(_title(channel, ""), _kept(_rss_entry(item, "", url) for item in channel.findall("item")))
    elif root.tag == f"{RDF}RDF" and (channel := root.find(f"{RSS1}channel")) is not None:
        feed = ParsedFeed(
            _title(channel, RSS1), _kept(_rss_entry(item, RSS1, url) for item in root.findall(f"{RSS1}item"))
        )
    else:
        raise _not_a_feed()
    if not feed.entries:
        raise WorkError("o feed não tem nenhuma entrada", codigo="feed_vazio", definitivo=True)
    return feed


def _root(body: bytes) -> Element:
    document = body.lstrip()
    try:
        root: Element = fromstring(document)
    except DefusedXmlException as error:
        raise WorkError(
            "XML recusado: declara entidades ou referências externas", codigo="xml_invalido", definitivo=True
        ) from error
    except ParseError as error:
        if document and _looks_foreign(document):
            raise _not_a_feed() from error
        # Often a transfer or a generation that was cut short, which the next attempt may find whole.
        raise WorkError(f"XML inválido: {error}", codigo="xml_invalido") from error
    except (ValueError, LookupError) as error:
        raise WorkError(f"XML em codificação não suportada: {error}", codigo="xml_invalido", definitivo=True) from error
    return root


def _looks_foreign(document: bytes) -> bool:
    """Whether bytes that are no XML never meant to be: an HTML page, JSON, plain text."""
    start = document[:1024].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return False
    return not start.startswith(b"<") or start.startswith(b"<!doctype html") or b"<html" in start


def _not_a_feed() -> WorkError:
    return WorkError("a resposta não é um feed RSS nem Atom", codigo="nao_e_feed", definitivo=True)


def _kept(entries: Iterator[FeedEntry]) -> tuple[FeedEntry, ...]:
    return tuple(entry for entry in islice(entries, MAX_ENTRIES) if entry.title or entry.url or entry.summary)


def _atom_entry(entry: Element, base: str) -> FeedEntry:
    published = _instant(entry, f"{ATOM}published")
    updated = _instant(entry, f"{ATOM}updated")
    summary = _atom_text(entry, "summary") or _atom_text(entry, "content") or _media_text(entry)
    return FeedEntry(
        title=shorten(_atom_text(entry, "title"), TITLE_LIMIT),
        url=_atom_link(entry, base),
        published_at=published or updated,
        updated_at=updated,
        summary=shorten(summary, SUMMARY_LIMIT),
        author=shorten(_text(entry, f"{ATOM}author/{ATOM}name"), TITLE_LIMIT),
        identity=shorten(_text(entry, f"{YOUTUBE}videoId") or _text(entry, f"{ATOM}id"), SUMMARY_LIMIT),
        views=_views(entry),
        thumbnail=_attribute_url(_media(entry, "thumbnail"), base),
    )


def _rss_entry(item: Element, namespace: str, base: str) -> FeedEntry:
    guid = _text(item, "guid")
    link = _text(item, f"{namespace}link")
    if not link and guid and (element := item.find("guid")) is not None and element.get("isPermaLink") != "false":
        link = guid if guid.startswith(("http://", "https://")) else ""
    markup = _raw(item, f"{namespace}description") or _raw(item, f"{CONTENT}encoded")
    return FeedEntry(
        title=_title(item, namespace),
        url=http_url(link, base),
        published_at=_instant(item, "pubDate") or _instant(item, f"{DC}date"),
        updated_at=None,
        summary=shorten(plain(markup), SUMMARY_LIMIT),
        author=shorten(_text(item, f"{DC}creator") or _text(item, "author"), TITLE_LIMIT),
        identity=shorten(guid or clean(item.get(f"{RDF}about", "")) or link, SUMMARY_LIMIT),
    )


def _title(element: Element, namespace: str) -> str:
    # RSS says nothing about markup in titles; entities escaped twice are common, tags are left as the text they are.
    return shorten(clean(html.unescape(_raw(element, f"{namespace}title"))), TITLE_LIMIT)


def _atom_text(element: Element, name: str) -> str:
    """An Atom text construct: plain, escaped HTML or inline XHTML."""
    found = element.find(ATOM + name)
    if found is None:
        return ""
    if found.get("type") in {"html", "text/html"}:
        return plain("".join(found.itertext()))
    return clean("".join(found.itertext()))


def _atom_link(entry: Element, base: str) -> str | None:
    links = entry.findall(f"{ATOM}link")
    chosen = next((link for link in links if link.get("rel", "alternate") == "alternate"), links[0] if links else None)
    return None if chosen is None else http_url(chosen.get("href", ""), base)


def _attribute_url(element: Element | None, base: str) -> str | None:
    return None if element is None else http_url(element.get("url", ""), base)


def _media(entry: Element, name: str) -> Element | None:
    found = (entry.find(f"{path}{MEDIA}{name}") for path in _MEDIA_PATHS)
    return next((one for one in found if one is not None), None)


def _media_text(entry: Element) -> str:
    found = _media(entry, "description")
    return "" if found is None else clean("".join(found.itertext()))


def _views(entry: Element) -> int | None:
    statistics = _media(entry, "statistics")
    views = "" if statistics is None else statistics.get("views", "")
    return int(views) if views.isascii() and views.isdigit() and len(views) < 19 else None


def _raw(element: Element, path: str) -> str:
    found = element.find(path)
    return "" if found is None else "".join(found.itertext())


def _text(element: Element, path: str) -> str:
    return clean(_raw(element, path))


def _instant(element: Element, path: str) -> datetime | None:
    return parse_instant(_raw(element, path))
