"""Workers over plain HTTP: messages are leased, answered, kept alive and given back.

A lease is a delivery that the orchestrator holds for a worker. When it expires the message goes back to its queue; an
answer that comes later still counts, unless another worker was faster. Tickets that are closed meanwhile are not handed
out any more.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta

import structlog

from oraculo.core.commands import RecordResult
from oraculo.core.state import Orchestration
from oraculo.core.tenants import in_tenant, queue_in, tenant_of
from oraculo.core.ticket_id import parse_ticket_id
from oraculo.errors import BrokerError, StoreError, UnknownIdError, WireError
from oraculo.ports.broker import Broker, Delivery, Settle, Settlement, publish_confirmed
from oraculo.ports.clock import Clock
from oraculo.ports.destination_pauses import DestinationGate
from oraculo.ports.work import Work
from oraculo.runtime.lease import Lease
from oraculo.runtime.scheduler.scheduler import LeaseScheduler
from oraculo.runtime.seen_workers import SeenWorkers, WorkerSeen
from oraculo.runtime.workers import WorkerBook
from oraculo.wire import mensagem, names, quarantine
from oraculo.wire.ticket_tokens import UNAUTHENTICATED

log = structlog.get_logger("oraculo.gateway")

LEASE = timedelta(seconds=30)
SWEEP_INTERVAL_S = 0.5
LATER_S = 0.5  # after which a message of a paused orchestration, or one that is offered, is looked at again
UNPLACED_MAX_ANSWERS = 50  # that are looked at in one sweep


class HttpLeases:
    """`is_ours` tells of an order whether this installation signed it; without it orders have no signatures."""

    def __init__(
        self,
        broker: Broker,
        clock: Clock,
        state_of: Callable[[int], Awaitable[Orchestration | None]],
        queues: names.QueueNames = names.USUAL,
        gate: DestinationGate | None = None,
        is_ours: Callable[[bytes, Mapping[str, str]], bool] | None = None,
    ) -> None:
        self.registry: WorkerBook | None = None
        self.scheduler: LeaseScheduler | None = None  # None: whoever asks gets what comes
        self._broker, self._clock = broker, clock
        self._is_ours, self._gate = is_ours, gate
        self._state_of, self._names = state_of, queues
        self._leases: dict[str, Lease] = {}
        self._by_ticket: dict[str, set[str]] = {}
        self._seen = SeenWorkers(clock)
        self.workers: Mapping[str, WorkerSeen] = self._seen.by_key
        self._unplaced: deque[tuple[Work, RecordResult]] = deque(maxlen=UNPLACED_MAX_ANSWERS)
        self._last_place: tuple[object, str] = (None, "")  # what the last answer said of its worker, and its queue

    def __len__(self) -> int:
        return len(self._leases)

    def saw(self, worker: str, queue: str, leased: int = 0) -> None:
        """A worker asked for messages of this queue, or keeps one; it took `leased` of them."""
        seen = self._remembered(worker, queue, "http")
        if seen is not None:
            seen.leased += leased

    def _remembered(self, worker: str, queue: str, over: str) -> WorkerSeen | None:
        """What is known of a worker, now that it was seen at this queue; None when too many are known already."""
        seen = self._seen.at(in_tenant(tenant_of(queue), worker), queue, over)
        if seen is not None and self.registry is not None:
            self.registry.seen(seen.key)
        return seen

    def heard(self, work: Work, *, inside: bool = False) -> None:
        """Record that a worker answered over the broker. A worker that gives no name is known by its queue; one that
        is `inside` this process is not counted."""
        answer = work.command
        if not isinstance(answer, RecordResult) or answer.kind is None:
            return
        if answer.ticket in self._by_ticket and self.scheduler is not None and self.scheduler.offers is not None:
            self.scheduler.offers.answered([self._leases[one] for one in self._by_ticket[answer.ticket]], answer)
        if inside:
            return
        said = (work.queue, work.served, answer.kind, answer.name)
        known, queue = self._last_place
        if said != known:  # answers of one queue come many in a row
            queue = work.served
            if not queue:
                if answer.name is None:
                    self._unplaced.append((work, answer))
                    return
                queue = self._names.of(answer.kind, answer.name)
            queue = queue_in(tenant_of(work.queue), queue) or ""
            queue = queue if names.is_queue_name(queue) else ""  # a worker may call its source anything
            self._last_place = (said, queue)
        self._heard_at(queue, work, answer)

    def _heard_at(self, queue: str, work: Work, answer: RecordResult) -> None:
        if not queue:
            return
        if self.registry is not None:
            self.registry.heard(work)
        seen = self._remembered(work.worker or f"({queue})", queue, "broker")
        if seen is not None:
            seen.answered += 1
            seen.take(answer, seen.last_seen)

    async def _place(self) -> None:
        """See where workers work that say it neither by a queue nor by a name, as plain executors do: by the tickets
        that they answered. When many did, some of them."""
        for _ in range(len(self._unplaced)):
            work, answer = self._unplaced[0]
            state = await self._run_of(answer.ticket) if answer.ticket is not None else None
            self._unplaced.popleft()  # not before: when the store is away, it is looked at again
            parsed = parse_ticket_id(answer.ticket or "")
            if state is None or parsed is None or parsed[1] >= len(state.plan.tasks):
                continue
            if tenant_of(state.correlation_id) == tenant_of(work.queue):
                self._heard_at(state.plan.tasks[parsed[1]].queue, work, answer)

    async def lease(self, queue: str, limit: int, wait: float, worker: str, length: timedelta = LEASE) -> list[Lease]:
        """Up to `limit` messages, as soon as there are any; an empty list after `wait` seconds."""
        until = asyncio.get_running_loop().time() + wait
        self.saw(worker, queue)
        while True:
            left = until - asyncio.get_running_loop().time()
            if self.registry is not None and not self.registry.admits(in_tenant(tenant_of(queue), worker)):
                await asyncio.sleep(max(0.0, left))
                return []
            if self._gate is not None and self._gate.holds(queue) and not await self._gate.wait_open(queue, left):
                return []
            if self.scheduler is None:
                deliveries = await self._broker.fetch(queue, limit=limit, wait=max(0.0, left))
                leases = await self.grant_all(deliveries, worker, length)
            else:
                leases = await self.scheduler.lease(self, queue, limit, max(0.0, left), worker, length)
            if leases or left <= 0:
                self.saw(worker, queue, len(leases))
                return leases

    async def grant_all(
        self, deliveries: Sequence[Delivery], worker: str, length: timedelta, *, offered: bool = False
    ) -> list[Lease]:
        """Leases of those that still need work. When the caller goes away half way, all of them go back."""
        leases, done = list[Lease](), 0
        try:
            for delivery in deliveries:
                lease = await self._grant(delivery, worker, length, offered)
                done += 1
                if lease is not None:
                    leases.append(lease)
        except BaseException:
            for lease in leases:
                if self.end(lease.lease_id) is not None:  # it may have been answered meanwhile
                    await self._settle(lease, Settle.RETRY)
            for delivery in deliveries[done:]:
                await self.settle(Settlement(delivery, Settle.RETRY))
            raise
        return leases

    async def _grant(self, delivery: Delivery, worker: str, length: timedelta, offered: bool) -> Lease | None:
        """A lease, unless the ticket needs no work any more; then the message is done with."""
        usable, ticket, _state = await self.usable(delivery)
        if not usable:
            return None
        lease = Lease(secrets.token_urlsafe(18), delivery, ticket, worker, self._clock.now() + length, length)
        lease.is_offered = offered
        self._leases[lease.lease_id] = lease
        if ticket is not None:
            self._by_ticket.setdefault(ticket[0], set()).add(lease.lease_id)
        return lease

    async def usable(self, delivery: Delivery) -> tuple[bool, tuple[str, int] | None, Orchestration | None]:
        """Whether a worker may have a message, and the (ticket_id, attempt) and run that it is an order of. One that is
        of no use (now) is settled here."""
        try:
            message = mensagem.parse_order(delivery.body)
        except WireError:
            return True, None, None
        if not await self._signed(delivery):
            return False, None, None
        if message.ticket_id is None:
            return True, None, None
        ticket = (message.ticket_id, message.tentativa or 1)
        state = await self._run_of(ticket[0])
        copy = self._offered(ticket)
        if not _wants(state, *ticket) or (copy is not None and copy.is_settled):
            await self.settle(Settlement(delivery))
            return False, ticket, state
        if copy is not None or _is_paused(state):  # it stays here until that is over
            await self.settle(Settlement(delivery, Settle.RETRY, LATER_S))
            return False, ticket, state
        return True, ticket, state

    def _offered(self, ticket: tuple[str, int]) -> Lease | None:
        """The lease by which a worker of a broker was offered this attempt. Its message may be this one, come again."""
        leases = map(self._leases.__getitem__, self._by_ticket.get(ticket[0], ()))
        return next((one for one in leases if one.is_offered and one.ticket == ticket), None)

    async def _signed(self, delivery: Delivery) -> bool:
        """True unless orders are signed and this one is not: then it is a dead letter of its queue."""
        if self._is_ours is None or self._is_ours(delivery.body, delivery.headers):
            return True
        log.error("order without the signature of the orchestrator", queue=delivery.queue)
        dead = quarantine.outgoing(delivery, UNAUTHENTICATED, "the order is not signed by the orchestrator")
        await publish_confirmed(self._broker, [dead])
        await self.settle(Settlement(delivery))
        return False

    async def _run_of(self, ticket_id: str) -> Orchestration | None:
        """The orchestration of a ticket; None when it is not known."""
        parsed = parse_ticket_id(ticket_id)
        return None if parsed is None else await self._state_of(parsed[0])

    async def _wanted(self, ticket_id: str, attempt: int) -> bool:
        return _wants(await self._run_of(ticket_id), ticket_id, attempt)

    def measure(self, answer: RecordResult) -> None:
        """Note how long the worker had the order that it answers, by its lease, where it does not say so itself."""
        if answer.work_ms is not None or answer.ticket is None:
            return
        for lease_id in self._by_ticket.get(answer.ticket, ()):
            lease = self._leases[lease_id]
            if answer.attempt in (None, lease.ticket[1] if lease.ticket else None):
                answer.work_ms = lease.work_ms(self._clock.now())

    async def answered(self, ticket_id: str, attempt: int | None, answer: RecordResult | None = None) -> None:
        """A durable result settles the leases of its ticket."""
        for lease_id in list(self._by_ticket.get(ticket_id, ())):
            lease = self._leases.get(lease_id)
            if lease is None:  # it expired while we were settling another
                continue
            if attempt is not None and lease.ticket != (ticket_id, attempt):
                continue
            self.end(lease_id, answer)
            await self._settle(lease)
            if self.registry is not None and answer is not None:
                self.registry.answered(lease.worker_key, answer)
            seen = self.workers.get(lease.worker_key)
            if seen is not None:
                seen.answered += 1
                seen.last_seen = self._clock.now()
                if answer is not None:
                    seen.take(answer, seen.last_seen)

    async def answered_without_ticket(self, runs: Collection[int]) -> None:
        """Durable results that did not say which ticket they are for: whatever needs no work any more is settled."""
        for ticket_id in list(self._by_ticket):
            parsed = parse_ticket_id(ticket_id)
            if parsed is None or parsed[0] not in runs:
                continue
            for lease_id in list(self._by_ticket.get(ticket_id, ())):
                lease = self._leases.get(lease_id)
                if lease is not None and lease.ticket is not None and not await self._wanted(*lease.ticket):
                    await self.answered(*lease.ticket)

    def holders(self) -> set[str]:
        """The keys of the workers that hold a message."""
        return {lease.worker_key for lease in self._leases.values()}

    async def take_back(self, key: str) -> list[tuple[str, int]]:
        """End the leases of a worker; return the (ticket_id, attempt) that it had."""
        taken = [lease for lease in list(self._leases.values()) if lease.worker_key == key]
        for lease in taken:
            if self.end(lease.lease_id) is not None:
                await self._settle(lease, Settle.RETRY)
        return [lease.ticket for lease in taken if lease.ticket is not None]

    def all(self) -> list[Lease]:
        """Every lease, of all tenants."""
        return list(self._leases.values())

    def held_by(self, key: str) -> list[Lease]:
        """The leases of a worker."""
        return [lease for lease in self._leases.values() if lease.worker_key == key]

    def queue_of(self, lease_id: str) -> str | None:
        """The queue that a lease is from; None when there is no such lease (any more)."""
        lease = self._leases.get(lease_id)
        return None if lease is None else lease.delivery.queue

    def extend(self, lease_id: str, length: timedelta | None = None) -> Lease:
        lease = self._leases.get(lease_id)
        if lease is None:
            raise UnknownIdError("lease", lease_id)
        lease.length = length or lease.length
        lease.expires_at = self._clock.now() + lease.length
        lease.is_kept = True
        self.saw(lease.worker, lease.delivery.queue)
        return lease

    async def still_wanted(self, lease: Lease) -> bool:
        return lease.ticket is None or await self._wanted(*lease.ticket)

    async def release(self, lease_id: str, delay: float = 0.0) -> None:
        lease = self.end(lease_id)
        if lease is None:
            raise UnknownIdError("lease", lease_id)
        await self._settle(lease, Settle.RETRY, delay)

    async def done(self, lease_id: str) -> bool:
        """A message that wants no result (a notice) was used. False when it is an order, which wants one."""
        lease = self._leases.get(lease_id)
        if lease is None:
            raise UnknownIdError("lease", lease_id)
        if lease.ticket is not None:
            return False
        self.end(lease_id)
        await self.settle(Settlement(lease.delivery))
        return True

    async def run(self) -> None:
        """Take back what expired, for ever; make offers, where workers of a broker get them."""
        if self.scheduler is not None:
            self.scheduler.start()
        try:
            while True:
                await asyncio.sleep(SWEEP_INTERVAL_S)
                await self.sweep()
        finally:
            if self.scheduler is not None:
                await self.scheduler.close()

    async def sweep(self) -> int:
        with suppress(StoreError):  # what is placed later may wait, leases that expired may not
            await self._place()
        now = self._clock.now()
        expired = [one for one in self._leases.values() if one.expires_at <= now and not one.is_offered]
        for lease in expired:
            self.end(lease.lease_id)
            log.warning("lease expired", worker=lease.worker, queue=lease.delivery.queue, ticket_id=lease.ticket)
        for lease in expired:
            await self.settle(Settlement(lease.delivery, Settle.RETRY))
        self._seen.forget()
        return len(expired)

    @property
    def over_http(self) -> int:
        """How many workers over HTTP were seen lately."""
        return sum(1 for seen in self.workers.values() if seen.over == "http")

    def load(self) -> dict[str, int]:
        """Key of a worker → messages it holds."""
        held: dict[str, int] = {}
        for lease in self._leases.values():
            held[lease.worker_key] = held.get(lease.worker_key, 0) + 1
        return held

    def seen_of(self, tenant: str) -> list[WorkerSeen]:
        """The workers of a tenant that were seen lately."""
        return [seen for seen in self.workers.values() if tenant_of(seen.key) == tenant]

    async def _settle(self, lease: Lease, verdict: Settle = Settle.ACK, delay: float = 0.0) -> None:
        if not lease.is_settled:
            await self.settle(Settlement(lease.delivery, verdict, delay))

    async def settle(self, settlement: Settlement) -> None:
        try:
            await self._broker.settle([settlement])
        except BrokerError as error:
            log.warning("settle failed", queue=settlement.delivery.queue, error=str(error))

    def end(self, lease_id: str, answer: RecordResult | None = None) -> Lease | None:
        """Forget a lease; what becomes of its message is for the caller to say."""
        lease = self._leases.pop(lease_id, None)
        if self.scheduler is not None:
            self.scheduler.ended(lease_id, answer)
        if lease is not None and lease.ticket is not None:
            ids = self._by_ticket.get(lease.ticket[0], set())
            ids.discard(lease_id)
            if not ids:
                self._by_ticket.pop(lease.ticket[0], None)
        return lease


def _is_paused(state: Orchestration | None) -> bool:
    return state is not None and state.paused is not None


def _wants(state: Orchestration | None, ticket_id: str, attempt: int) -> bool:
    """True unless it is known that an answer to this attempt would not count."""
    parsed = parse_ticket_id(ticket_id)
    if state is None or parsed is None or parsed[1] >= len(state.tickets):
        return True
    return state.wants_answer(parsed[1], attempt)
