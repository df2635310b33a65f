"""The store as one tenant sees it. Routes and pages have no other: what they list, count and look up is that tenant's,
by the names that it gave, and the same number of another tenant's is unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from oraculo.core.tenants import in_tenant, local_name, queue_in, tenant_of
from oraculo.ports.catalogue import Query, Summary
from oraculo.ports.dead_letters import DeadLetter
from oraculo.ports.journal import Recorded
from oraculo.ports.statistics import Bucket, FailingQueue
from oraculo.ports.store import Store
from oraculo.ports.system_events import SystemEvent


class TenantStore:
    """`store` narrowed to `tenant`. Queues have their whole names, which workers use too.

    Whatever is asked names the tenant; a database that can hold back rows of others does that besides (`seen_by`)."""

    __slots__ = ("_names", "_store", "tenant")

    def __init__(self, store: Store, tenant: str) -> None:
        self._store = store.seen_by(tenant)
        self._names = store  # of queues: they are sought by a walk along an index, from one name to the next
        self.tenant = tenant

    # -- orchestrations ----------------------------------------------------------------------------------------------

    async def summary(self, correlation_id: str) -> Summary | None:
        """The summary of one orchestration; None when this tenant has none of that name."""
        found = await self._store.summary(in_tenant(self.tenant, correlation_id))
        return None if found is None else _named(found)

    async def find(self, query: Query) -> list[Summary]:
        """List the orchestrations that meet a query, newest first."""
        return [_named(one) for one in await self._store.find(replace(query, tenant=self.tenant))]

    async def count(self, query: Query) -> int:
        """Count the orchestrations that meet a query, up to its limit."""
        return await self._store.count(replace(query, tenant=self.tenant))

    async def destinations(self, runs: Sequence[int], limit: int) -> dict[int, list[str]]:
        """Run → the queues that it uses; of runs that were looked up as this tenant's, as the tenant calls them."""
        found = await self._store.destinations(runs, limit)
        return {run: [local_name(queue) for queue in queues] for run, queues in found.items()}

    async def nearest_deadlines(self, limit: int) -> list[Summary]:
        """List orchestrations that have not ended, the one with the least time left first."""
        return [_named(one) for one in await self._store.nearest_deadlines(limit, self.tenant)]

    async def events(self, run: int, after: int, limit: int) -> list[Recorded]:
        """Steps of the journal of an orchestration, which was looked up as this tenant's."""
        return await self._store.events(run, after, limit)

    # -- figures -----------------------------------------------------------------------------------------------------

    async def activity(self, since: datetime, step: timedelta) -> list[Bucket]:
        """Count orchestrations that began since an instant, in slices of time."""
        return await self._store.activity(since, step, self.tenant)

    async def failures(self, since: datetime) -> list[FailingQueue]:
        """Count failed tickets by queue, most first."""
        return await self._store.failures(since, self.tenant)

    async def queues(self) -> list[str]:
        """List every queue that an orchestration ever used, as the tenant calls it."""
        return [local_name(queue) for queue in await self._names.queues() if tenant_of(queue) == self.tenant]

    # -- dead letters ------------------------------------------------------------------------------------------------

    async def dead_letters(
        self,
        *,
        before: int | None = None,
        limit: int = 50,
        queue: str | None = None,
        reason: str | None = None,
        bodies: bool = True,
    ) -> list[DeadLetter]:
        """List dead letters, newest first. A queue may be named with or without the tenant."""
        meant = None if queue is None else queue_in(self.tenant, queue) or queue
        found = await self._store.dead_letters(
            before=before, limit=limit, queue=meant, reason=reason, bodies=bodies, tenant=self.tenant
        )
        return [_letter(one) for one in found]

    async def dead_letter(self, id: int) -> DeadLetter | None:
        """One dead letter; None when this tenant has none of that number."""
        found = await self._store.dead_letter(id, self.tenant)
        return None if found is None else _letter(found)

    async def dead_letter_groups(self) -> list[tuple[str, str, int]]:
        """Count dead letters by (queue, reason), most first."""
        return await self._store.dead_letter_groups(self.tenant)

    async def remove_dead_letters(self, ids: Sequence[int], outcome: str) -> int:
        """Remove dead letters; return how many were there."""
        return await self._store.remove_dead_letters(ids, outcome, self.tenant)

    # -- what happened -----------------------------------------------------------------------------------------------

    async def system_events(self, limit: int = 50, kind: str | None = None) -> list[SystemEvent]:
        """List what happened to this tenant; to `default`, what happened to the installation too."""
        return await self._store.system_events(limit, kind, self.tenant)

    async def record_system_event(self, event: SystemEvent) -> None:
        """Record an event of this tenant."""
        await self._store.record_system_event(replace(event, tenant=self.tenant))


def _named(one: Summary) -> Summary:
    """With the name that its tenant gave it."""
    name = local_name(one.correlation_id)
    return one if name is one.correlation_id else replace(one, correlation_id=name)


def _letter(one: DeadLetter) -> DeadLetter:
    """With the name that its tenant gave to the orchestration."""
    name = one.correlation_id and local_name(one.correlation_id)
    return one if name is one.correlation_id else replace(one, correlation_id=name)
