"""Tells the address in the metadata of a ticket of Fluxo C how the ticket goes.

A projection of the journal. What is for one address goes there in order, and addresses do not wait for each other. An
address that takes nothing after a few tries is left alone for a while: what it missed then is counted and said.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

import structlog

from oraculo.core.events import OrchestrationStarted
from oraculo.core.flow.cognitive import TIPO
from oraculo.core.flow.profile import specs_in
from oraculo.ports.notifier import Notice, Notifier, Outcome
from oraculo.ports.projection import Entry, Sink
from oraculo.wire.flow import ticket_notices
from oraculo.wire.flow.ticket_notices import TicketNotice

log = structlog.get_logger("oraculo.ticket_webhooks")

ATTEMPTS_MAX = 3
RETRY_PAUSE_S = 2.0  # doubled with each attempt
SENDERS_MAX = 5
LEFT_ALONE_S = 60.0
STANDARD, ORIGINAL = "standard", "neural-hive"
MISSED = "missed"  # not tried, because its address is left alone


class TicketWebhooks(Sink):
    """`style` is STANDARD, or ORIGINAL for the headers of the original beside those of Standard Webhooks, signed with
    `key`. `counts` are notices by what became of them."""

    name = "ticket_webhooks"
    tipo = TIPO
    only_lately = timedelta(days=1)

    def __init__(
        self,
        notifier: Notifier,
        style: str = STANDARD,
        key: bytes | None = None,
        *,
        pause_s: float = RETRY_PAUSE_S,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._notifier = notifier
        self._style = style
        self._key = key
        self._pause_s = pause_s
        self._elapsed = elapsed
        self._senders = asyncio.Semaphore(SENDERS_MAX)
        self._left_alone: dict[str, float] = {}  # address → until when
        self.counts: Counter[str] = Counter({MISSED: 0, **{outcome.value: 0 for outcome in Outcome}})

    def wants(self, started: OrchestrationStarted) -> bool:
        return any(ticket_notices.url_of(spec) is not None for spec in specs_in(started.plan))

    async def record(self, entries: Iterable[Entry]) -> None:
        by_address: dict[str, list[TicketNotice]] = {}
        for entry in entries:
            step = entry.step
            for one in ticket_notices.notices(entry.state, step.first, step.at, step.events):
                by_address.setdefault(one.url, []).append(one)
        await asyncio.gather(*(self._send_all(url, found) for url, found in by_address.items()))

    async def _send_all(self, url: str, found: Sequence[TicketNotice]) -> None:
        async with self._senders:
            for one in found:
                if self._left_alone.get(url, 0.0) > self._elapsed():
                    self.counts[MISSED] += 1
                    continue
                self._left_alone.pop(url, None)
                outcome = await self._send(one)
                self.counts[outcome] += 1
                if outcome is not Outcome.DELIVERED:
                    self._left_alone[url] = self._elapsed() + LEFT_ALONE_S

    async def _send(self, one: TicketNotice) -> Outcome:
        headers = ticket_notices.original_headers(one, self._key) if self._style == ORIGINAL else {}
        notice = Notice(one.url, one.event_id, one.body, headers=headers)
        for attempt in range(1, ATTEMPTS_MAX + 1):
            receipt = await self._notifier.notify(notice)
            if receipt.outcome is not Outcome.RETRY:
                break
            if attempt < ATTEMPTS_MAX:
                await asyncio.sleep(self._pause_s * 2 ** (attempt - 1))
        if receipt.outcome is not Outcome.DELIVERED:
            log.warning(
                "webhook of a ticket not taken", ticket_id=one.ticket_id, said=one.event_type, why=receipt.detail
            )
        return receipt.outcome
