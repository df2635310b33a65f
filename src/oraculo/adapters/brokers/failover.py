"""Several brokers as one: consume from all of them, always; publish to the first that works.

Only publishing switches, so no message is ever stranded on a side that nobody reads. What one broker did not confirm is
published on the next with the same message_id; it may then arrive twice, which the rules of the core expect.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from oraculo.adapters.brokers.breaker import DWELL, Breaker
from oraculo.errors import BrokerError, BrokerUnavailableError
from oraculo.ports.broker import Backlog, Broker, Delivery, Health, Outgoing, Settle, Settlement, expect

log = structlog.get_logger("oraculo.broker")

PATIENCE = 3.0  # seconds for one broker to confirm before the next is tried
KEEP = 1.0  # seconds that a delivery nobody asked for is kept before it goes back
STRENGTH = ("best-effort", "crash-safe", "power-safe")


@dataclass(frozen=True, slots=True)
class Switch:
    """From now on messages are published elsewhere."""

    epoch: int
    source: str
    target: str
    reason: str


class FailoverBroker:
    """`members` in order of preference. `on_switch` is told of every change of the one that is published to."""

    volatile = False

    def __init__(
        self,
        members: Sequence[Broker],
        *,
        dwell: float = DWELL,
        on_switch: Callable[[Switch], None] = lambda _switch: None,
    ) -> None:
        self.members = _named(members)
        self.scheme = ",".join(self.members)
        self.breakers = {name: Breaker(dwell) for name in self.members}
        self.on_switch = on_switch
        self.epoch = 0
        self.active = next(iter(self.members))
        self._kept: dict[str, deque[Delivery]] = {}
        self._returning: set[asyncio.Task[None]] = set()
        self._closed = False

    def expect(self, queue: str) -> None:
        for member in self.members.values():
            expect(member, queue)

    # -- publishing: one at a time -------------------------------------------------------------------------------------

    async def publish(self, messages: Sequence[Outgoing]) -> None:
        left: Sequence[Outgoing] = messages
        refused: list[tuple[Outgoing, str]] = []
        errors: list[str] = []
        works = False
        for name in self._order():
            try:
                await self._publish_to(name, left)
                left = []
            except BrokerUnavailableError as error:
                refused += error.refused
                errors.append(f"{name}: {error}")
                never = {id(message) for message, _ in error.refused}
                unconfirmed = left if error.unconfirmed is None else error.unconfirmed
                left = [message for message in unconfirmed if id(message) not in never]
                works = error.works
            if not left or works:
                break
        if left or refused:
            raise BrokerUnavailableError("; ".join(errors), unconfirmed=left, refused=refused, works=works)

    def _order(self) -> list[str]:
        """Those that work, in order of preference, then the others: a breaker is no reason to lose a message."""
        return sorted(self.members, key=lambda name: self.breakers[name].open)

    async def _publish_to(self, name: str, messages: Sequence[Outgoing]) -> None:
        breaker = self.breakers[name]
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(PATIENCE):
                await self.members[name].publish(messages)
        except TimeoutError:
            error = BrokerUnavailableError(f"nothing was confirmed within {PATIENCE:g} s")
        except BrokerUnavailableError as unavailable:
            error = unavailable
        else:
            breaker.confirmed()
            return
        harmless = error.works or (bool(error.refused) and not error.unconfirmed and error.unconfirmed is not None)
        if not harmless and breaker.failed(clock(), str(error), clock() - began):
            self._choose(f"{name} failed: {error}")
        raise error

    def probed(self, name: str, ok: bool, error: str = "") -> None:
        """What an end-to-end probe of a member found."""
        now = asyncio.get_running_loop().time()
        breaker = self.breakers[name]
        if breaker.open:
            if breaker.probed(now, ok):
                self._choose(f"{name} works again")
        elif not ok and breaker.failed(now, error):
            self._choose(f"{name} does not answer: {error}")

    def doubted(self, name: str) -> bool:
        """It is left alone until probes say that it works again."""
        return self.breakers[name].open

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
                for task in done:
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
        asyncio.get_running_loop().call_later(KEEP, self._return, kept, list(deliveries))

    def _return(self, kept: deque[Delivery], deliveries: list[Delivery]) -> None:
        """What nobody fetched meanwhile goes back to where others can have it."""
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
            log.warning("cannot give messages back; they come back by themselves", error=str(error))

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
        if len(errors) == len(self.members):
            raise errors[0]
        return Backlog(waiting, oldest)

    async def durability(self) -> str:
        """The weakest of those that can be asked: any of them may hold a message."""
        found = []
        error: BrokerError | None = None
        for member in self.members.values():
            try:
                found.append(await member.durability())
            except BrokerError as failed:
                error = failed
        if not found and error is not None:
            raise error
        return min(found, key=STRENGTH.index)

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
