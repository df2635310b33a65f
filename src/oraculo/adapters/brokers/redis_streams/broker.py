"""Redis Streams: a queue is a stream, its readers are a consumer group, a message is an entry.

Nothing is taken before somebody asks for it. What was taken stays ours on the server, whatever happens to the
connection, until it is settled, given back, or this process is silent for longer than the lease. docs/brokers/redis.md
says what follows from that; upkeep.py does most of it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from oraculo.adapters.brokers.redis_streams.inspect import durability_of, standing_of
from oraculo.adapters.brokers.redis_streams.link import Link, LinkLostError
from oraculo.adapters.brokers.redis_streams.options import parse
from oraculo.adapters.brokers.redis_streams.publish import Publication
from oraculo.adapters.brokers.redis_streams.reading import Reading
from oraculo.adapters.brokers.redis_streams.session import Session
from oraculo.adapters.brokers.redis_streams.source import Source
from oraculo.adapters.brokers.redis_streams.supervisor import Supervisor
from oraculo.adapters.brokers.redis_streams.upkeep import Upkeep
from oraculo.ports.broker import Backlog, Delivery, Health, Outgoing, Settle, Settlement

T = TypeVar("T")


class RedisBroker:
    scheme = "redis"
    volatile = False

    def __init__(self, url: str) -> None:
        self._options = parse(url)
        self._sources: dict[str, Source] = {}
        self._upkeep = Upkeep(self._options, self._sources)
        self._supervisor = Supervisor(self._options, self._upkeep, self._leave)
        self._reading = Reading(self._options, self._supervisor, self._upkeep)
        self._timers: set[asyncio.TimerHandle] = set()

    async def publish(self, messages: Sequence[Outgoing]) -> None:
        if not messages:
            return
        until = asyncio.get_running_loop().time() + self._options.confirm_timeout
        session = await self._supervisor.connected()
        publication = Publication(session, messages)
        try:
            async with asyncio.timeout_at(until):
                await publication.send()
        except TimeoutError:
            session.drop(f"no confirmation within {self._options.confirm_timeout:g} s")
            publication.failed("no confirmation in time")
        except LinkLostError as error:
            publication.failed(str(error))
        now = asyncio.get_running_loop().time()
        for queue in publication.queues:
            self._upkeep.trim.published(queue, now)
        publication.check()

    async def fetch(self, queue: str, *, limit: int, wait: float) -> list[Delivery]:
        await self._supervisor.tried()
        now = asyncio.get_running_loop().time()
        source = self._source(queue, now)
        source.fetched_at = now
        if not source.ready and limit > 0:
            if wait > 0:
                await self._reading.arrival(source, limit, now, now + wait)
            else:
                await self._reading.look(source, limit)
        return [] if self._supervisor.closed else source.take(limit)

    async def settle(self, settlements: Sequence[Settlement]) -> None:
        acks: dict[Source, list[bytes]] = {}
        returns: dict[Source, list[bytes]] = {}
        for settlement in settlements:
            delivery = settlement.delivery
            source = self._sources.get(delivery.queue)
            if source is None:
                continue
            if settlement.verdict is Settle.RETRY and settlement.delay > 0:
                self._return_later(source, delivery, settlement.delay)
                continue
            key = source.settled(delivery)
            if key is not None:
                (acks if settlement.verdict is Settle.ACK else returns).setdefault(source, []).append(key)
        if acks or returns:
            await self._tell(acks, returns)

    async def backlog(self, queue: str) -> Backlog:
        source = self._sources.get(queue)
        standing = await self._ask(lambda control: standing_of(control, queue, self._options.group))
        return Backlog(standing.waiting + (len(source.ready) if source is not None else 0), standing.oldest_s)

    async def durability(self) -> str:
        return await self._ask(durability_of)

    def health(self) -> Health:
        return self._supervisor.health()

    async def reset(self) -> None:
        """All that is held goes back as well."""
        for source in self._sources.values():
            source.surrender()
        await self._supervisor.reset()

    async def close(self) -> None:
        """All that is held goes back, and those who wait get nothing."""
        for timer in self._timers:
            timer.cancel()
        for source in self._sources.values():
            for waiter in source.waiters:
                waiter.release()
        await self._supervisor.close()
        await self._reading.close()

    # -- inside ------------------------------------------------------------------------------------------------------

    async def _leave(self, session: Session) -> None:
        if await self._reading.stop(self._sources.values()):
            await self._upkeep.leave(session)

    async def _ask(self, question: Callable[[Link], Awaitable[T]]) -> T:
        session = await self._supervisor.connected()
        try:
            return await question(session.control)
        except LinkLostError as error:
            raise self._supervisor.failure(str(error)) from None

    def _source(self, queue: str, now: float) -> Source:
        source = self._sources.get(queue)
        if source is None:
            source = self._sources[queue] = Source(queue, now)
        return source

    async def _tell(self, acks: dict[Source, list[bytes]], returns: dict[Source, list[bytes]]) -> None:
        """What the server does not confirm is owed, and said again."""
        upkeep, replies = self._upkeep, []
        commands = [upkeep.acknowledge(source, ids) for source, ids in acks.items()]
        commands += [upkeep.give_back(source, ids) for source, ids in returns.items()]
        if self._supervisor.session is not None:
            with contextlib.suppress(LinkLostError):
                replies = await self._supervisor.session.control.call(commands)
        said = iter(replies or [None] * len(commands))
        now = asyncio.get_running_loop().time()
        for source, ids in acks.items():
            if not isinstance(next(said), int):
                source.owed_acks += ids
            elif upkeep.trim.acked(source.name, ids, now):
                upkeep.hurry()
        for source, ids in returns.items():
            source.claim_at = 0.0
            if not isinstance(next(said), list):
                source.owed_returns += ids
            elif source.waiters:
                upkeep.hurry()

    def _return_later(self, source: Source, delivery: Delivery, delay: float) -> None:
        """Until then it is held, so that nobody else gets it; when this process dies, it comes back with the lease."""
        key = source.settled(delivery)
        if key is None:
            return
        again = source.held[key] = [key, ()]

        def give_back() -> None:
            self._timers.discard(timer)
            if source.held.get(key) is again:
                del source.held[key]
                source.owed_returns.append(key)
                self._upkeep.hurry()

        timer = asyncio.get_running_loop().call_later(delay, give_back)
        self._timers.add(timer)
