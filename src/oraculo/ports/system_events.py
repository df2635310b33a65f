"""Port: what happened to the system itself, not to one orchestration."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from oraculo.core.tenants import DEFAULT_TENANT


@dataclass(slots=True)
class SystemEvent:
    """One such event: publishing switched to another broker, dead letters were discarded."""

    kind: str
    at: datetime
    body: dict[str, Any]
    id: int = 0
    tenant: str = DEFAULT_TENANT  # whose affair it is; that of the whole installation is `default`'s


class SystemEventLog(Protocol):
    async def record_system_event(self, event: SystemEvent) -> None:
        """Record an event; its number is given by the store."""
        ...

    async def system_events(
        self, limit: int = 50, kind: str | None = None, tenant: str | None = None
    ) -> list[SystemEvent]:
        """List events, newest first; only those of one kind or tenant when that is given."""
        ...

    async def later_system_events(self, after: int, limit: int) -> list[SystemEvent]:
        """List events numbered above `after`, oldest first, without gaps."""
        ...
