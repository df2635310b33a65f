"""Port: workers that registered, each with a lease by the store's clock.

A worker that is not heard of before its lease ends is lost. It stays listed until its tickets have been moved on
(`mark_lost`), so that a process that dies meanwhile loses none of them, and is forgotten some leases later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol


@dataclass(frozen=True, slots=True)
class StoredWorker:
    """`key` is its name inside its tenant. `body`, `beat`, `last_error` and `drain` are JSON: what it said when it
    registered, what it said last, how an order failed last, and who drains it. `alive`: its lease has not ended."""

    key: str
    body: bytes
    beat: bytes
    answered: int
    failed: int
    last_error: bytes | None
    drain: bytes | None
    registered_at: datetime
    last_seen: datetime
    lease_until: datetime
    alive: bool


@dataclass(frozen=True, slots=True)
class WorkerBeat:
    """A sign of life, and how many orders were answered and failed since the last one. None leaves as it is what was
    known before."""

    key: str
    beat: bytes | None = None
    answered: int = 0
    failed: int = 0
    last_error: bytes | None = None


@dataclass(frozen=True, slots=True)
class StopOrder:
    """What a worker is told to stop, for which ticket, and how long it has for that."""

    ticket_id: str
    attempt: int
    by: str
    grace_s: float


class WorkerLeases(Protocol):
    async def register(self, key: str, body: bytes, beat: bytes, lease: timedelta) -> StoredWorker:
        """Keep a worker, and begin its lease. One of the same name takes its place: its drain and its counts stay."""
        ...

    async def beat(self, beats: Sequence[WorkerBeat]) -> set[str]:
        """Begin these leases anew, in one transaction; return the keys of those that are registered and not lost."""
        ...

    async def workers(self, tenant: str, after: str = "", limit: int = 1000) -> list[StoredWorker]:
        """List those of a tenant that are not lost for good, by key."""
        ...

    async def worker(self, key: str) -> StoredWorker | None:
        """Return one, also when its lease has ended."""
        ...

    async def drain(self, key: str, drain: bytes | None) -> bool:
        """Let it get nothing any more, or let it work again; False when there is none of that name."""
        ...

    async def remove(self, key: str) -> bool:
        """Forget one that says goodbye; False when there is none of that name."""
        ...

    async def expired(self, limit: int) -> list[StoredWorker]:
        """List those whose lease has ended and that are not marked as lost, the longest silent first."""
        ...

    async def mark_lost(self, keys: Sequence[str]) -> list[str]:
        """Mark as lost those whose lease has still ended; return their keys. Each is returned to one caller only."""
        ...

    async def forget(self, leases: int) -> int:
        """Forget those that were lost so many of their leases ago; return how many."""
        ...

    async def drained(self) -> list[str]:
        """List the keys of those that get nothing any more."""
        ...

    async def gone(self, keys: Sequence[str]) -> list[str]:
        """Return the keys of these that are registered and whose lease has ended."""
        ...

    async def is_empty(self) -> bool:
        """Return whether no worker is registered."""
        ...
