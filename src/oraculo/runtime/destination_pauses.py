"""Destinations that are paused, one or all: kept in the store, so that every process that sends orders knows of them.

The process that is asked applies it at once; the others look every second. What may not go waits in the
process that has to send it, and goes when the pause is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import datetime

import structlog

from oraculo.core.access import Actor
from oraculo.core.tenants import tenant_of
from oraculo.errors import StoreError
from oraculo.ports.clock import Clock
from oraculo.ports.destination_pauses import EVERYTHING, DestinationPause, DestinationPauses
from oraculo.ports.system_events import SystemEvent
from oraculo.runtime.breakers import BreakerBook
from oraculo.runtime.loops import Loop

log = structlog.get_logger("oraculo.pauses")

LOOK_INTERVAL_S = 1.0
PAUSED_EVENT, RESUMED_EVENT = "destination_paused", "destination_resumed"


class DestinationBook:
    """Knows what is paused, pauses and resumes. `breakers` hold orders back, too; None: there are none."""

    def __init__(self, store: DestinationPauses, clock: Clock, breakers: BreakerBook | None = None) -> None:
        self.breakers = breakers
        self._store = store
        self._clock = clock
        self._pauses: dict[str, DestinationPause] = {}
        self._listeners: list[Callable[[], None]] = []
        self._changed = asyncio.Event()

    # -- for senders -------------------------------------------------------------------------------------------------

    @property
    def any_paused(self) -> bool:
        """False while orders may go to every queue."""
        return bool(self._pauses)

    def holds(self, queue: str) -> bool:
        """Return whether no order may go to this queue now."""
        return bool(self._pauses) and (queue in self._pauses or EVERYTHING in self._pauses)

    def listen(self, listener: Callable[[], None]) -> None:
        """Call it when something may go that was held."""
        self._listeners.append(listener)

    async def wait_open(self, queue: str, timeout_s: float) -> bool:
        """Wait until this queue is not paused; False when it still is after so many seconds."""
        try:
            async with asyncio.timeout(timeout_s):
                while self.holds(queue):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    # -- for operators -----------------------------------------------------------------------------------------------

    @property
    def pauses(self) -> list[DestinationPause]:
        """What is paused, by target."""
        return [self._pauses[target] for target in sorted(self._pauses)]

    @property
    def holds_any(self) -> bool:
        """True while orders for some destination are kept back."""
        return bool(self._pauses) or bool(self.breakers and self.breakers.open)

    def hold_of(self, queue: str) -> tuple[str, datetime, str] | None:
        """What keeps orders for a queue from going out: ("paused" or "breaker", since when, why); None: nothing."""
        pause = self._pauses.get(queue) or self._pauses.get(EVERYTHING)
        if pause is not None:
            return "paused", pause.since, pause.reason
        for one in () if self.breakers is None else self.breakers.open:
            if one.queue == queue and one.opened_at is not None:
                return "breaker", one.opened_at, one.error
        return None

    async def pause(self, target: str, reason: str, actor: Actor) -> bool:
        """Let no order go to a queue, or to any; durable when it returns. False: it was so before."""
        now = self._clock.now()
        event = SystemEvent(PAUSED_EVENT, now, _body(target, reason, actor), tenant=tenant_of(target))
        changed = await self._store.put_destination_pause(DestinationPause(target, actor.id, reason, now), event)
        if changed:
            log.warning("destination paused", queue=target, actor=actor.id, reason=reason)
        await self.refresh()
        return changed

    async def resume(self, target: str, reason: str, actor: Actor) -> bool:
        """Let orders go there again. False: it was not paused."""
        body = _body(target, reason, actor)
        event = SystemEvent(RESUMED_EVENT, self._clock.now(), body, tenant=tenant_of(target))
        changed = await self._store.remove_destination_pause(target, event)
        if changed:
            log.warning("destination resumed", queue=target, actor=actor.id, reason=reason)
        await self.refresh()
        return changed

    # -- life --------------------------------------------------------------------------------------------------------

    def loops(self) -> Iterator[tuple[str, Loop]]:
        """What runs beside the engine."""
        yield "pauses", self.run
        if self.breakers is not None:
            yield "breakers", self.breakers.run

    async def begin(self) -> None:
        """Read how destinations stand before anything is sent."""
        await self.refresh()
        if self.breakers is not None:
            await self.breakers.refresh()

    async def refresh(self) -> None:
        """Read what is paused now."""
        found = {one.target: one for one in await self._store.destination_pauses()}
        opened = self._pauses.keys() - found.keys()
        self._pauses = found
        if opened:
            self._changed.set()
            for listener in self._listeners:
                listener()

    async def run(self) -> None:
        """Look what others have paused, for ever. While the store is away all stays as it is."""
        while True:
            await asyncio.sleep(LOOK_INTERVAL_S)
            try:
                await self.refresh()
            except StoreError as error:
                log.debug("pauses not read: store unavailable", error=str(error))


def _body(target: str, reason: str, actor: Actor) -> dict[str, str | None]:
    return {"fila": None if target == EVERYTHING else target, "ator": actor.id, "motivo": reason}
