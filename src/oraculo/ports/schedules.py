"""Port: schedules, each a document and where it stands. A change is written only over the version it was made of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class StoredSchedule:
    """`body` and `state` are JSON. `due_at`: when it has to be looked at; None: not by itself."""

    name: str
    body: bytes
    state: bytes
    due_at: datetime | None
    version: int = 0  # 0: not stored yet


@dataclass(frozen=True, slots=True)
class DueSchedules:
    """Schedules that have to be looked at, by the clock of the store, and when the next one has to be."""

    at: datetime
    schedules: tuple[StoredSchedule, ...]
    next_at: datetime | None


class ScheduleRegistry(Protocol):
    async def save_schedule(self, schedule: StoredSchedule) -> StoredSchedule | None:
        """Write a schedule over the one of its version (0: there must be none of that name) and return it with its new
        version; None when it is not of that version any more."""
        ...

    async def schedule(self, name: str) -> StoredSchedule | None:
        """The schedule of that name; None when there is none."""
        ...

    async def schedules(self, tenant: str, after: str, limit: int) -> list[StoredSchedule]:
        """List schedules of a tenant whose names come after `after`, by name."""
        ...

    async def remove_schedule(self, name: str) -> bool:
        """Remove a schedule; return whether it was there."""
        ...

    async def due_schedules(self, now: datetime, limit: int) -> DueSchedules:
        """Schedules that are due, those that have waited longest first. A store with a clock of its own goes by that,
        not by `now`."""
        ...
