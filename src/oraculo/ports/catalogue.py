"""Port: the catalogue. Summaries of orchestrations, looked up by name, status, queue, type and time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from oraculo.core.tenants import DEFAULT_TENANT
from oraculo.core.vocabulary import Status


@dataclass(slots=True)
class Summary:
    """One orchestration as it stands, without its events. `correlation_id` is its name inside (core/tenants.py)."""

    run: int
    correlation_id: str
    status: Status
    tipo: str | None
    created_at: datetime
    closed_at: datetime | None
    total: int
    open: int
    failed: int
    fingerprint: str
    version: int
    deadline: datetime | None = None  # None: it has none, or was written before it was kept
    labels: tuple[str, ...] = ()
    paused_at: datetime | None = None  # since when it is paused


@dataclass(slots=True)
class Query:
    """The conditions that an orchestration has to meet, all of them; one that is empty or None is none. `label` and
    `text` are as the tenant says them; without a tenant, as they are inside."""

    status: Sequence[Status] = ()
    destino: str | None = None  # queue
    tipo: str | None = None
    label: str | None = None
    paused: bool | None = None
    since: datetime | None = None
    until: datetime | None = None  # began before
    text: str | None = None  # the beginning of a correlation_id
    before_run: int | None = None  # cursor
    after_run: int | None = None  # only newer ones
    limit: int = 50
    tenant: str | None = DEFAULT_TENANT  # None: of every tenant
    limited: bool = False  # only those whose profile has a ceiling, or that were written before it was kept


class Catalogue(Protocol):
    async def summary(self, correlation_id: str) -> Summary | None:
        """The summary of one orchestration; None when there is none of that name."""
        ...

    async def find(self, query: Query) -> list[Summary]:
        """List the orchestrations that meet a query, newest first, `query.limit` at most."""
        ...

    async def count(self, query: Query) -> int:
        """Count the orchestrations that meet a query, up to `query.limit` and no further."""
        ...

    async def retries(self, run: int, limit: int) -> list[Summary]:
        """List the runs that try this one again, the newest first, `limit` at most."""
        ...

    async def destinations(self, runs: Sequence[int], limit: int) -> dict[int, list[str]]:
        """Run → the queues that it uses, those with failures first, `limit` in all at most."""
        ...

    async def nearest_deadlines(self, limit: int, tenant: str | None = None) -> list[Summary]:
        """List orchestrations that have not ended, of one tenant or of all, the one with the least time left first."""
        ...
