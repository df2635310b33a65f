"""Requests that wait to open runs, in turns between tenants: one that asks for much does not hold up the others."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from oraculo.core.tenants import tenant_of
from oraculo.ports.work import Work

SHARE_MAX_REQUESTS = 64  # that a tenant is given in one turn


class IntakeQueue:
    """The requests of one tenant stay in the order in which they came."""

    def __init__(self) -> None:
        self._tenants: dict[str, deque[Work]] = {}  # in the order of their turns
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Work]:
        return (work for waiting in self._tenants.values() for work in waiting)

    def append(self, work: Work) -> None:
        tenant = tenant_of(work.correlation_id)
        waiting = self._tenants.get(tenant)
        if waiting is None:
            waiting = self._tenants[tenant] = deque()
        waiting.append(work)
        self._count += 1

    def take(self, limit: int) -> list[Work]:
        """Take up to so many; a tenant that had its turn comes after all others."""
        taken: list[Work] = []
        while self._tenants and len(taken) < limit:
            tenant = next(iter(self._tenants))
            waiting = self._tenants.pop(tenant)
            share = min(limit - len(taken), SHARE_MAX_REQUESTS, len(waiting))
            taken += [waiting.popleft() for _ in range(share)]
            if waiting:
                self._tenants[tenant] = waiting
        self._count -= len(taken)
        return taken

    def has_more_than_its_share(self, name: str, limit: int) -> bool:
        """Whether the tenant of this name has waiting what would be its part of so many, or more."""
        waiting = self._tenants.get(tenant_of(name))
        return waiting is not None and len(waiting) * len(self._tenants) >= limit

    def clear(self) -> None:
        self._tenants.clear()
        self._count = 0
