"""What users do with objectives: put, look, remove; and read the alerts that were told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from oraculo.core.access import Actor
from oraculo.core.sla.budget import Budget
from oraculo.core.tenants import in_tenant, local_name, tenant_of
from oraculo.errors import UnknownIdError
from oraculo.ports.sla import Freeze, SlaRegistry, StoredSlo, ToldAlert
from oraculo.ports.system_events import SystemEvent, SystemEventLog
from oraculo.runtime.sla.monitor import SlaMonitor
from oraculo.wire import sla as wire
from oraculo.wire import strict_json
from oraculo.wire.sla import Objetivo

EVENT_KIND = "slo_changed"


class ObjectiveStore(SlaRegistry, SystemEventLog, Protocol):
    """The parts of a store that the book reads and writes."""


@dataclass(frozen=True, slots=True)
class Objective:
    """An objective as it stands; `budget` is None where nothing is measured."""

    name: str
    document: Objetivo
    stored: StoredSlo
    budget: Budget | None


class ObjectiveBook:
    """The objectives of one tenant. `monitor` measures them; None: nothing does."""

    def __init__(
        self, store: ObjectiveStore, now: Callable[[], datetime], monitor: SlaMonitor | None, tenant: str
    ) -> None:
        self._store = store
        self._now = now
        self._monitor = monitor
        self._tenant = tenant

    @property
    def measured(self) -> bool:
        return self._monitor is not None

    async def all(self) -> list[Objective]:
        return [self._shown(one) for one in await self._store.slos() if tenant_of(one.name) == self._tenant]

    async def get(self, name: str) -> Objective:
        """UnknownIdError: there is none of that name."""
        inside = in_tenant(self._tenant, name)
        for one in await self._store.slos():
            if one.name == inside:
                return self._shown(one)
        raise UnknownIdError("slo", name)

    async def put(self, name: str, value: Any, actor: Actor) -> tuple[Objective, bool]:
        """Keep an objective, and return whether it is new. WireError: the document is not one."""
        body = strict_json.dumps(wire.written(wire.parse(value)))
        stored = StoredSlo(in_tenant(self._tenant, name), body, actor.id, self._now())
        new = await self._store.put_slo(stored)
        await self._record("put", name, actor)
        return self._shown(stored), new

    async def remove(self, name: str, actor: Actor) -> None:
        """UnknownIdError: there is none of that name."""
        if not await self._store.remove_slo(in_tenant(self._tenant, name)):
            raise UnknownIdError("slo", name)
        await self._record("removed", name, actor)

    async def alerts(self, limit: int, before: int | None = None, run: int | None = None) -> list[ToldAlert]:
        """Alerts that were told, newest first."""
        return await self._store.sla_alerts(self._tenant, limit, before, run)

    def freezes(self) -> tuple[Freeze, ...]:
        return () if self._monitor is None else self._monitor.active(self._tenant)

    def _shown(self, stored: StoredSlo) -> Objective:
        known = None if self._monitor is None else self._monitor.objectives
        counts = known is not None and stored.name in known.slos
        budget = known.budget(stored.name, self._now()) if known is not None and counts else None
        return Objective(local_name(stored.name), wire.read(stored.body), stored, budget)

    async def _record(self, deed: str, name: str, actor: Actor) -> None:
        body = {"acao": deed, "slo": name, "ator": actor.id}
        await self._store.record_system_event(SystemEvent(EVENT_KIND, self._now(), body, tenant=self._tenant))
