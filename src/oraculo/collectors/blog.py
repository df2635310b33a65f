"""The collector of blogs: any RSS 2.0, RSS 1.0 (RDF) or Atom feed by its address."""

from __future__ import annotations

from typing import Any

from oraculo.collectors import parameters
from oraculo.collectors.dates import iso_z
from oraculo.collectors.feeds import FeedAddress, base_setting, read_feeds
from oraculo.collectors.parse import FeedEntry
from oraculo.collectors.text import http_url, without_credentials


async def blog(parametros: dict[str, Any]) -> list[dict[str, Any]]:
    """The latest posts of one or more feeds.

    Parameters: `url` or `urls` (a list), each http(s), or a path that begins with "/" and is added to
    `ORACULO_BLOG_BASE`; hosts must be public, or that base's, or listed in `ORACULO_FEEDS_ALLOW`. Optional: `limite`
    (items per feed), `periodo` ("2025", "2025-10" or "2025-10-14", by the day of publication in UTC; posts without a
    date are in no period) and `timeout_s` (per feed).

    Items come feed by feed in the order asked for, newest first, undated last: `fonte`, `blog` (the feed's address),
    `blog_nome`, `titulo`, `url` (or null), `publicado_em` (ISO 8601, Z, or null), `resumo`, and where the feed has
    them `id`, `autor`, `atualizado_em`. Posts exist but none is of the period: an empty list.

    All or nothing, as with `youtube`: if any feed fails the whole collection fails, and the error names every feed
    that did; it is definitive only when each of the failures is. For what is left, ask for one collection per feed.
    """
    asked = parameters.names(parametros, "url", "urls")
    addresses = [FeedAddress(without_credentials(url)[:200], _absolute(url)) for url in asked]
    feeds = await read_feeds(addresses, parametros)
    return [
        _item(without_credentials(address.url), feed.title, entry)
        for address, feed in zip(addresses, feeds, strict=True)
        for entry in feed.entries
    ]


def _absolute(url: str) -> str:
    if url.startswith("/"):
        base = base_setting("ORACULO_BLOG_BASE")
        if not base:
            raise parameters.invalid(f"url {url[:200]!r} é relativa e ORACULO_BLOG_BASE não está definida")
        # Added, not joined: "//host" must stay below the base.
        return base + url
    if http_url(url) is None:
        raise parameters.invalid(f"url {without_credentials(url)[:200]!r}: deve ser http ou https")
    return url


def _item(feed_url: str, feed_title: str, entry: FeedEntry) -> dict[str, Any]:
    extras = {
        "id": entry.identity or None,
        "autor": entry.author or None,
        "atualizado_em": None if entry.updated_at is None else iso_z(entry.updated_at),
    }
    return {
        "fonte": "blog",
        "blog": feed_url,
        "blog_nome": feed_title or feed_url,
        "titulo": entry.title,
        "url": entry.url,
        "publicado_em": None if entry.published_at is None else iso_z(entry.published_at),
        "resumo": entry.summary,
        **{key: value for key, value in extras.items() if value is not None},
    }
