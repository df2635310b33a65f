"""Who is there to work on a queue, over HTTP or by offers, and how good each was: what a choice is made from.

What workers do is counted here, by their leases and answers; what they say about themselves (how much at once, what
they can do) comes from the registry, where they did. Durations are of this process; they are learnt again after a
start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import orjson

from oraculo.core.affinity import NO_TIES, TicketTies
from oraculo.core.candidates import TicketNeeds, WorkerFacts
from oraculo.core.commands import RecordResult
from oraculo.core.tenants import local_name, queue_in, tenant_of
from oraculo.core.vocabulary import SecurityLevel
from oraculo.ports.clock import Clock
from oraculo.ports.workers import StoredWorker
from oraculo.runtime.seen_workers import WorkerSeen
from oraculo.runtime.workers import WorkerBook

REGISTRY_LOOK_S = 1.0
LATELY = timedelta(seconds=5)  # a worker over HTTP that was not seen for longer, and has nothing, is not counted on
NEWEST_DURATION_SHARE = 0.3  # of the mean that a new duration makes up
DURATIONS_MAX = 20_000  # (worker, queue) whose durations are kept

Factor = Callable[[str, str], float]  # key of a worker, queue → what its score is multiplied by

Marks = Callable[[str, str], tuple[float, float]]  # the same → the marks of its trail: the good ones, all of them


def no_factor(_key: str, _queue: str) -> float:
    return 1.0


def no_marks(_key: str, _queue: str) -> tuple[float, float]:
    return 0.0, 0.0


@dataclass(frozen=True, slots=True)
class _Declared:
    """What a worker said when it registered."""

    body: bytes
    queues: frozenset[str]
    concurrency: int
    capabilities: frozenset[str]
    level: SecurityLevel
    resources: Mapping[str, int]
    cancellable: bool
    own_queue: str | None  # where it gets offers; None: it asks over HTTP, or takes what comes


@dataclass(slots=True)
class _Held:
    key: str
    queue: str
    needs: TicketNeeds
    since: float
    weight: float = 1.0
    ties: TicketTies = NO_TIES


@dataclass(slots=True)
class KnownWorkers:
    """`seen` are the workers of this process; `factor` lets others have a say in scores, `marks` in how long an order
    takes until it went well; `offers`: workers of a broker that wait for offers can be chosen."""

    seen: Mapping[str, WorkerSeen]
    clock: Clock
    registry: WorkerBook
    factor: Factor = no_factor
    marks: Marks = no_marks
    offers: bool = False
    cache_hits: int = 0
    _declared: dict[str, _Declared] = field(default_factory=dict)
    _stored: dict[str, dict[str, StoredWorker]] = field(default_factory=dict)  # by tenant: those that are alive
    _looked_at: dict[str, tuple[float, int]] = field(default_factory=dict)  # when, and how many had come or gone
    _held: dict[str, _Held] = field(default_factory=dict)  # by lease
    _by_key: dict[str, set[str]] = field(default_factory=dict)  # key → its leases
    _durations: dict[tuple[str, str], float] = field(default_factory=dict)

    # -- what happens ------------------------------------------------------------------------------------------------

    async def look(self, queue: str) -> None:
        """Read who is registered: every second, and when one has registered or left in this process."""
        tenant, now = tenant_of(queue), asyncio.get_running_loop().time()
        changes = self.registry.counts.registered + self.registry.counts.deregistered
        looked, before = self._looked_at.get(tenant, (-REGISTRY_LOOK_S, -1))
        if changes == before and now - looked < REGISTRY_LOOK_S:
            self.cache_hits += 1
            return
        self._looked_at[tenant] = (now, changes)
        found = {} if self.registry.is_empty else {one.key: one for one in await self.registry.all_of(tenant)}
        self._stored[tenant] = {key: one for key, one in found.items() if one.alive}
        for key, one in self._stored[tenant].items():
            known = self._declared.get(key)
            if known is None or known.body != one.body:
                self._declared[key] = _declared(one, self.offers)

    def took(
        self, lease_id: str, key: str, queue: str, needs: TicketNeeds, weight: float = 1.0, ties: TicketTies = NO_TIES
    ) -> None:
        """A worker has a ticket from now on."""
        self._held[lease_id] = _Held(key, queue, needs, asyncio.get_running_loop().time(), weight, ties)
        self._by_key.setdefault(key, set()).add(lease_id)

    def ended(self, lease_id: str, answer: RecordResult | None) -> None:
        """A lease is over; with a good answer it says how long its worker takes."""
        held = self._held.pop(lease_id, None)
        if held is None:
            return
        leases = self._by_key[held.key]
        leases.discard(lease_id)
        if not leases:
            del self._by_key[held.key]
        if answer is not None and answer.ok:
            self._learn(held, (asyncio.get_running_loop().time() - held.since) / held.weight)

    def _learn(self, held: _Held, seconds: float) -> None:
        known = self._durations.pop((held.key, held.queue), None)
        mean = seconds if known is None else known + NEWEST_DURATION_SHARE * (seconds - known)
        self._durations[held.key, held.queue] = mean  # as the newest, so that the oldest goes first
        if len(self._durations) > DURATIONS_MAX:
            del self._durations[next(iter(self._durations))]

    def works_on(self, queue: str) -> bool:
        """Return whether a worker has an order of this queue."""
        return any(one.queue == queue for one in self._held.values())

    def offering(self, tenant: str) -> dict[str, tuple[str, frozenset[str], int]]:
        """Key → (own queue, queues, concurrency) of the workers of a tenant that wait for offers and are not drained,
        as they were registered when that was looked at last."""
        found = {}
        for key in self._stored.get(tenant, ()):
            said = self._declared[key]
            if said.own_queue is not None and self.registry.admits(key):
                found[key] = (said.own_queue, said.queues, said.concurrency)
        return found

    def places(self, queue: str) -> int:
        """How many orders the workers of a queue that are known here work on at once."""
        return sum(one.places for one in self.at(queue, ()).values())

    # -- what is known -----------------------------------------------------------------------------------------------

    def at(self, queue: str, asking: Iterable[str]) -> dict[str, WorkerFacts]:
        """All that could work on a queue, by key: those that ask, work or were here lately, and those that are
        registered for it. One whose registration has ended is not there, whatever it had."""
        tenant, now = tenant_of(queue), self.clock.now()
        stored = self._stored.get(tenant, {})
        keys = dict.fromkeys(asking)
        for key, seen in self.seen.items():
            if tenant_of(key) != tenant or seen.over != "http" or queue not in seen.queues or key in keys:
                continue
            if key in self._declared and key not in stored:
                continue
            if key in stored or key in self._by_key or now - seen.last_seen <= LATELY:
                keys[key] = None
        for key in stored:
            if key not in keys and queue in self._declared[key].queues:
                keys[key] = None
        return {key: self._facts(key, queue, stored.get(key)) for key in keys}

    def _facts(self, key: str, queue: str, stored: StoredWorker | None) -> WorkerFacts:
        said = None if stored is None else self._declared[key]
        seen = self.seen.get(key)
        held = [self._held[lease_id] for lease_id in self._by_key.get(key, ())]
        counts = (0, 0) if seen is None else (seen.answered, seen.failed)
        if stored is not None:
            counts = max(counts, (stored.answered, stored.failed))
        facts = WorkerFacts(
            key,
            local_name(key),
            *counts,
            duration_s=self._durations.get((key, queue)),
            in_flight=len(held),
            factor=self.factor(key, queue),
            marks=self.marks(key, queue),
            ties=tuple(one.ties for one in held if one.ties != NO_TIES),
            drained=not self.registry.admits(key),
        )
        if said is not None:
            facts.concurrency, facts.capabilities = said.concurrency, said.capabilities
            facts.level, facts.resources, facts.used = said.level, said.resources, _used(held)
            facts.cancellable = said.cancellable
        return facts


def _used(held: Iterable[_Held]) -> Mapping[str, int]:
    used: dict[str, int] = {}
    for one in held:
        for name, amount in one.needs.resources:
            used[name] = used.get(name, 0) + amount
    return used


def _declared(one: StoredWorker, offers: bool) -> _Declared:
    said, tenant = orjson.loads(one.body), tenant_of(one.key)
    over_http, own = said.get("transporte") == "http", None
    if offers and not over_http and said.get("ofertas"):
        own = queue_in(tenant, said.get("fila_propria") or "")
    chosen = over_http or own is not None
    queues = [queue_in(tenant, queue) or "" for queue in said.get("filas", ())] if chosen else []
    return _Declared(
        one.body,
        frozenset(queues),
        said.get("concorrencia", 1),
        frozenset(said.get("capacidades", ())),
        SecurityLevel(said.get("nivel", SecurityLevel.INTERNAL)),
        said.get("recursos", {}),
        over_http and said.get("cancelavel", False),
        own,
    )
