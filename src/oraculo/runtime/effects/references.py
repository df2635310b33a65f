"""Claim check: what was collected goes beside an order instead of inside it, where it is too large for the broker.

The data are stored once for all orders that get them, in pieces, so that they are never whole in memory a second time;
`prepare` does that in a thread before the orders are written. When nothing can be stored, the data go inside.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

import structlog

from oraculo.core.consolidation import collected
from oraculo.core.flow.profile import flow_in
from oraculo.core.state import Orchestration
from oraculo.core.tenants import tenant_of
from oraculo.core.vocabulary import Kind
from oraculo.ports.data_keys import UnknownDataKeyError
from oraculo.ports.order_data import OpenedData, OrderData, StoredData
from oraculo.wire import strict_json
from oraculo.wire.order_links import OrderLinks
from oraculo.wire.payloads import data_key

log = structlog.get_logger("oraculo.perform")

REMEMBERED_MAX = 1000  # stored data, so that many orders store them once
KEPT_LONGER = timedelta(hours=1)  # than the order allows, for work that begins late
SWEEP_INTERVAL_S = 600.0
WRITTEN_ITEM_MAX_BYTES = 5  # that a ticket without data adds to the list of a map: null and a comma


class OrderReferences:
    """Orders whose data have more than `limit` bytes refer to them."""

    def __init__(
        self, data: OrderData, links: OrderLinks, limit: int, reload_keys: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self._reload_keys = reload_keys
        self.data = data
        self.links = links
        self._limit = limit
        self._stored: OrderedDict[tuple[int, object], tuple[StoredData, datetime]] = OrderedDict()

    def may_refer(self, state: Orchestration) -> bool:
        """False when all that an orchestration holds is not too much for an order."""
        return state.data_bytes + WRITTEN_ITEM_MAX_BYTES * len(state.tickets) > self._limit

    def prepare(self, state: Orchestration, positions: Iterable[int], now: datetime) -> list[tuple[object, Any]]:
        """(key, items) of the data of these orders that have to be stored first. Data are looked at once, however many
        orders get them."""
        found: dict[object, Any] = {}
        if flow_in(state.plan) is not None:
            return []
        latest: dict[object, tuple[int, datetime]] = {}
        for position in positions:
            if state.plan.tasks[position].kind is Kind.EXECUCAO:
                key, until = data_key(state, position), deadline(state, position, now)
                if key not in latest or latest[key][1] < until:
                    latest[key] = (position, until)
        for key, (position, until) in latest.items():
            kept = self._stored.get((state.run, key))
            if kept is not None and kept[1] >= until:
                continue
            items = collected(state, position)
            if sum(len(item["dados"] or b"") for item in items) > self._limit:
                found[key] = items
        return list(found.items())

    async def store(self, state: Orchestration, wanted: list[tuple[object, Any]], until: datetime) -> None:
        """Store what `prepare` found. Whatever goes wrong with that stops no order."""
        tenant = tenant_of(state.correlation_id)
        for key, items in wanted:
            try:
                stored = await asyncio.to_thread(self.data.put, _chunks(items), until, tenant)
                await asyncio.to_thread(self.links.load)
            except Exception as error:
                log.warning("collected data cannot be stored; orders carry them", error=str(error))
                return
            self._stored[state.run, key] = (stored, until)
            self._stored.move_to_end((state.run, key))
            if len(self._stored) > REMEMBERED_MAX:
                self._stored.popitem(last=False)

    def refer(self, state: Orchestration, position: int, until: datetime) -> dict[str, Any] | None:
        """What an order says of its data instead of carrying them; None when it carries them: they are small, or could
        not be stored."""
        if not self._stored or state.plan.tasks[position].kind is not Kind.EXECUCAO:
            return None
        found = self._stored.get((state.run, data_key(state, position)))
        if found is None or found[1] < until:
            return None
        stored, kept = found
        return {"url": self.links.url(stored.digest, kept), "sha256": stored.digest, "bytes": stored.size}

    async def open(self, digest: str) -> OpenedData | None:
        """The stored data of that digest; None when there are none, or they cannot be read any more."""
        try:
            return await asyncio.to_thread(self.data.open, digest)
        except UnknownDataKeyError:  # another process has made it meanwhile
            if self._reload_keys is None:
                return None
        await self._reload_keys()
        try:
            return await asyncio.to_thread(self.data.open, digest)
        except UnknownDataKeyError:
            return None

    async def run(self, now: Any) -> None:
        """Forget what is not needed any more, for ever. `now` gives the time."""
        while True:
            await asyncio.sleep(SWEEP_INTERVAL_S)
            try:
                await asyncio.to_thread(self.data.sweep, now())
            except OSError as error:
                log.warning("collected data cannot be swept", error=str(error))


def deadline(state: Orchestration, position: int, now: datetime) -> datetime:
    """Until when the answer to an order that is written now is waited for."""
    return state.by_deadline(now + state.plan.tasks[position].timeout)


def _chunks(items: list[dict[str, Any]]) -> Iterator[bytes]:
    """The JSON list of the items, one after the other."""
    mark = b"["
    for item in items:
        yield mark
        yield strict_json.dumps(item)
        mark = b","
    yield b"]" if items else b"[]"
