"""Redis Streams: a queue is a stream, its readers are a consumer group, a message is an entry.

Nothing is taken before a fetch asks for it. What was taken stays ours on the server, whatever happens to the
connection, until it is settled, given back, or this process is silent for longer than the lease. docs/brokers/redis.md
says what follows from that; upkeep.py does most of it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from oraculo.adapters.brokers.kit.reconnect import Connector
from oraculo.adapters.brokers.redis_streams.connection import Connection, ConnectionLostError
from oraculo.adapters.brokers.redis_streams.consume import StreamReader
from oraculo.adapters.brokers.redis_streams.inspect import durability_of, standing_of
from oraculo.adapters.brokers.redis_streams.publish import Publication
from oraculo.adapters.brokers.redis_streams.session import Session
from oraculo.adapters.brokers.redis_streams.source import Source
from oraculo.adapters.brokers.redis_streams.upkeep import Upkeep
from oraculo.adapters.brokers.redis_streams.url import parse
from oraculo.errors import BrokerUnavailableError
from oraculo.ports.broker import (
    ALL_CONFIRMED,
    Backlog,
    Broker,
    BrokerTraits,
    Delivery,
    Health,
    Outgoing,
    PublishReport,
    Settle,
    Settlement,
)

T = TypeVar("T")

LEAVE_TIMEOUT_S = 2.0


class RedisBroker(Broker):
    scheme = "redis"
    traits = BrokerTraits()

    def __init__(self, url: str) -> None:
        self._options = parse(url)
        self._sources: dict[str, Source] = {}
        self._upkeep = Upkeep(self._options, self._sources)
        self._connector = Connector(
            f"redis {self._options.where}",
            self._open,
            self._serve,
            faults=(OSError, ConnectionLostError),
            alive=lambda session: not session.lost.done(),
            labels={"broker": "redis", "where": self._options.where},
        )
        self._reader = StreamReader(self._options, self._connector, self._upkeep)
        self._timers: set[asyncio.TimerHandle] = set()

    async def publish(self, messages: Sequence[Outgoing]) -> PublishReport:
        if not messages:
            return ALL_CONFIRMED
        until = asyncio.get_running_loop().time() + self._options.confirm_timeout
        try:
            session = await self._connector.get(self._options.confirm_timeout)
        except BrokerUnavailableError as error:
            return PublishReport(messages, reason=str(error))
        publication = Publication(session, messages)
        try:
            async with asyncio.timeout_at(until):
                await publication.send()
        except TimeoutError:
            session.drop(f"no confirmation within {self._options.confirm_timeout:g} s")
            publication.failed("no confirmation in time")
        except ConnectionLostError as error:
            publication.failed(str(error))
        now = asyncio.get_running_loop().time()
        for queue in publication.queues:
            self._upkeep.trim.published(queue, now)
        return publication.report()

    async def fetch(self, queue: str, *, limit: int, wait: float) -> list[Delivery]:
        await self._reader.first_attempt()
        now = asyncio.get_running_loop().time()
        source = self._source(queue, now)
        source.fetched_at = now
        if not source.ready and limit > 0:
            if wait > 0:
                await self._reader.arrival(source, limit, now, now + wait)
            else:
                await self._reader.look(source, limit)
        return [] if self._connector.closed else source.take(limit)

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
        held = len(source.ready) if source is not None else 0
        return Backlog(standing.waiting + held, standing.oldest_s)  # Redis sees no consumer that waits

    async def durability(self) -> str:
        return await self._ask(durability_of)

    def health(self) -> Health:
        return self._connector.health()

    async def reset(self) -> None:
        """Give back all that is held, and connect again."""
        for source in self._sources.values():
            source.surrender()
        session = self._connector.current
        self._connector.start()
        self._connector.renew()
        if session is not None:
            session.drop("a new connection was asked for")
        await self._reader.first_attempt()

    async def close(self) -> None:
        """Give back all that is held; fetches that wait get an empty list."""
        for timer in self._timers:
            timer.cancel()
        for source in self._sources.values():
            for waiter in source.waiters:
                waiter.release()
        self._upkeep.stop()
        await self._connector.close(grace=LEAVE_TIMEOUT_S)
        await self._reader.close()

    # -- inside ------------------------------------------------------------------------------------------------------

    async def _open(self) -> Session:
        session = await Session.open(self._options)
        try:
            await self._upkeep.start(session)
        except BaseException:
            await session.close()
            raise
        return session

    async def _serve(self, session: Session) -> str:
        """Do the upkeep until the session is over; return the reason."""
        try:
            await self._upkeep.run(session)
            if not session.lost.done() and await self._reader.stop(self._sources.values()):
                await self._upkeep.leave(session)
        except ConnectionLostError:
            pass  # session.lost says why
        finally:
            await session.close()
        return session.lost.result()

    async def _ask(self, question: Callable[[Connection], Awaitable[T]]) -> T:
        session = await self._connector.get(self._options.confirm_timeout)
        try:
            return await question(session.control)
        except ConnectionLostError as error:
            raise self._connector.unavailable(str(error)) from None

    def _source(self, queue: str, now: float) -> Source:
        source = self._sources.get(queue)
        if source is None:
            source = self._sources[queue] = Source(queue, now)
        return source

    async def _tell(self, acks: dict[Source, list[bytes]], returns: dict[Source, list[bytes]]) -> None:
        """Send verdicts. Those that the server does not confirm are kept and sent again."""
        upkeep, replies = self._upkeep, []
        commands = [upkeep.acknowledge(source, ids) for source, ids in acks.items()]
        commands += [upkeep.give_back(source, ids) for source, ids in returns.items()]
        session = self._connector.current
        if session is not None:
            with contextlib.suppress(ConnectionLostError):
                replies = await session.control.call(commands)
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
        """Hold a delivery until its delay is over. When this process dies, it comes back with the lease."""
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
