"""Port: the tenants that the store knows, with how much each may ask for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from oraculo.core.access import NO_LIMITS, Limits


@dataclass(frozen=True, slots=True)
class StoredTenant:
    """`limits` are of all that belongs to the tenant together."""

    name: str
    created_at: datetime
    limits: Limits = NO_LIMITS


class TenantRegistry(Protocol):
    async def tenants(self) -> list[StoredTenant]:
        """List the tenants that were registered, by name. `default` is there whether or not it is listed."""
        ...

    async def add_tenant(self, name: str, at: datetime) -> None:
        """Register a tenant without limits; one that is known stays as it is."""
        ...

    async def put_tenant(self, tenant: StoredTenant) -> None:
        """Register a tenant, or replace the limits of the one of that name."""
        ...

    async def remove_tenant(self, name: str) -> bool:
        """Forget a tenant and its limits, not what belongs to it; return whether it was known."""
        ...

    async def open_runs_in(self, tenant: str, limit: int) -> int:
        """Count orchestrations of a tenant that have not ended, up to `limit` and no further."""
        ...

    async def dead_letters_in(self, tenant: str, limit: int) -> int:
        """Count dead letters of a tenant that are kept, up to `limit` and no further."""
        ...
