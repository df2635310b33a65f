"""NATS JetStream: a queue is a subject with a stream behind it, taken through a durable pull consumer.

A message that was taken and not settled comes again when its lease runs out; while this process lives it renews the
leases of all that it holds. With the connection everything that was taken is let go: its settlement would be read by a
server that may have forgotten it, and may have given its number to another message.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import urllib.error
import urllib.request
from collections.abc import Sequence

import orjson
import structlog

from oraculo.adapters.brokers.kit.reconnect import pauses
from oraculo.adapters.brokers.nats_jetstream.connection import ApiError, Connection
from oraculo.adapters.brokers.nats_jetstream.consume import is_gone, read_status
from oraculo.adapters.brokers.nats_jetstream.publish import Batch
from oraculo.adapters.brokers.nats_jetstream.session import NatsSession
from oraculo.adapters.brokers.nats_jetstream.streams import NotASubjectError, Stream
from oraculo.adapters.brokers.nats_jetstream.url import parse
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

FETCH_RETRY_S = 0.1
SILENCE_TIMEOUT_S = 8  # a server that says nothing for so long is gone; it is pinged every two seconds
PURGE_INTERVAL_S = 10.0
RESET_REASON = "reset"
STREAM_REPAIRS_MAX = 2  # how often one publish makes a stream again that vanished

log = structlog.get_logger("oraculo.broker")


class NatsBroker(Broker):
    scheme = "nats"
    traits = BrokerTraits()

    def __init__(self, url: str) -> None:
        self._options = parse(url)
        self._label = self._options.where
        self._current: NatsSession | None = None
        self._down = ""  # why there is no connection; empty while one stands or is being made
        self._changed = asyncio.Event()
        self._connections = 0
        self._expected: set[str] = set()  # queues that answers come to
        self._supervisor: asyncio.Task[None] | None = None
        self._stop: asyncio.Future[None] | None = None
        self._closed = False

    # -- verbs -------------------------------------------------------------------------------------------------------

    def expect(self, queue: str) -> None:
        self._expected.add(queue)

    async def publish(self, messages: Sequence[Outgoing]) -> PublishReport:
        if not messages:
            return ALL_CONFIRMED
        try:
            session = await self._session(0.0, self._options.confirm_timeout)
        except BrokerUnavailableError as error:
            return PublishReport(messages, reason=str(error))
        await session.streams.prepare(self._expected)
        batch = Batch(messages)
        todo = list(range(len(messages)))
        for _ in range(1 + STREAM_REPAIRS_MAX):
            numbers, streams = await self._admit(session, batch, todo)
            await session.publisher.send(batch, numbers, streams, self._options.confirm_timeout)
            todo, batch.without_stream = batch.without_stream, []
            if not todo:
                break
            for number in todo:
                session.streams.forget(messages[number].queue)
        batch.failed += todo
        if not batch.failed and not batch.refused and not batch.no_room:
            return ALL_CONFIRMED
        lost = session.connection.lost
        why = (
            batch.reason
            or (lost.result() if lost.done() else session.connection.server_error)
            or "no confirmation came"
        )
        unconfirmed = [messages[number] for number in sorted(batch.failed)]
        reason = f"nats {self._label}: {why if unconfirmed or batch.no_room else batch.refused[0].reason}"
        return PublishReport(unconfirmed, refused=batch.refused, reason=reason, no_room=batch.no_room)

    async def fetch(self, queue: str, *, limit: int, wait: float) -> list[Delivery]:
        clock = asyncio.get_running_loop().time
        begin = clock()
        until, setup = begin + wait, begin + max(wait, self._options.confirm_timeout)
        asked, failures = False, 0
        while True:
            session = await self._session(until - clock(), setup - clock())
            try:
                source = await session.queue_consumer(queue)
                got, trouble = await source.fetch(limit, until, ask=not asked)
            except NotASubjectError:
                raise
            except (ApiError, BrokerUnavailableError) as error:
                why = str(error)
            else:
                if got:
                    session.held.update(dict.fromkeys([delivery.tag for delivery in got], session.round))
                    return got
                asked = not is_gone(trouble)
                lost = session.connection.lost.done()
                if not trouble and not lost and clock() >= until:
                    return got
                why = session.connection.lost.result() if lost else read_status(trouble)
                if not asked and session.queues.get(queue) is source:
                    del session.queues[queue]
                    source.stop()
                    session.streams.forget(queue)
            failures += 1
            if failures > 1:
                if clock() >= until:
                    raise BrokerUnavailableError(f"nats {self._label}: {why}")
                await asyncio.sleep(min(FETCH_RETRY_S, until - clock()))

    async def settle(self, settlements: Sequence[Settlement]) -> None:
        session = self._current
        if session is None:
            return
        held, parts = session.held, []
        for settlement in settlements:
            tag = settlement.delivery.tag
            if held.pop(tag, None) is None:
                continue
            if settlement.verdict is Settle.ACK:
                parts.append(b"PUB %b 4\r\n+ACK\r\n" % tag)
            elif settlement.delay > 0:
                order = b'-NAK {"delay": %d}' % math.ceil(settlement.delay * 1e9)
                parts.append(b"PUB %b %d\r\n%b\r\n" % (tag, len(order), order))
            else:
                parts.append(b"PUB %b 4\r\n-NAK\r\n" % tag)
        if parts:
            session.connection.send(b"".join(parts))

    async def backlog(self, queue: str) -> Backlog:
        session = await self._session(0.0, self._options.confirm_timeout)
        try:
            found = await session.streams.backlog(queue)
        except ApiError as error:
            raise BrokerUnavailableError(f"nats {self._label}: {error}") from None
        source = session.queues.get(queue)
        if source is not None and found.waiting is not None:
            found.waiting += len(source.kept)
        return found

    async def durability(self) -> str:
        """Whether the server waits for its disk only its monitoring endpoint says: `monitor` in the URL."""
        session = await self._session(0.0, self._options.confirm_timeout)
        if any(stream.in_memory for stream in session.streams.known.values()):
            return "best-effort"
        if self._options.monitor is None:
            return "crash-safe"
        always = await asyncio.to_thread(_syncs_always, self._options.monitor, self._options.confirm_timeout)
        return "power-safe" if always else "crash-safe"

    def health(self) -> Health:
        up = self._current is not None and not self._current.connection.lost.done()
        return Health(up, "" if up else self._down or "not connected yet", max(0, self._connections - 1))

    async def reset(self) -> None:
        session = self._current
        if session is not None:
            session.give_back()
            await session.connection.flushed()
            session.stop()
            self._current = None
            session.connection.give_up(RESET_REASON)

    async def close(self) -> None:
        self._closed = True
        session, supervisor = self._current, self._supervisor
        if session is not None:
            session.give_back()
            await session.connection.flushed()
        self._changed_to("closed")
        if supervisor is not None and self._stop is not None:
            if not self._stop.done():
                self._stop.set_result(None)
            await asyncio.wait((supervisor,))

    # -- streams and queues ------------------------------------------------------------------------------------------

    async def _admit(
        self, session: NatsSession, batch: Batch, numbers: list[int]
    ) -> tuple[list[int], dict[str, Stream]]:
        """The messages whose queue has a stream. Those that have none are refused, or failed, with the reason."""
        messages, streams, without = batch.messages, {}, {}
        for queue in {messages[number].queue for number in numbers}:
            try:
                streams[queue] = await session.streams.of(queue)
                streams[queue].busy = True
            except (ApiError, BrokerUnavailableError) as error:
                without[queue] = error
        if not without:
            return numbers, streams
        for number in numbers:
            found = without.get(messages[number].queue)
            if isinstance(found, NotASubjectError):
                batch.refuse(number, str(found))
            elif found is not None:
                batch.failed.append(number)
                batch.reason = str(found)
        return [number for number in numbers if messages[number].queue in streams], streams

    # -- connection --------------------------------------------------------------------------------------------------

    async def _session(self, known_down: float, being_made: float) -> NatsSession:
        """The session that stands. One that is known to be lost is waited for `known_down` seconds, one that is being
        made `being_made` seconds."""
        loop = asyncio.get_running_loop()
        begin = loop.time()
        if self._supervisor is None and not self._closed:
            self._stop = loop.create_future()
            self._supervisor = loop.create_task(self._supervise(self._stop))
        while True:
            session = self._current
            if session is not None and not session.connection.lost.done():
                return session
            left = begin + (known_down if self._down else being_made) - loop.time()
            if left <= 0 or self._closed:
                raise BrokerUnavailableError(f"nats {self._label}: {self._down or 'no connection in time'}")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._changed.wait()

    def _changed_to(self, down: str) -> None:
        """Wake every verb that waits for a change."""
        self._down = down
        self._changed.set()
        self._changed = asyncio.Event()

    async def _supervise(self, stop: asyncio.Future[None]) -> None:
        """Connect again and again. `close` tells it to stop instead of cancelling it: tidying up is not cut short."""
        attempts, tried = pauses(), 0
        while not stop.done():
            connection = Connection(self._options)
            opening = asyncio.create_task(connection.open(self._options.servers[tried % len(self._options.servers)]))
            await asyncio.wait((opening, stop), return_when=asyncio.FIRST_COMPLETED)
            if not opening.done():
                opening.cancel()
                await asyncio.wait((opening,))
            if opening.cancelled():
                continue
            failure = opening.exception()
            if failure is None:
                reason, attempts = await self._serve(connection, stop), pauses()
            else:
                reason = str(failure)
            if reason != RESET_REASON and not stop.done():
                tried += 1
                self._lost(reason)
                await asyncio.wait((stop,), timeout=next(attempts))

    async def _serve(self, connection: Connection, stop: asyncio.Future[None]) -> str:
        """Use the connection until it is lost; return the reason."""
        session = self._current = NatsSession(connection, self._options)
        self._connections += 1
        if self._down:
            log.info("broker connection is back", broker="nats", server=self._label)
        self._changed_to("")
        chores = [asyncio.create_task(chore(session)) for chore in (self._listen, self._renew, self._purge)]
        try:
            await asyncio.wait((connection.lost, stop), return_when=asyncio.FIRST_COMPLETED)
            return connection.lost.result() if connection.lost.done() else "closed"
        finally:
            session.stop()
            if self._current is session:
                self._current = None
            for chore in chores:
                chore.cancel()
            await asyncio.gather(connection.drop(), *chores, return_exceptions=True)

    def _lost(self, reason: str) -> None:
        if not self._down:
            event = "broker connection lost" if self._connections else "broker unreachable"
            log.warning(event, broker="nats", server=self._label, reason=reason)
        self._changed_to(reason)

    async def _listen(self, session: NatsSession) -> None:
        """Give the connection up when the server says nothing at all. The client pings it."""
        heard, silent = -1, 0
        while silent < SILENCE_TIMEOUT_S:
            await asyncio.sleep(1)
            silent = silent + 1 if heard == session.connection.heard else 0
            heard = session.connection.heard
        session.connection.give_up(f"it said nothing for {SILENCE_TIMEOUT_S} s")

    async def _renew(self, session: NatsSession) -> None:
        while True:
            await asyncio.sleep(session.lease / 3)
            session.renew()

    async def _purge(self, session: NatsSession) -> None:
        while True:
            await asyncio.sleep(PURGE_INTERVAL_S * random.uniform(0.8, 1.0))
            with contextlib.suppress(BrokerUnavailableError):
                await session.streams.purge()


def _syncs_always(monitor: str, timeout: float) -> bool:
    try:
        with urllib.request.urlopen(f"{monitor}/varz", timeout=timeout) as answer:
            config = orjson.loads(answer.read())["jetstream"]["config"]
            return bool(config.get("sync_always"))
    except (OSError, urllib.error.URLError, ValueError, KeyError, TypeError):
        return False
