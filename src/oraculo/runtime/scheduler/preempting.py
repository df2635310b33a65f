"""Room for what is urgent: where every worker that could do a ticket is full, one of them is told to stop a less urgent
one. The journal says so before the worker does; the attempt that made room is none that failed (docs/adr/0085).

Workers are told by the answer to their heartbeat, and by that to keeping their lease. One that does not stop within the
grace loses its lease. What it answers all the same counts while its ticket is open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

import structlog

from oraculo.core import candidates
from oraculo.core.allocations import NotChosen
from oraculo.core.candidates import WorkerFacts
from oraculo.core.commands import RecordResult, WithdrawTicket
from oraculo.core.tenants import local_name
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import Cause, Priority
from oraculo.core.worker_scores import WorkerHealth
from oraculo.ports.work import Fate, Outcome, Work
from oraculo.ports.workers import StopOrder
from oraculo.runtime.scheduler.board import Offer
from oraculo.runtime.scheduler.counts import Tally

log = structlog.get_logger("oraculo.scheduler")

STOP_BOUNDS_S = (0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0)
_ORDER = (Priority.LOW, Priority.NORMAL, Priority.HIGH, Priority.CRITICAL)
_RANKS = {priority: rank for rank, priority in enumerate(_ORDER)}
_FULL = (None, NotChosen.NO_ROOM, NotChosen.RESOURCES)


@dataclass(frozen=True, slots=True)
class PreemptionOptions:
    """`preemptor`: the least priority that others make room for; `victim`: the highest that makes room. A worker has
    `grace_s` to stop, and is left in peace for `cooldown_s` then; at most `concurrent` are being told at a time. What
    made room goes out again after `retry_delay_s`; None: it does not, and has failed."""

    enabled: bool = False
    preemptor: Priority = Priority.HIGH
    victim: Priority = Priority.LOW
    grace_s: float = 30.0
    concurrent: int = 5
    cooldown_s: float = 60.0
    retry_delay_s: float | None = 300.0


@dataclass(slots=True)
class PreemptionCounts:
    """What was done in this process: `made_room` by the priorities of both, `failed` by reason."""

    made_room: Counter[tuple[str, str]] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    stopping: Tally = field(default_factory=lambda: Tally(STOP_BOUNDS_S))


class Leaseholder(Protocol):
    """Leases, as far as they are needed here."""

    async def release(self, lease_id: str, delay: float = 0.0) -> None: ...


@dataclass(slots=True)
class _Held:
    lease_id: str
    key: str
    queue: str
    offer: Offer
    since: float
    spared: bool = False  # the core says that it makes no room (any more)
    told_at: float | None = None


class Preemption:
    """`submit` records what is taken back; `tell` says it to a worker (None: nothing any more)."""

    def __init__(
        self,
        options: PreemptionOptions,
        submit: Callable[[list[Work]], Awaitable[list[Outcome]]],
        tell: Callable[[str, StopOrder | None], None],
    ) -> None:
        self._options = options
        self._submit = submit
        self._tell = tell
        self._held: dict[str, _Held] = {}
        self._left_alone: dict[str, float] = {}  # key of a worker → until when it is told nothing
        self.counts = PreemptionCounts()

    @property
    def active(self) -> int:
        """How many workers are being told to stop something."""
        return sum(1 for one in self._held.values() if one.told_at is not None)

    def took(self, lease_id: str, key: str, queue: str, offer: Offer, at: float) -> None:
        """A worker has a ticket from now on."""
        if self._options.enabled and offer.is_order:
            self._held[lease_id] = _Held(lease_id, key, queue, offer, at)

    def ended(self, lease_id: str, at: float) -> None:
        """A lease is over."""
        held = self._held.pop(lease_id, None)
        if held is not None and held.told_at is not None:
            if not any(one.key == held.key and one.told_at is not None for one in self._held.values()):
                self._tell(held.key, None)
            self.counts.stopping.observe(at - held.told_at)

    def watches(self, queue: str) -> bool:
        """Return whether a worker of a queue has what could make room, so that its messages are looked at although no
        worker asks."""
        held = (one for one in self._held.values() if one.queue == queue)
        return any(one.told_at is not None or self._may_be_victim(one) for one in held)

    def is_urgent(self, offer: Offer) -> bool:
        """Return whether others make room for an offer."""
        return offer.is_order and _RANKS[offer.priority] >= _RANKS[self._options.preemptor]

    async def look(
        self, holder: Leaseholder, offers: Iterable[Offer], workers: dict[str, WorkerFacts], at: float
    ) -> None:
        """Make room for what is urgent and waits; `workers` are all that are known at its queue."""
        await self._end_overdue(holder, at)
        for offer in offers:
            if self.active >= self._options.concurrent:
                return
            if not self.is_urgent(offer) or self._is_served(offer, workers):
                continue
            victim = self._victim(offer, workers, at)
            if victim is not None:
                await self._make_room(victim, offer, at)

    def _may_be_victim(self, held: _Held) -> bool:
        low = _RANKS[held.offer.priority] <= _RANKS[self._options.victim]
        lasting = self._options.retry_delay_s is None and held.offer.undoes
        return low and not held.spared and held.told_at is None and not lasting

    def _is_served(self, offer: Offer, workers: dict[str, WorkerFacts]) -> bool:
        """Return whether a worker has room for it, or is being told to make some."""
        wanted = ticket_id(offer.run, offer.position)
        if any(one.told_at is not None and one.offer.made_room_for == wanted for one in self._held.values()):
            return True
        return any(
            candidates.lacks(one, offer.needs) is None
            and one.health is not WorkerHealth.DOENTE
            and (one.asks > 0 or one.in_flight < (one.concurrency or 1))
            for one in workers.values()
        )

    def _victim(self, offer: Offer, workers: dict[str, WorkerFacts], at: float) -> _Held | None:
        """The least urgent ticket of a worker that could do this one and stops what it is told to stop; of several the
        one that was begun last."""
        found = []
        for held in self._held.values():
            worker = workers.get(held.key)
            if worker is None or not worker.cancellable or self._left_alone.get(held.key, 0.0) > at:
                continue
            could = candidates.lacks(worker, offer.needs) in _FULL and not offer.is_refused(held.key, at)
            lower = _RANKS[held.offer.priority] < _RANKS[offer.priority]
            if could and lower and self._may_be_victim(held):
                found.append(held)
        return min(found, key=lambda one: (_RANKS[one.offer.priority], -one.since), default=None)

    async def _make_room(self, held: _Held, offer: Offer, at: float) -> None:
        one, by = held.offer, ticket_id(offer.run, offer.position)
        (outcome,) = await self._submit([Work(self._taken_back(held, by), run=one.run)])
        if held.lease_id not in self._held:
            return  # its worker was done meanwhile
        if outcome.fate is not Fate.APPLIED:
            held.spared = True
            self.counts.failed["recusado"] += 1
            return
        held.told_at, one.made_room_for = at, by
        self._left_alone = {key: until for key, until in self._left_alone.items() if until > at}
        self._left_alone[held.key] = at + self._options.cooldown_s
        self.counts.made_room[one.priority.value, offer.priority.value] += 1
        stopped = ticket_id(one.run, one.position)
        self._tell(held.key, StopOrder(stopped, one.attempt, by, self._options.grace_s))
        log.warning("ticket makes room for a more urgent one", ticket_id=stopped, worker=held.key, by=by)

    def _taken_back(self, held: _Held, by: str) -> WithdrawTicket | RecordResult:
        """What the journal is told of a ticket that makes room: its attempt is withdrawn, or it has failed for good."""
        one, delay_s = held.offer, self._options.retry_delay_s
        if delay_s is not None:
            wait = timedelta(seconds=delay_s)
            return WithdrawTicket(one.position, one.attempt, Cause.PREEMPTADO, local_name(held.key), wait, by=by)
        fault: dict[str, object] = {
            "codigo": Cause.PREEMPTADO.value,
            "mensagem": f"the place of its worker was needed for {by}",
            "definitivo": True,
        }
        which = ticket_id(one.run, one.position)
        return RecordResult(False, b"null", [fault], True, which, one.attempt, position=one.position)

    async def _end_overdue(self, holder: Leaseholder, at: float) -> None:
        for held in list(self._held.values()):
            if held.told_at is not None and at >= held.told_at + self._options.grace_s:
                self.counts.failed["nao_parou"] += 1
                log.warning("worker did not stop in time: its lease ends", worker=held.key)
                await holder.release(held.lease_id)
