"""Gives workers that lease over HTTP, or get offers, the tickets that are best for them (docs/scheduler.md).

For each queue that is asked for, a window of its messages is taken from the broker and stands on a board beside those
who ask. A choice is recorded before its worker gets the ticket. Messages that no worker takes go back to the broker
when none asks any more; a crash gives them back, as it does with every delivery that is not settled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Protocol

import structlog

from oraculo.core.commands import AllocateTicket, Judge, RecordResult
from oraculo.core.policies import PolicyPoint
from oraculo.core.policing import asks_at
from oraculo.core.priority import fresh_score_of, priority_class, ticket_score
from oraculo.core.state import Orchestration
from oraculo.core.tenants import in_tenant, local_name, tenant_of
from oraculo.core.ticket_id import parse_ticket_id
from oraculo.errors import OraculoError, StoreError
from oraculo.ports.broker import Broker, Delivery, Settle, Settlement
from oraculo.ports.clock import Clock
from oraculo.ports.durations import DurationEstimates
from oraculo.ports.work import Fate, Outcome, Work
from oraculo.ports.workers import StopOrder
from oraculo.runtime.policies.asking import Policies
from oraculo.runtime.scheduler.affinities import Affinities, AffinityOptions
from oraculo.runtime.scheduler.board import Asker, Board, ChosenOffer, Matcher, Offer
from oraculo.runtime.scheduler.counts import SchedulerCounts
from oraculo.runtime.scheduler.needs import needs_of
from oraculo.runtime.scheduler.people import KnownWorkers
from oraculo.runtime.scheduler.preempting import Preemption, PreemptionOptions
from oraculo.runtime.scheduler.sizes import size_of

if TYPE_CHECKING:
    from oraculo.runtime.lease import Lease
    from oraculo.runtime.scheduler.offers import BrokerOffers

log = structlog.get_logger("oraculo.scheduler")

WINDOW_OFFERS = 64  # that are looked at together
WINDOW_OFFERS_PER_PLACE = 4  # of a worker, where several processes share the queues
LOOK_INTERVAL_S = 0.25  # between two looks at a board on which something waits
EMPTY_FETCH_WAIT_S = 0.5  # for a message, while none waits
HOLD_S = 2.0  # after the last worker asked, messages are kept for so long
HOLD_WORKING_S = 10.0  # or for so long while workers of the queue are working: they will ask again
REFUSED_BY_POLICY_S = 30.0  # before policies are asked again about the same worker and ticket
GIVEN_BACK_DELAY_S = 0.5  # of a ticket that may not be given now


class Gateway(Protocol):
    """Leases, as far as they are needed here."""

    async def usable(self, delivery: Delivery) -> tuple[bool, tuple[str, int] | None, Orchestration | None]: ...

    async def grant_all(
        self, deliveries: Sequence[Delivery], worker: str, length: timedelta, *, offered: bool = False
    ) -> list[Lease]: ...

    async def release(self, lease_id: str, delay: float = 0.0) -> None: ...

    async def settle(self, settlement: Settlement) -> None: ...


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """`turn_s`: passed over for so long, a worker gets a ticket all the same. `shared`: other processes take messages
    of the same queues."""

    turn_s: float = 30.0
    shared: bool = False
    preemption: PreemptionOptions = field(default_factory=PreemptionOptions)
    affinity: AffinityOptions = field(default_factory=AffinityOptions)


class LeaseScheduler:
    """`submit` records choices; `workers` knows who is there; `durations`, where they are predicted, how long tickets
    take; `tell` says to a worker what it has to stop."""

    def __init__(
        self,
        broker: Broker,
        clock: Clock,
        workers: KnownWorkers,
        state_of: Callable[[int], Awaitable[Orchestration | None]],
        submit: Callable[[list[Work]], Awaitable[list[Outcome]]],
        policies: Policies,
        options: SchedulerOptions = SchedulerOptions(),
        rng: Random | None = None,
        durations: DurationEstimates | None = None,
        tell: Callable[[str, StopOrder | None], None] = lambda _key, _order: None,
    ) -> None:
        self._broker, self._clock = broker, clock
        self._state_of = state_of
        self._submit = submit
        self._policies = policies
        self._options = options
        self._durations = durations
        self._affinities = Affinities(options.affinity)
        self._matcher = Matcher(rng or Random(), options.turn_s, self._affinities)
        self._boards: dict[str, Board] = {}
        self._attendants: dict[str, asyncio.Task[None]] = {}
        self._offering: list[asyncio.Task[None]] = []
        self.preemption = Preemption(options.preemption, submit, tell)
        self.workers = workers
        self.offers: BrokerOffers | None = None  # None: workers of a broker take what comes
        self.counts = SchedulerCounts()

    # -- for leases --------------------------------------------------------------------------------------------------

    async def lease(
        self,
        gateway: Gateway,
        queue: str,
        limit: int,
        wait: float,
        worker: str,
        length: timedelta,
        *,
        offered: bool = False,
    ) -> list[Lease]:
        """Up to `limit` leases of what was chosen for a worker; none after `wait` seconds. `offered`: for one of a
        broker, which is told nothing while it works, so that what it has makes no room for others."""
        key = in_tenant(tenant_of(queue), worker)
        chosen = await self._take(gateway, queue, limit, wait, key)
        try:
            allowed = await self._allowed(gateway, chosen)
        except BaseException:
            await self._give_back(gateway, [one.offer for one in chosen])
            raise
        deliveries = [one.offer.delivery for one in allowed]
        leases = await gateway.grant_all(deliveries, worker, length, offered=offered)
        by_delivery = {id(one.offer.delivery): one for one in allowed}
        pairs = [(lease, by_delivery[id(lease.delivery)]) for lease in leases]
        try:
            kept = await self._recorded(gateway, pairs)
        except BaseException:
            for lease, _ in pairs:
                await gateway.release(lease.lease_id)
            raise
        for lease, one in kept:
            self.workers.took(lease.lease_id, key, queue, one.offer.needs, one.offer.size.weight, one.offer.ties)
            if not offered:
                self.preemption.took(lease.lease_id, key, queue, one.offer, asyncio.get_running_loop().time())
        if queue in self._boards and self.preemption.watches(queue):
            self._boards[queue].asked.set()  # what waits is looked at although no worker asks
        return [lease for lease, _ in kept]

    def ended(self, lease_id: str, answer: RecordResult | None) -> None:
        """A lease is over; `answer` is what its worker said, if it did."""
        self.workers.ended(lease_id, answer)
        self.preemption.ended(lease_id, asyncio.get_running_loop().time())
        if self.offers is not None:
            self.offers.ended(lease_id)

    @property
    def waiting(self) -> int:
        """How many messages stand on boards."""
        return sum(len(board.offers) for board in self._boards.values())

    def start(self) -> None:
        """Make offers, where workers of a broker get them."""
        self._offering = [] if self.offers is None else [asyncio.create_task(self.offers.run())]

    async def close(self) -> None:
        """Stop looking. What stands on boards is given back when the broker is closed."""
        for task in self._offering:
            task.cancel()
        await asyncio.gather(*self._offering, return_exceptions=True)
        tasks = list(self._attendants.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- asking ------------------------------------------------------------------------------------------------------

    async def _take(self, gateway: Gateway, queue: str, limit: int, wait: float, key: str) -> list[ChosenOffer]:
        loop = asyncio.get_running_loop()
        board = self._boards.get(queue)
        if board is None:
            board = self._boards[queue] = Board(queue)
            self._attendants[queue] = asyncio.create_task(self._attend(gateway, board))
        asker = Asker(key, limit, loop.create_future(), loop.time() + wait)
        board.askers.append(asker)
        board.asked_at = loop.time()
        self._match(board)
        board.asked.set()
        try:
            return await asker.got
        except asyncio.CancelledError:
            if asker in board.askers:
                board.askers.remove(asker)
            elif asker.got.done() and not asker.got.cancelled() and asker.got.exception() is None:
                await self._give_back(gateway, [one.offer for one in asker.got.result()])
            raise

    def _match(self, board: Board) -> None:
        """Give what stands on a board to those who ask."""
        board.askers = [one for one in board.askers if not one.got.done()]
        if not board.askers or not board.offers:
            return
        loop = asyncio.get_running_loop()
        known = self.workers.at(board.queue, (one.key for one in board.askers))
        for asker, chosen in self._matcher.match(board, known, self._clock.now(), loop.time()):
            asker.got.set_result(chosen)

    async def _attend(self, gateway: Gateway, board: Board) -> None:
        """Fill a board and look at it again and again, until no worker has asked for a while."""
        loop = asyncio.get_running_loop()
        try:
            while self._is_attended(board):
                if not board.askers and not self.preemption.watches(board.queue):
                    await self._pause(board, board.asked_at + self._hold_s(board) - loop.time())
                    continue
                looking = list(board.askers)
                await self._fill(gateway, board)
                await self._look_for_workers(board.queue)
                self._match(board)
                await self._make_room(gateway, board)
                for asker in looking:
                    if asker in board.askers and asker.until <= loop.time():
                        board.askers.remove(asker)
                        asker.got.set_result([])
                if looking:
                    board.asked_at = loop.time()
        except Exception as error:
            if not isinstance(error, OraculoError):
                log.exception("scheduler failed", queue=board.queue)
            for asker in board.askers:
                if not asker.got.done():
                    asker.got.set_exception(error)
        finally:
            del self._boards[board.queue], self._attendants[board.queue]
        await self._give_back(gateway, board.offers)

    def _is_attended(self, board: Board) -> bool:
        if board.askers or self.preemption.watches(board.queue):
            return True
        return asyncio.get_running_loop().time() < board.asked_at + self._hold_s(board)

    async def _make_room(self, gateway: Gateway, board: Board) -> None:
        """Have workers stop what is less urgent than what waits here; give back what only others could do."""
        if not self._options.preemption.enabled:
            return
        at = asyncio.get_running_loop().time()
        known = self.workers.at(board.queue, (one.key for one in board.askers))
        for asker in board.askers:
            known[asker.key].asks += asker.limit
        await self.preemption.look(gateway, board.ordered(self._clock.now()), known, at)
        if not board.askers and self._options.shared:  # workers of other processes may have room
            waiting = [one for one in board.offers if not self.preemption.is_urgent(one)]
            board.offers = [one for one in board.offers if self.preemption.is_urgent(one)]
            await self._give_back(gateway, waiting, HOLD_S)

    def _hold_s(self, board: Board) -> float:
        return HOLD_WORKING_S if board.offers and self.workers.works_on(board.queue) else HOLD_S

    @staticmethod
    async def _pause(board: Board, seconds: float) -> None:
        """Until a worker asks, and no longer than this."""
        board.asked.clear()
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await board.asked.wait()
        except TimeoutError:
            pass

    async def _look_for_workers(self, queue: str) -> None:
        try:
            await self.workers.look(queue)
        except StoreError as error:
            self.counts.discovery_failures[type(error).__name__] += 1
            log.warning("registered workers not read: store unavailable", error=str(error))

    async def _fill(self, gateway: Gateway, board: Board) -> None:
        loop = asyncio.get_running_loop()
        left = min((one.until for one in board.askers), default=loop.time() + LOOK_INTERVAL_S) - loop.time()
        wait = max(0.0, min(LOOK_INTERVAL_S if board.offers else EMPTY_FETCH_WAIT_S, left))
        room = self._window(board) - len(board.offers)
        if room <= 0:
            await self._pause(board, wait)
            return
        deliveries = await self._broker.fetch(board.queue, limit=room, wait=wait)
        done = 0
        try:
            for delivery in deliveries:
                offer = await self._offer(gateway, delivery)
                done += 1
                if offer is not None:
                    board.offers.append(offer)
        except BaseException:
            for delivery in deliveries[done:]:
                await gateway.settle(Settlement(delivery, Settle.RETRY))
            raise

    def _window(self, board: Board) -> int:
        asked = sum(one.limit for one in board.askers)
        if not self._options.shared:
            return max(WINDOW_OFFERS, asked)
        return min(WINDOW_OFFERS, WINDOW_OFFERS_PER_PLACE * max(asked, self.workers.places(board.queue)))

    async def _offer(self, gateway: Gateway, delivery: Delivery) -> Offer | None:
        """What a message is on a board; None of one that is not needed."""
        usable, ticket, state = await gateway.usable(delivery)
        if not usable:
            return None
        came_at, parsed = asyncio.get_running_loop().time(), None if ticket is None else parse_ticket_id(ticket[0])
        if ticket is None or parsed is None or state is None or parsed[1] >= len(state.tickets):
            return Offer(delivery, came_at)
        run, position = parsed
        priority = priority_class(fresh_score_of(state, position))
        self._affinities.read(state, came_at, self._clock.now())
        return Offer(
            delivery,
            came_at,
            run,
            position,
            ticket[1],
            needs_of(state, position),
            ticket_score(state, position, self._clock.now()).value,
            state.tickets[position].dispatched_at or self._clock.now(),
            state.plan.tasks[position].timeout,
            is_order=True,
            size=size_of(self._durations, state, position),
            priority=priority,
            ties=self._affinities.ties_of(state, priority),
            undoes=position >= state.asked,
        )

    # -- what becomes of a choice ------------------------------------------------------------------------------------

    async def _allowed(self, gateway: Gateway, chosen: list[ChosenOffer]) -> list[ChosenOffer]:
        """Those that policies let go to their worker; others stand on their board again, for another one."""
        if PolicyPoint.ALLOCATION not in self._policies.points:
            return chosen
        allowed: list[ChosenOffer] = []
        refused: list[ChosenOffer] = []
        said: list[Work] = []
        for one in chosen:
            offer, allocation = one.offer, one.allocation
            state = await self._state_of(offer.run) if allocation is not None else None
            if state is None or allocation is None or not asks_at(state, PolicyPoint.ALLOCATION):
                allowed.append(one)
                continue
            agent = {"agent_id": allocation.agent_id, "score": allocation.agent_score, "method": allocation.method}
            findings, source = await self._policies.allocation(state, offer.position, [agent])
            kept = [finding for finding in findings if finding is not None]
            if kept:
                pair = (offer.position, offer.attempt)
                said.append(Work(Judge(PolicyPoint.ALLOCATION, [pair], kept, source), run=offer.run))
            (allowed if all(finding.allowed for finding in kept) else refused).append(one)
        if said:
            await self._submit(said)
        await self._put_back(gateway, refused)
        return allowed

    async def _put_back(self, gateway: Gateway, refused: Sequence[ChosenOffer]) -> None:
        at = asyncio.get_running_loop().time()
        for one in refused:
            one.offer.refused[one.key] = at + REFUSED_BY_POLICY_S
            board = self._boards.get(one.offer.delivery.queue)
            log.warning("policies refused a worker", worker=local_name(one.key), queue=one.offer.delivery.queue)
            if board is not None:
                board.offers.append(one.offer)
                self._match(board)
            else:
                await self._give_back(gateway, [one.offer])

    async def _recorded(
        self, gateway: Gateway, pairs: list[tuple[Lease, ChosenOffer]]
    ) -> list[tuple[Lease, ChosenOffer]]:
        """Write down what was chosen; a ticket that needs no work any more, or may not go now, is not given."""
        works: list[Work] = []
        for _, one in pairs:
            if one.allocation is not None:
                offer = one.offer
                works.append(Work(AllocateTicket(offer.position, offer.attempt, one.allocation), run=offer.run))
        outcomes = iter(await self._submit(works)) if works else iter(())
        kept: list[tuple[Lease, ChosenOffer]] = []
        now = asyncio.get_running_loop().time()
        for lease, one in pairs:
            if one.allocation is not None and next(outcomes).fate is not Fate.APPLIED:
                self.counts.not_given += 1
                await gateway.release(lease.lease_id, GIVEN_BACK_DELAY_S)
                continue
            if one.allocation is not None:
                self.counts.take(one.allocation, now - one.offer.came_at, one.shared)
            kept.append((lease, one))
        return kept

    @staticmethod
    async def _give_back(gateway: Gateway, offers: Sequence[Offer], delay_s: float = 0.0) -> None:
        for offer in offers:
            await gateway.settle(Settlement(offer.delivery, Settle.RETRY, delay_s))
