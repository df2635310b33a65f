"""Limits of keys and tenants: how many orchestrations may be open at once, and how many are submitted in a second; of
tenants also dead letters that are kept, bytes in a second and streams at once.

What is open or kept is counted in the store, so all processes on it count the same; what this process has accepted and
not stored yet is added. Rates are buckets of one second's worth, and streams are counted, for each process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from oraculo.core.access import NO_LIMITS, Actor, Limits
from oraculo.core.tenants import DEFAULT_TENANT
from oraculo.errors import QuotaError
from oraculo.ports.api_keys import ApiKeys
from oraculo.ports.tenants import TenantRegistry
from oraculo.runtime.tenants import KnowsTenants


class QuotaStore(ApiKeys, TenantRegistry, Protocol):
    pass


@dataclass(slots=True)
class _Bucket:
    """Submissions that may come at once, as of an instant."""

    left: float
    at: datetime


@dataclass(frozen=True, slots=True)
class _Rate:
    """How much may be done in a second, what it is counted under, and how a refusal names it."""

    counted: str
    per_second: float
    limit: str
    told: str


class Quotas:
    """`tenants` knows the limits of tenants; without it they have none."""

    def __init__(self, store: QuotaStore, now: Callable[[], datetime], tenants: KnowsTenants | None = None) -> None:
        self._store = store
        self._now = now
        self._tenants = tenants
        self._buckets: dict[str, _Bucket] = {}
        self._streams: dict[str, int] = {}  # tenant → open here
        self._under_way: dict[str, int] = {}  # key or tenant → accepted here, not stored yet

    def _limits(self, actor: Actor) -> Limits:
        """Those of the tenant that the actor works in."""
        return NO_LIMITS if self._tenants is None else self._tenants.limits_of(actor.tenant)

    def apply_to(self, actor: Actor) -> bool:
        """False when neither the actor nor its tenant, which is `default`, has any limit."""
        if actor.limits is not NO_LIMITS or actor.tenant != DEFAULT_TENANT:
            return True
        return self._tenants is not None and self._tenants.limits_of(DEFAULT_TENANT) is not NO_LIMITS

    async def check(self, actor: Actor, count: int = 1) -> None:
        """Raise QuotaError when the actor, or its tenant, may not submit so many more now."""
        if self._tenants is not None and actor.tenant != DEFAULT_TENANT:
            await self._tenants.ensure(actor.tenant)
        own, shared = actor.limits, self._limits(actor)
        if own.open is not None:
            _check_open(f"the key {actor.id}", own.open, await self._open_of_key(actor), count)
        if shared.open is not None:
            stored = await self._store.open_runs_in(actor.tenant, shared.open)
            open = stored + self._under_way.get(_tenant(actor), 0)
            _check_open(f"the tenant {actor.tenant}", shared.open, open, count)
        if shared.dead_letters is not None:
            kept = await self._store.dead_letters_in(actor.tenant, shared.dead_letters)
            if kept >= shared.dead_letters:
                raise QuotaError(
                    "dead_letters", f"the tenant {actor.tenant} has {kept} dead letters; discard some first"
                )
        for rate in _rates(actor, shared):
            self._spend(rate, count)

    def refuse_spent(self, actor: Actor) -> None:
        """Raise QuotaError when a rate of the actor, or of its tenant, leaves no room for one submission now. `check`
        would say the same, once the submission was read."""
        for rate in _rates(actor, self._limits(actor)):
            if rate.counted in self._buckets:
                self._bucket(rate, 1)

    def spend_bytes(self, actor: Actor, size: int) -> None:
        """Count the bytes of a body; QuotaError when the tenant sends more in a second than it may."""
        most = self._limits(actor).bytes_per_second
        if most is not None and size:
            told = f"the tenant {actor.tenant} may send {{}} bytes a second"
            self._spend(_Rate(f"bytes:{actor.tenant}", most, "bytes_per_second", told), size)

    def open_stream(self, actor: Actor) -> Callable[[], None]:
        """Count a stream as open until what is returned is called; QuotaError when the tenant has too many."""
        tenant, most = actor.tenant, self._limits(actor).streams
        if most is not None and self._streams.get(tenant, 0) >= most:
            raise QuotaError("streams", f"the tenant {tenant} may have {most} streams open")
        self._streams[tenant] = self._streams.get(tenant, 0) + 1

        def close() -> None:
            left = self._streams[tenant] - 1
            if left:
                self._streams[tenant] = left
            else:
                del self._streams[tenant]

        return close

    async def _open_of_key(self, actor: Actor) -> int:
        return await self._store.open_runs_of(actor.id) + self._under_way.get(actor.id, 0)

    def _spend(self, rate: _Rate, count: int) -> None:
        self._bucket(rate, count).left -= count  # more than a second's worth at once is paid back before the next

    def _bucket(self, rate: _Rate, count: int) -> _Bucket:
        """The bucket as it is now; QuotaError when it has not so much."""
        now, most = self._now(), max(1.0, rate.per_second)
        bucket = self._buckets.setdefault(rate.counted, _Bucket(most, now))
        bucket.left = min(most, bucket.left + rate.per_second * max(0.0, (now - bucket.at).total_seconds()))
        bucket.at = now
        if bucket.left < min(count, most):
            wait_s = (min(count, most) - bucket.left) / rate.per_second
            raise QuotaError(rate.limit, rate.told.format(f"{rate.per_second:g}"), wait_s)
        return bucket

    @contextmanager
    def under_way(self, actor: Actor, count: int = 1) -> Iterator[None]:
        """Count so many as open while they are being stored."""
        limited = ((actor.id, actor.limits), (_tenant(actor), self._limits(actor)))
        counted = [key for key, limits in limited if limits.open is not None]
        for key in counted:
            self._under_way[key] = self._under_way.get(key, 0) + count
        try:
            yield
        finally:
            for key in counted:
                left = self._under_way.pop(key) - count
                if left:
                    self._under_way[key] = left


def _tenant(actor: Actor) -> str:
    """What a tenant is counted under; no key has such an id."""
    return f"tenant:{actor.tenant}"


def _rates(actor: Actor, shared: Limits) -> Iterator[_Rate]:
    """The rates of submissions of an actor and of its tenant."""
    if actor.limits.per_second is not None:
        told = f"the key {actor.id} may submit {{}} orchestrations a second"
        yield _Rate(actor.id, actor.limits.per_second, "per_second", told)
    if shared.per_second is not None:
        told = f"the tenant {actor.tenant} may submit {{}} orchestrations a second"
        yield _Rate(_tenant(actor), shared.per_second, "per_second", told)


def _check_open(who: str, most: int, open: int, count: int) -> None:
    if open + count > most:
        raise QuotaError("open", f"{who} may have {most} orchestrations open, {open} are")
