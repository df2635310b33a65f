"""What the feed collectors share: settings, and many feeds read at once without losing a failure.

Settings are read when a collection runs, so a change of environment needs no restart. They are declared in
`oraculo.settings.groups.CollectorsSettings`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx2

from oraculo.collectors import parameters
from oraculo.collectors.dates import in_period
from oraculo.collectors.fetch import fetch, new_client
from oraculo.collectors.guard import host_port
from oraculo.collectors.parse import FeedEntry, ParsedFeed, parse_feed
from oraculo.collectors.text import http_url
from oraculo.errors import SettingsError, WorkError
from oraculo.settings.settings import COLLECTOR_VARIABLES

CONCURRENT_FEEDS = 8
_DEFAULTS = {variable.name: variable.default for variable in COLLECTOR_VARIABLES}
_UNDATED = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class FeedAddress:
    """The address of a feed, and its name in failures."""

    name: str
    url: str


def setting(name: str) -> str:
    """The value of a setting as it is now; blank counts as absent."""
    return os.environ.get(name, "").strip() or _DEFAULTS[name]


def base_setting(name: str) -> str:
    """The setting that is the beginning of an address, without the final slash; empty when there is none."""
    value = setting(name)
    if value and http_url(value) is None:
        raise SettingsError(name, value, "an http or https address")
    return value.rstrip("/")


async def read_feeds(addresses: Sequence[FeedAddress], parametros: Mapping[str, Any]) -> list[ParsedFeed]:
    """Read every feed, filtered by `periodo` and `limite`, in the order asked for; each newest first.

    All or nothing: when any feed fails, a `WorkError` names each failure, so that no caller takes a part for the
    whole. It is definitive only when every failure is: while one of them may heal, trying again is worth it, and in
    the end the message names just what has to be corrected.
    """
    period, limit = parameters.period(parametros), parameters.limit(parametros)
    timeout_s = parameters.timeout_s(parametros) or _default_timeout_s()
    slots, parsing = asyncio.Semaphore(CONCURRENT_FEEDS), asyncio.Lock()

    async def read(client: httpx2.AsyncClient, address: FeedAddress) -> ParsedFeed | WorkError:
        try:
            async with slots:
                body = await fetch(client, address.url, timeout_s)
                async with parsing:  # one tree in memory at a time
                    feed = await asyncio.to_thread(parse_feed, body, address.url)
        except WorkError as error:
            return error
        return ParsedFeed(feed.title, _selected(feed.entries, period, limit))

    async with new_client(_trusted()) as client:
        outcomes = await asyncio.gather(*(read(client, address) for address in addresses))
    failures = [
        (address.name, outcome)
        for address, outcome in zip(addresses, outcomes, strict=True)
        if isinstance(outcome, WorkError)
    ]
    if failures:
        raise _joined(failures, len(addresses))
    return [outcome for outcome in outcomes if isinstance(outcome, ParsedFeed)]


def _selected(entries: Sequence[FeedEntry], period: str | None, limit: int | None) -> tuple[FeedEntry, ...]:
    wanted = [entry for entry in entries if in_period(entry.published_at, period)]
    newest_first = sorted(wanted, key=lambda entry: entry.published_at or _UNDATED, reverse=True)
    return tuple(newest_first[:limit])


def _joined(failures: Sequence[tuple[str, WorkError]], asked: int) -> WorkError:
    codes = {error.codigo for _, error in failures}
    details = "; ".join(f"{name}: {error.mensagem}" for name, error in failures)
    message = details if asked == 1 else f"{len(failures)} de {asked} falharam — {details}"
    return WorkError(
        message,
        codigo=codes.pop() if len(codes) == 1 else "falhas_diversas",
        definitivo=all(error.definitivo for _, error in failures),
    )


def _trusted() -> frozenset[str]:
    """The `host:port` of the configured bases and of what the operator lists."""
    names = ("ORACULO_YOUTUBE_BASE", "ORACULO_BLOG_BASE")
    bases = [base_setting(name) for name in names if os.environ.get(name, "").strip()]
    listed = [entry.strip() for entry in setting("ORACULO_FEEDS_ALLOW").split(",") if entry.strip()]
    for entry in listed:
        host, _, port = entry.rpartition(":")
        if not host or not port.isdecimal():
            raise SettingsError("ORACULO_FEEDS_ALLOW", entry, "host:port, separated by commas")
    return frozenset([*(host_port(httpx2.URL(base)) for base in bases), *listed])


def _default_timeout_s() -> float:
    text = setting("ORACULO_FEEDS_TIMEOUT")
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= parameters.MAX_TIMEOUT_S:
        raise SettingsError("ORACULO_FEEDS_TIMEOUT", text, f"seconds, above 0 and up to {parameters.MAX_TIMEOUT_S:g}")
    return seconds
