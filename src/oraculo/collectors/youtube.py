"""The collector of YouTube channels, from the public Atom feed that each one has: its latest 15 videos, no key."""

from __future__ import annotations

import re
from typing import Any

from oraculo.collectors import parameters
from oraculo.collectors.dates import iso_z
from oraculo.collectors.feeds import FeedAddress, base_setting, read_feeds
from oraculo.collectors.parse import FeedEntry

_CHANNEL = re.compile(r"[A-Za-z0-9_-]{1,64}")


async def youtube(parametros: dict[str, Any]) -> list[dict[str, Any]]:
    """The latest videos of one or more channels.

    Parameters: `canal` (a channel id) or `canais` (a list of them); optional `limite` (items per channel), `periodo`
    ("2025", "2025-10" or "2025-10-14", by the day of publication in UTC) and `timeout_s` (per channel).

    Items come channel by channel in the order asked for, newest first: `fonte`, `canal`, `canal_nome`, `titulo`,
    `url`, `publicado_em` (ISO 8601, Z, or null), `resumo`, and where the feed has them `id`, `atualizado_em`,
    `visualizacoes`, `miniatura`. Videos exist but none is of the period: an empty list.

    All or nothing: if any channel fails the whole collection fails, and the error names every channel that did; half
    of the data is never passed off as all of it. The error is definitive only when each of the failures is. To
    keep the channels that answered, ask for one collection per channel: the fan-in policy then decides.
    """
    channels = parameters.names(parametros, "canal", "canais")
    for channel in channels:
        if not _CHANNEL.fullmatch(channel):
            raise parameters.invalid(
                f"canal {channel[:80]!r}: use o identificador do canal (UC…), não o nome nem o endereço"
            )
    base = base_setting("ORACULO_YOUTUBE_BASE")
    addresses = [
        FeedAddress(f"canal {channel}", f"{base}/feeds/videos.xml?channel_id={channel}") for channel in channels
    ]
    feeds = await read_feeds(addresses, parametros)
    return [
        _item(channel, feed.title, entry)
        for channel, feed in zip(channels, feeds, strict=True)
        for entry in feed.entries
    ]


def _item(channel: str, channel_name: str, entry: FeedEntry) -> dict[str, Any]:
    extras = {
        "id": entry.identity or None,
        "atualizado_em": None if entry.updated_at is None else iso_z(entry.updated_at),
        "visualizacoes": entry.views,
        "miniatura": entry.thumbnail,
    }
    return {
        "fonte": "youtube",
        "canal": channel,
        "canal_nome": channel_name or entry.author or channel,
        "titulo": entry.title,
        "url": entry.url,
        "publicado_em": None if entry.published_at is None else iso_z(entry.published_at),
        "resumo": entry.summary,
        **{key: value for key, value in extras.items() if value is not None},
    }
