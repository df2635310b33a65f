"""What the feed collectors share: settings, and many feeds read at once without losing a failure.

Settings are read when a collection runs, so a change of environment needs no restart:

    ORACULO_YOUTUBE_BASE   where channel feeds are        https://www.youtube.com
    ORACULO_BLOG_BASE      what relative blog addresses are joined to
    ORACULO_FEEDS_TIMEOUT  seconds that one feed may take 20
    ORACULO_FEEDS_ALLOW    host:port, comma-separated, that may be read though not public; the bases always may
    ORACULO_RELATORIOS     root directory of the reports  relatorios
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx2

from oraculo.errors import SettingsError, WorkError
from oraculo.workers import parameters
from oraculo.workers.dates import in_period
from oraculo.workers.fetch import fetch, new_client
from oraculo.workers.guard import host_port
from oraculo.workers.parse import Entry, Feed, parse_feed
from oraculo.workers.text import http_url

CONCURRENCY = 8
_UNDATED = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a feed is, and what to call it when it fails."""

    name: str
    url: str


def setting(name: str, default: str = "") -> str:
    """A variable of the environment as it is now; blank counts as absent."""
    return os.environ.get(name, "").strip() or default


def base_setting(name: str, default: str = "") -> str:
    """A setting that is the beginning of an address, without the final slash; empty when there is none."""
    value = setting(name, default)
    if value and http_url(value) is None:
        raise SettingsError(name, value, "an http or https address")
    return value.rstrip("/")


async def read_feeds(addresses: Sequence[Address], parametros: Mapping[str, Any]) -> list[Feed]:
    """Every feed, filtered by `periodo` and `limite`, in the order asked for; each newest first.

    All or nothing: when any feed fails, a `WorkError` names each failure, so that no caller takes a part for the
    whole. It is definitive only when every failure is: while one of them may heal, trying again is worth it, and in
    the end the message names just what somebody has to correct.
    """
    period, limit = parameters.period(parametros), parameters.limit(parametros)
    timeout_s = parameters.timeout_s(parametros) or _default_timeout_s()
    slots, parsing = asyncio.Semaphore(CONCURRENCY), asyncio.Lock()

    async def read(client: httpx2.AsyncClient, address: Address) -> Feed | WorkError:
        try:
            async with slots:
                body = await fetch(client, address.url, timeout_s)
                async with parsing:  # one tree in memory at a time
                    feed = await asyncio.to_thread(parse_feed, body, address.url)
        except WorkError as error:
            return error
        return Feed(feed.title, _selected(feed.entries, period, limit))

    async with new_client(_trusted()) as client:
        outcomes = await asyncio.gather(*(read(client, address) for address in addresses))
    failures = [
        (address.name, outcome)
        for address, outcome in zip(addresses, outcomes, strict=True)
        if isinstance(outcome, WorkError)
    ]
    if failures:
        raise _joined(failures, len(addresses))
    return [outcome for outcome in outcomes if isinstance(outcome, Feed)]


def _selected(entries: Sequence[Entry], period: str | None, limit: int | None) -> tuple[Entry, ...]:
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
    """`host:port` of the configured bases, and those that the operator lists."""
    bases = [base_setting(name) for name in ("ORACULO_YOUTUBE_BASE", "ORACULO_BLOG_BASE")]
    listed = [entry.strip() for entry in setting("ORACULO_FEEDS_ALLOW").split(",") if entry.strip()]
    for entry in listed:
        host, _, port = entry.rpartition(":")
        if not host or not port.isdecimal():
            raise SettingsError("ORACULO_FEEDS_ALLOW", entry, "host:port, separated by commas")
    return frozenset([*(host_port(httpx2.URL(base)) for base in bases if base), *listed])


def _default_timeout_s() -> float:
    text = setting("ORACULO_FEEDS_TIMEOUT", "20")
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= parameters.MAX_TIMEOUT_S:
        raise SettingsError("ORACULO_FEEDS_TIMEOUT", text, f"seconds, above 0 and up to {parameters.MAX_TIMEOUT_S:g}")
    return seconds
