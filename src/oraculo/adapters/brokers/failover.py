"""Several brokers as one: consume from all of them, always; publish to the first that works.

Only publishing switches, so no message is ever stranded on a side that is not read. What one broker did not confirm is
published on the next with the same message_id; it may then arrive twice, which the rules of the core expect.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import structlog

from oraculo.adapters.brokers.breaker import DWELL_S, Breaker
from oraculo.errors import BrokerError, BrokerUnavailableError
from oraculo.ports.broker import (
    Backlog,
    Broker,
    BrokerTraits,
    Delivery,
    Health,
    Outgoing,
    PublishReport,
    Refusal,
    Settle,
    Settlement,
)
from oraculo.ports.broker_group import BrokerGroup, CircuitBreaker

log = structlog.get_logger("oraculo.broker")

PUBLISH_TIMEOUT_S = 3.0  # for one broker to confirm before the next is tried
KEEP_TIMEOUT_S = 1.0  # for which a delivery beyond a fetch's limit is kept before it goes back
DURABILITY_ORDER = ("best-effort", "crash-safe", "power-safe")


@dataclass(frozen=True, slots=True)
class Switch:
    """A change of the broker that messages are published to."""

    epoch: int
    source: str
    target: str
    reason: str


class FailoverBroker(Broker, BrokerGroup):
    """`members` in order of preference. `on_switch` is told of every change of the one that is published to."""

    traits = BrokerTraits()
    apart = frozenset()
    active = ""
    epoch = 0

    def __init__(
        self,
        members: Sequence[Broker],
        *,
        dwell: float = DWELL_S,
        on_switch: Callable[[Switch], None] = lambda _switch: None,
    ) -> None:
        self.members = _named(members)
        self.scheme = ",".join(self.members)
        self._breakers = {name: Breaker(dwell) for name in self.members}
        self.breakers: Mapping[str, CircuitBreaker] = self._breakers
        self.on_switch = on_switch
        self.active = next(iter(self.members))
        self._kept: dict[str, deque[Delivery]] = {}
        self._returning: set[asyncio.Task[None]] = set()
        self._closed = False

    def expect(self, queue: str) -> None:
        for member in self.members.values():
            member.expect(queue)

    # -- publishing: one at a time -------------------------------------------------------------------------------------

    async def publish(self, messages: Sequence[Outgoing]) -> PublishReport:
        left = messages
        no_queue: list[Outgoing] = []
        refused: list[Refusal] = []
        reasons: list[str] = []
        for name in self._order():
            report = await self._publish_to(name, left)
            left = [*report.unconfirmed, *report.no_room]
            no_queue += report.no_queue
            refused += report.refused
            if report.reason:
                reasons.append(f"{name}: {report.reason}")
            if not left:
                break
        return PublishReport(report.unconfirmed, no_queue, refused, "; ".join(reasons), report.no_room)

    def _order(self) -> list[str]:
        """Return the brokers that work, in order of preference, then the others: no message is lost for a breaker."""
        return sorted(self.members, key=lambda name: self._breakers[name].open)

    async def _publish_to(self, name: str, messages: Sequence[Outgoing]) -> PublishReport:
        breaker = self._breakers[name]
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(PUBLISH_TIMEOUT_S):
                report = await self.members[name].publish(messages)
        except TimeoutError:
            report = PublishReport(messages, reason=f"nothing was confirmed within {PUBLISH_TIMEOUT_S:g} s")
        except BrokerError as error:  # an adapter that does not keep to the port costs no message either
            report = PublishReport(messages, reason=str(error))
        if report.complete:
            breaker.confirmed()
        elif report.unconfirmed and breaker.failed(clock(), report.reason, clock() - began):
            self._choose(f"{name} failed: {report.reason}")
        return report

    def probed(self, name: str, ok: bool, error: str = "") -> None:
        """Take note of an end-to-end probe of a member."""
        now = asyncio.get_running_loop().time()
        breaker = self._breakers[name]
        if breaker.open:
            if breaker.probed(now, ok):
                self._choose(f"{name} works again")
        elif not ok and breaker.failed(now, error):
            self._choose(f"{name} does not answer: {error}")

    def doubted(self, name: str) -> bool:
        """True while the member is left alone, until probes say that it works again."""
        return self._breakers[name].open

    def _choose(self, reason: str) -> None:
        target = self._order()[0]
        if target == self.active:
            return
        self.epoch += 1
        switch = Switch(self.epoch, self.active, target, reason)
        self.active = target
        log.warning("publishing switched", source=switch.source, target=target, reason=reason, route_epoch=self.epoch)
        self.on_switch(switch)

    # -- consuming: from all -------------------------------------------------------------------------------------------

    async def fetch(self, queue: str, *, limit: int, wait: float) -> list[Delivery]:
        kept = self._kept.get(queue)
        if kept:
            return [kept.popleft() for _ in range(min(limit, len(kept)))]
        asked = {asyncio.ensure_future(self._fetch_from(name, queue, limit, wait)): name for name in self.members}
        errors: list[str] = []
        try:
            pending = set(asked)
            while pending:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                got: list[Delivery] = []
                for task in [one for one in asked if one in done]:  # in the order of the members, not of addresses
                    error = task.exception()
                    if error is None:
                        got += task.result()
                        del asked[task]
                    elif isinstance(error, BrokerError):
                        errors.append(f"{asked.pop(task)}: {error}")
                    else:
                        raise error
                if got:
                    self._keep(queue, got[limit:])
                    return got[:limit]
        finally:
            if asked:
                self._collect(queue, await _cancelled(asked))
        if len(errors) == len(self.members):
            raise BrokerUnavailableError("; ".join(errors))
        return []

    async def _fetch_from(self, name: str, queue: str, limit: int, wait: float) -> list[Delivery]:
        taken = await self.members[name].fetch(queue, limit=limit, wait=wait)
        for delivery in taken:
            delivery.broker = name
        return taken

    def _collect(self, queue: str, tasks: Sequence[asyncio.Task[list[Delivery]]]) -> None:
        for task in tasks:
            if not task.cancelled() and task.exception() is None:
                self._keep(queue, task.result())

    def _keep(self, queue: str, deliveries: Sequence[Delivery]) -> None:
        """More came than was asked for, because several brokers answered at once. The next fetch gets it."""
        if not deliveries:
            return
        kept = self._kept.setdefault(queue, deque())
        kept.extend(deliveries)
        asyncio.get_running_loop().call_later(KEEP_TIMEOUT_S, self._return, kept, list(deliveries))

    def _return(self, kept: deque[Delivery], deliveries: list[Delivery]) -> None:
        """Give back what no fetch took meanwhile, so that other processes can have it."""
        ids = {id(delivery) for delivery in deliveries}
        left = [delivery for delivery in kept if id(delivery) in ids]
        for delivery in left:
            kept.remove(delivery)
        if left and not self._closed:
            task = asyncio.ensure_future(self._give_back(left))
            self._returning.add(task)
            task.add_done_callback(self._returning.discard)

    async def _give_back(self, deliveries: list[Delivery]) -> None:
        try:
            await self.settle([Settlement(delivery, Settle.RETRY) for delivery in deliveries])
        except BrokerError as error:
            log.warning("messages not given back: their leases will end", error=str(error))

    async def settle(self, settlements: Sequence[Settlement]) -> None:
        if not settlements:
            return
        shares: dict[str, list[Settlement]] = {}
        for settlement in settlements:
            shares.setdefault(settlement.delivery.broker, []).append(settlement)
        if len(shares) == 1:
            name, share = shares.popitem()
            await self.members[name].settle(share)
            return
        outcomes = await asyncio.gather(
            *(self.members[name].settle(share) for name, share in shares.items()), return_exceptions=True
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    # -- looking -----------------------------------------------------------------------------------------------------

    async def backlog(self, queue: str) -> Backlog:
        """Of all members that can be asked."""
        waiting: int | None = None
        oldest: float | None = None
        consumers: int | None = None
        errors: list[BrokerError] = []
        for member in self.members.values():
            try:
                found = await member.backlog(queue)
            except BrokerError as error:
                errors.append(error)
                continue
            if found.waiting is not None:
                waiting = (waiting or 0) + found.waiting
            if found.oldest_s is not None:
                oldest = max(oldest or 0.0, found.oldest_s)
            if found.consumers is not None:
                consumers = (consumers or 0) + found.consumers
        if len(errors) == len(self.members):
            raise errors[0]
        return Backlog(waiting, oldest, consumers)

    async def durability(self) -> str:
        """The weakest durability of all brokers that can be asked: any of them may hold a message."""
        found = []
        error: BrokerError | None = None
        for member in self.members.values():
            try:
                found.append(await member.durability())
            except BrokerError as failed:
                error = failed
        if not found and error is not None:
            raise error
        return min(found, key=DURABILITY_ORDER.index)

    def health(self) -> Health:
        found = {name: member.health() for name, member in self.members.items()}
        return Health(
            any(one.connected for one in found.values()),
            "; ".join(f"{name}: {one.error}" for name, one in found.items() if one.error),
            sum(one.reconnects for one in found.values()),
        )

    async def reset(self) -> None:
        await asyncio.gather(*(member.reset() for member in self.members.values()))

    async def close(self) -> None:
        self._closed = True
        for task in list(self._returning):
            task.cancel()
        await asyncio.gather(*self._returning, return_exceptions=True)
        await asyncio.gather(*(member.close() for member in self.members.values()))


def _named(members: Sequence[Broker]) -> dict[str, Broker]:
    """amqp, redis, redis-2 …"""
    named: dict[str, Broker] = {}
    for member in members:
        number = 1 + sum(1 for other in named.values() if other.scheme == member.scheme)
        named[member.scheme if number == 1 else f"{member.scheme}-{number}"] = member
    return named


async def _cancelled(
    tasks: dict[asyncio.Task[list[Delivery]], str],
) -> list[asyncio.Task[list[Delivery]]]:
    """Cancel them and wait until they have ended; they do not take long."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    return list(tasks)
