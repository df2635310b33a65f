"""Publishing goes to another broker: a metric and a system event (and, where it happens, a log line)."""

from __future__ import annotations

import asyncio

import structlog

from oraculo.adapters.brokers.failover import Switch
from oraculo.adapters.sinks.prometheus import Metrics
from oraculo.errors import StoreError
from oraculo.ports.clock import Clock
from oraculo.ports.store import Store
from oraculo.ports.system_events import SystemEvent

log = structlog.get_logger("oraculo")


class SwitchRecorder:
    def __init__(self, store: Store, clock: Clock, metrics: Metrics) -> None:
        self._store = store
        self._clock = clock
        self._metrics = metrics
        self._tasks: set[asyncio.Task[None]] = set()

    def switched(self, switch: Switch) -> None:
        """Count it, and store it in the background."""
        self._metrics.switched(switch.source, switch.target)
        body = {"de": switch.source, "para": switch.target, "motivo": switch.reason, "route_epoch": switch.epoch}
        task = asyncio.create_task(self._record(SystemEvent("broker_switched", self._clock.now(), body)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _record(self, event: SystemEvent) -> None:
        try:
            await self._store.record_system_event(event)
        except StoreError as error:
            log.error("a system event could not be stored", kind=event.kind, body=event.body, error=str(error))

    async def close(self) -> None:
        """Return when all of them are stored, or could not be."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
