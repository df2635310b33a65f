"""Offers to workers of a broker: each gets in its own queue what was chosen for it, for a few seconds (docs/adr/0123).

For a worker that registered and waits for offers this process asks the scheduler, as the worker itself would over HTTP.
The message of the common queue is kept meanwhile. When the worker says that it began, or answers, that message is done
with; an offer that was not taken in time is withdrawn in the journal, so that the next attempt goes elsewhere and what
comes of this one is late. Where several processes share a store, one of them makes offers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from oraculo.core.commands import RecordResult, WithdrawTicket
from oraculo.core.state import Orchestration
from oraculo.core.tenants import in_tenant, local_name, tenant_of
from oraculo.core.ticket_id import parse_ticket_id, ticket_id
from oraculo.core.vocabulary import Cause
from oraculo.errors import BrokerError, BusyError, OraculoError, StoreError
from oraculo.ports.broker import Broker, Delivery, Outgoing, Settle, Settlement
from oraculo.ports.clock import Clock
from oraculo.ports.destination_pauses import DestinationGate
from oraculo.ports.singleton_roles import SingletonRoles
from oraculo.ports.work import Fate, Outcome, Work
from oraculo.runtime.workers import FLUSH_INTERVAL_S, Ticket, running_of
from oraculo.wire.offers import OfferNote, offer_headers

if TYPE_CHECKING:
    from oraculo.runtime.lease import Lease
    from oraculo.runtime.leases import HttpLeases
    from oraculo.runtime.scheduler.scheduler import LeaseScheduler

log = structlog.get_logger("oraculo.scheduler")

DUTY = "offers"  # of one process, where several share a store
LOOK_INTERVAL_S = 0.25  # between two looks at what was taken, and what lapsed
WORKERS_LOOK_INTERVAL_S = 1.0
TAKEN_LOOK_INTERVAL_S = 2.0  # between two looks whether what was taken is still wanted
ASK_WAIT_S = 5.0
RETRY_S = 1.0
GRANT = timedelta(seconds=60)  # of a lease until its offer is made
LATE_NEWS_S = 0.5  # that a worker's word is on its way
QUIET_MAX_OFFERS = 16  # a worker that takes nothing is left alone for as many times the length of an offer


@dataclass(slots=True)
class OfferCounts:
    """What became of the offers of this process."""

    made: int = 0
    taken: int = 0
    lapsed: int = 0


@dataclass(slots=True)
class _Given:
    """What a worker was offered, and may have begun."""

    lease: Lease
    key: str
    until: float
    taken: bool = False


@dataclass(slots=True)
class _Waiting:
    """A worker that waits for offers. `begun` are tickets that it says it has."""

    key: str
    own_queue: str
    queues: frozenset[str]
    concurrency: int
    begun: set[Ticket]
    asking: asyncio.Task[None] | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    lapses: int = 0  # since it took something
    quiet_until: float = 0.0


class BrokerOffers:
    """Makes offers that last `offer_s`. `submit` records what is withdrawn; with `roles` other processes share the
    store."""

    def __init__(
        self,
        leases: HttpLeases,
        scheduler: LeaseScheduler,
        broker: Broker,
        clock: Clock,
        state_of: Callable[[int], Awaitable[Orchestration | None]],
        submit: Callable[[list[Work]], Awaitable[list[Outcome]]],
        *,
        offer_s: float,
        roles: SingletonRoles | None = None,
        gate: DestinationGate | None = None,
    ) -> None:
        self._leases, self._scheduler = leases, scheduler
        self._broker, self._clock = broker, clock
        self._state_of, self._submit = state_of, submit
        self._offer_s, self._roles, self._gate = offer_s, roles, gate
        self._registry = scheduler.workers.registry
        self._registry.began = self.began
        self._waiting: dict[str, _Waiting] = {}
        self._given: dict[str, _Given] = {}  # by lease
        self._done: list[Delivery] = []  # messages that are done with
        self._late_s = LATE_NEWS_S + (0.0 if roles is None else 2 * FLUSH_INTERVAL_S)
        self.counts = OfferCounts()

    # -- what others tell --------------------------------------------------------------------------------------------

    def began(self, key: str, running: list[Ticket]) -> None:
        """A worker said what it has."""
        waiting, said = self._waiting.get(key), set(running)
        if waiting is not None:
            waiting.begun = said
            waiting.changed.set()
        for given in self._given.values():
            if given.key == key and not given.taken and given.lease.ticket in said:
                self._took(given)

    def answered(self, leases: Iterable[Lease], answer: RecordResult) -> None:
        """An answer came over the broker; those of these leases that were offered are done with."""
        for lease in leases:
            if not lease.is_offered or answer.attempt not in (None, lease.ticket[1] if lease.ticket else None):
                continue
            given = self._given.get(lease.lease_id)
            if given is not None and not given.taken:
                self._took(given)
            self._leases.end(lease.lease_id, answer)

    def ended(self, lease_id: str) -> None:
        """A lease is over, whatever it was of."""
        given = self._given.pop(lease_id, None)
        waiting = None if given is None else self._waiting.get(given.key)
        if given is not None and waiting is not None:
            waiting.begun.discard(given.lease.ticket or ("", 0))
            waiting.changed.set()

    def _took(self, given: _Given) -> None:
        """From now on the worker has it: its own queue and its registration answer for it."""
        given.taken = given.lease.is_settled = True
        self._done.append(given.lease.delivery)
        self.counts.taken += 1
        waiting = self._waiting.get(given.key)
        if waiting is not None:
            waiting.lapses, waiting.quiet_until = 0, 0.0

    # -- life --------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Ask for workers that wait, and withdraw what is not taken, for ever."""
        loop = asyncio.get_running_loop()
        workers_at = taken_at = 0.0
        try:
            while True:
                try:
                    await self._settle_done()
                    if loop.time() >= workers_at:
                        workers_at = loop.time() + WORKERS_LOOK_INTERVAL_S
                        await self._look_for_workers()
                    await self._end_lapsed()
                    if loop.time() >= taken_at:
                        taken_at = loop.time() + TAKEN_LOOK_INTERVAL_S
                        await self._end_unwanted()
                except (StoreError, BusyError, BrokerError) as error:
                    log.warning("offers not looked at", error=str(error))
                await asyncio.sleep(LOOK_INTERVAL_S)
        finally:
            await self._leave(list(self._waiting))

    async def _settle_done(self) -> None:
        done, self._done = self._done, []
        for delivery in done:
            await self._leases.settle(Settlement(delivery))

    async def _look_for_workers(self) -> None:
        found: dict[str, tuple[str, frozenset[str], int]] = {}
        if not self._registry.is_empty and await self._is_ours():
            for tenant in sorted(self._registry.tenants):
                await self._scheduler.workers.look(in_tenant(tenant, DUTY))
                found.update(self._scheduler.workers.offering(tenant))
        await self._leave([key for key in self._waiting if key not in found])
        for key, said in found.items():
            known = self._waiting.get(key)
            if known is not None and (known.own_queue, known.queues, known.concurrency) == said:
                continue
            await self._leave([key])
            stored = await self._registry.one(key)
            waiting = self._waiting[key] = _Waiting(key, *said, set() if stored is None else set(running_of(stored)))
            waiting.asking = asyncio.create_task(self._ask_for(waiting))

    async def _is_ours(self) -> bool:
        return self._roles is None or await self._roles.claim_duty(DUTY) is not None

    async def _leave(self, keys: Sequence[str]) -> None:
        """Ask no more for these workers; what they were offered may still be taken."""
        asking = [one.asking for key in keys if (one := self._waiting.pop(key, None)) is not None and one.asking]
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    # -- offers ------------------------------------------------------------------------------------------------------

    async def _ask_for(self, one: _Waiting) -> None:
        loop = asyncio.get_running_loop()
        while True:
            one.changed.clear()
            if self._room(one) <= 0 or loop.time() < one.quiet_until:
                try:
                    async with asyncio.timeout(RETRY_S):
                        await one.changed.wait()
                except TimeoutError:
                    pass
                continue
            try:
                await self._offer(one, await self._ask(one, self._room(one)))
            except OraculoError as error:
                log.warning("no offers for a worker now", worker=local_name(one.key), error=str(error))
                await asyncio.sleep(RETRY_S)
            except Exception:
                log.exception("offers failed", worker=local_name(one.key))
                await asyncio.sleep(RETRY_S)

    def _room(self, one: _Waiting) -> int:
        """How many orders more a worker may have: what it was given here counts, and what it says it has besides."""
        given = {given.lease.ticket for given in self._given.values() if given.key == one.key}
        return one.concurrency - len(given | one.begun)

    async def _ask(self, one: _Waiting, room: int) -> list[Lease]:
        """What was chosen for a worker in one of its queues; of several at once no more than it has room for."""
        open_now = [queue for queue in sorted(one.queues) if self._gate is None or not self._gate.holds(queue)]
        if not open_now:
            await asyncio.sleep(RETRY_S)
            return []
        name, chosen = local_name(one.key), self._scheduler.lease
        asks = [
            asyncio.create_task(chosen(self._leases, queue, room, ASK_WAIT_S, name, GRANT, offered=True))
            for queue in open_now
        ]
        try:
            left = set(asks)
            while left and not any(task.done() and not task.exception() and task.result() for task in asks):
                _, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in asks:
                task.cancel()
            ended = await asyncio.gather(*asks, return_exceptions=True)
            found = [lease for leases in ended if isinstance(leases, list) for lease in leases]
            gone = asyncio.current_task()
            kept = 0 if gone is not None and gone.cancelling() else room
            for lease in found[kept:]:
                if self._leases.end(lease.lease_id) is not None:
                    await self._leases.settle(Settlement(lease.delivery, Settle.RETRY))
        for failed in ended:
            if isinstance(failed, Exception) and not found:
                raise failed
        return found[:kept]

    async def _offer(self, one: _Waiting, leases: Sequence[Lease]) -> None:
        """Put offers in the worker's own queue. One that did not get there lapses like others that are not begun."""
        end, now = asyncio.get_running_loop().time() + self._offer_s, self._clock.now()
        messages: dict[str, Outgoing] = {}
        for lease in [one for one in leases if self._leases.queue_of(one.lease_id) is not None]:
            order, lease.expires_at = lease.delivery, now + timedelta(seconds=self._offer_s)
            headers = offer_headers(order.headers, OfferNote(order.queue, now, self._offer_s))
            messages[lease.lease_id] = Outgoing(one.own_queue, order.body, "", headers)
            self._given[lease.lease_id] = _Given(lease, one.key, end)
        if not messages:
            return
        self.counts.made += len(messages)
        report = await self._broker.publish(list(messages.values()))
        if not report.complete:
            log.warning("offers did not go out", worker=local_name(one.key), error=report.reason)
            return
        for lease in leases:
            if lease.ticket is None:  # no order of a run: there is nothing that could be withdrawn
                self._leases.end(lease.lease_id)
                await self._leases.settle(Settlement(lease.delivery))

    # -- what becomes of them ----------------------------------------------------------------------------------------

    async def _end_lapsed(self) -> None:
        now = asyncio.get_running_loop().time()
        over = [one for one in self._given.values() if not one.taken and now >= one.until + self._late_s]
        if over and self._roles is not None:  # other processes hear of what was begun, too
            for tenant in sorted({tenant_of(one.key) for one in over}):
                alive = [one for one in await self._registry.all_of(tenant) if one.alive]
                begun = {(in_tenant(tenant, one.key), ticket) for one in alive for ticket in running_of(one)}
                for given in over:
                    if not given.taken and (given.key, given.lease.ticket) in begun:
                        self._took(given)
        for given in over:
            if not given.taken and given.lease.lease_id in self._given:
                await self._withdraw(given)

    async def _withdraw(self, given: _Given) -> None:
        """Take an offer back: the journal first, its message second."""
        lease, verdict = given.lease, Settle.RETRY
        parsed = None if lease.ticket is None else parse_ticket_id(lease.ticket[0])
        if lease.ticket is not None and parsed is not None:
            verdict = await self._fence(local_name(given.key), *parsed, lease.ticket[1])
        waiting = self._waiting.get(given.key)
        if waiting is not None:
            waiting.quiet_until = given.until + self._offer_s * min(QUIET_MAX_OFFERS, 1 << waiting.lapses)
            waiting.lapses = min(waiting.lapses + 1, QUIET_MAX_OFFERS)
        if not given.taken and self._leases.end(lease.lease_id) is not None:
            await self._leases.settle(Settlement(lease.delivery, verdict))

    async def _fence(self, worker: str, run: int, position: int, attempt: int) -> Settle:
        """Withdraw an attempt in the journal; return what is to become of its message."""
        state = await self._state_of(run)
        if state is not None and not _is_last(state, position, attempt, worker):
            return Settle.ACK  # another process has a copy of the message, and gave it to somebody else
        command = WithdrawTicket(position, attempt, Cause.OFERTA_VENCIDA, worker)
        (outcome,) = await self._submit([Work(command, run=run)])
        if outcome.fate is not Fate.APPLIED:
            return Settle.RETRY
        self.counts.lapsed += 1
        log.warning("offer withdrawn: not taken in time", worker=worker, ticket_id=ticket_id(run, position))
        return Settle.ACK

    async def _end_unwanted(self) -> None:
        """Forget what was taken and is wanted no more: answered in another process, cancelled, over its time."""
        for given in [one for one in self._given.values() if one.taken]:
            if not await self._leases.still_wanted(given.lease):
                self._leases.end(given.lease.lease_id)


def _is_last(state: Orchestration, position: int, attempt: int, worker: str) -> bool:
    """Return whether the journal knows of no later choice for an attempt than the one for this worker."""
    last = state.tickets[position].allocated if position < len(state.tickets) else None
    return last is not None and (last.attempt, last.allocation.agent_id) == (attempt, worker)
