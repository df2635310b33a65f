"""Tells others of alerts: each in order, at least once and with its id, from a cursor of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import structlog

from oraculo.errors import OraculoError, SinkUnavailableError
from oraculo.ports.cursors import Cursors
from oraculo.ports.notifier import Notice, Notifier, Outcome
from oraculo.ports.sla import SlaRegistry, ToldAlert
from oraculo.runtime.project import ALERTS_SUFFIX

log = structlog.get_logger("oraculo.sla")

BATCH_ALERTS = 100
POLL_INTERVAL_S = 0.5
RETRY_PAUSE_FIRST_S, RETRY_PAUSE_MAX_S = 0.5, 30.0
Send = Callable[[Sequence[ToldAlert]], Awaitable[None]]


class AlertStore(Cursors, SlaRegistry, Protocol):
    """The parts of a store that deliveries read."""


class AlertDelivery:
    """`send` returns when all of them were taken; else it raises, and they come again."""

    def __init__(self, store: AlertStore, name: str, send: Send) -> None:
        self._store = store
        self._cursor = f"{name}{ALERTS_SUFFIX}"
        self._send = send
        self.delivered = 0

    async def run(self) -> None:
        pause = RETRY_PAUSE_FIRST_S
        while True:
            try:
                more = await self.round()
                pause = RETRY_PAUSE_FIRST_S
            except OraculoError as error:
                log.warning("alerts wait for their receiver", delivery=self._cursor, error=str(error))
                await asyncio.sleep(pause)
                pause = min(2 * pause, RETRY_PAUSE_MAX_S)
                continue
            if not more:
                await asyncio.sleep(POLL_INTERVAL_S)

    async def round(self) -> bool:
        """Send the next alerts, if this process is the one that does; return whether there may be more."""
        after = await self._store.claim_cursor(self._cursor)
        if after is None:
            return False
        found = await self._store.later_sla_alerts(after, BATCH_ALERTS)
        if found:
            await self._send(found)
            await self._store.move_cursor(self._cursor, found[-1].seq)
            self.delivered += len(found)
        return len(found) == BATCH_ALERTS


def to_webhook(notifier: Notifier, url: str) -> Send:
    """Send each alert as a webhook of its own; its id is the webhook's."""

    async def send(alerts: Sequence[ToldAlert]) -> None:
        for one in alerts:
            receipt = await notifier.notify(Notice(url, one.id, one.body))
            if receipt.outcome is Outcome.RETRY:
                raise SinkUnavailableError(receipt.detail)
            if receipt.outcome is Outcome.REFUSED:
                log.error("the webhook of alerts refused one for good", alert=one.id, reason=receipt.detail)

    return send
