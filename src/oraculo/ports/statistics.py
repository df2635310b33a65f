"""Port: figures over all orchestrations and messages of a store."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from oraculo.core.vocabulary import Status


@dataclass(slots=True)
class Bucket:
    """How many orchestrations that began in one slice of time have this status now."""

    at: datetime  # where the slice begins
    status: Status
    count: int


@dataclass(slots=True)
class FailingQueue:
    """A queue whose tickets failed or timed out, in orchestrations that have ended."""

    destino: str
    tickets: int
    runs: int


class Statistics(Protocol):
    """Where a tenant is given, over what belongs to it."""

    async def count_by_status(self, tenant: str | None = None) -> dict[str, int]:
        """Count the orchestrations of each status."""
        ...

    async def activity(self, since: datetime, step: timedelta, tenant: str | None = None) -> list[Bucket]:
        """Count orchestrations that began since an instant, in slices of `step` that begin at whole multiples of it,
        oldest first."""
        ...

    async def failures(self, since: datetime, tenant: str | None = None) -> list[FailingQueue]:
        """Count failed tickets by queue, most first, in orchestrations that began since an instant and have ended."""
        ...

    async def counts(self) -> dict[tuple[str, str], int]:
        """Count messages by (queue, verdict), since the database exists."""
        ...

    async def queues(self) -> list[str]:
        """List every queue that an orchestration in the store ever used."""
        ...
