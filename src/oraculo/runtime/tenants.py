"""The tenants that this process knows: their limits, and who is told when there is another one.

A tenant is there from the moment that a key is made for it, limits are given to it, or an actor of it submits. Other
processes learn of it by looking at the store now and then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import structlog

from oraculo.core.access import NO_LIMITS, Limits
from oraculo.core.tenants import DEFAULT_TENANT
from oraculo.errors import StoreError
from oraculo.ports.clock import Clock
from oraculo.ports.tenants import TenantRegistry

log = structlog.get_logger("oraculo.tenants")

LOOK_INTERVAL_S = 5.0


class KnowsTenants(Protocol):
    def limits_of(self, tenant: str) -> Limits:
        """How much all of a tenant together may ask for."""
        ...

    async def ensure(self, tenant: str) -> None:
        """Know a tenant that an actor works in."""
        ...


class TenantBook:
    """`appeared` is called once for each tenant other than `default`, as soon as it is known."""

    def __init__(self, store: TenantRegistry, clock: Clock, appeared: Callable[[str], None]) -> None:
        self._store = store
        self._clock = clock
        self._appeared = appeared
        self._limits: dict[str, Limits] = {}
        self._known = {DEFAULT_TENANT}

    def limits_of(self, tenant: str) -> Limits:
        return self._limits.get(tenant, NO_LIMITS)

    async def ensure(self, tenant: str) -> None:
        if tenant not in self._known:
            await self._store.add_tenant(tenant, self._clock.now())
            self._welcome(tenant)

    def _welcome(self, tenant: str) -> None:
        if tenant not in self._known:
            self._known.add(tenant)
            log.info("tenant appeared", tenant=tenant)
            self._appeared(tenant)

    async def look(self) -> None:
        """Read the tenants from the store."""
        found = await self._store.tenants()
        self._limits = {one.name: one.limits for one in found if one.limits != NO_LIMITS}
        for one in found:
            self._welcome(one.name)

    async def run(self) -> None:
        """Look again and again. A store that is away changes nothing that is known."""
        while True:
            await asyncio.sleep(LOOK_INTERVAL_S)
            try:
                await self.look()
            except StoreError as error:
                log.warning("tenants not read: store unavailable", error=str(error))
