"""Port: objectives, and the alerts that were told. An alert has an id, and is told once, however often it is found."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ToldAlert:
    """`kind` is the word of its type, `body` the record as it travels. `seq` is given by the store."""

    id: str
    tenant: str
    run: int | None
    kind: str
    at: datetime
    body: bytes
    seq: int = 0


@dataclass(frozen=True, slots=True)
class StoredSlo:
    name: str
    body: bytes
    actor: str
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class Freeze:
    """A freeze that is in force: releases of what `service` stands for should wait."""

    slo: str
    service: str
    actions: tuple[str, ...]
    since: datetime
    reason: str


class Freezes(Protocol):
    def active(self, tenant: str) -> tuple[Freeze, ...]:
        """The freezes of a tenant that are in force, by what is in memory: neither waits nor fails."""
        ...


class SlaRegistry(Protocol):
    async def put_slo(self, slo: StoredSlo) -> bool:
        """Keep an objective; return whether it is new."""
        ...

    async def slos(self) -> list[StoredSlo]:
        """List the objectives of all tenants, by name."""
        ...

    async def remove_slo(self, name: str) -> bool:
        """Remove an objective; return whether it was there."""
        ...

    async def sla_alerts(
        self, tenant: str, limit: int, before: int | None = None, run: int | None = None
    ) -> list[ToldAlert]:
        """List alerts of a tenant, newest first; those numbered below `before`, or of one run."""
        ...

    async def later_sla_alerts(self, after: int, limit: int) -> list[ToldAlert]:
        """List alerts numbered above `after`, oldest first, without gaps."""
        ...
