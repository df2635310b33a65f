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

from oraculo.adapters.brokers.nats_jetstream.link import ApiError, Link
from oraculo.adapters.brokers.nats_jetstream.publish import Batch, Publisher
from oraculo.adapters.brokers.nats_jetstream.pull import Queue, is_gone, read_status
from oraculo.adapters.brokers.nats_jetstream.streams import NotASubjectError, Stream, Streams
from oraculo.adapters.brokers.nats_jetstream.url import Options, read
from oraculo.errors import BrokerUnavailableError
from oraculo.ports.broker import Backlog, Delivery, Health, Outgoing, Settle, Settlement

FIRST_RETRY_S, LAST_RETRY_S = 0.1, 2.0
SILENCE_S = 8  # a server that says nothing for this long is gone; it is pinged every two seconds
PURGE_S = 10.0
REPAIRS = 2  # how often one publish makes a stream again that vanished

RESET = "reset"

log = structlog.get_logger("oraculo.broker")


class _Session:
    """What belongs to one link and ends with it."""

    def __init__(self, link: Link, options: Options) -> None:
        self.link = link
        self.streams = Streams(link, options)
        self.publisher = Publisher(link)
        self.queues: dict[str, Queue] = {}
        self.held: dict[bytes, int] = {}  # what was handed out and is not settled → the round in which it was
        self.round = 0
        self.lease = options.lease

    def nak(self, tags: Sequence[bytes]) -> None:
        self.link.send(b"".join([b"PUB %b 4\r\n-NAK\r\n" % tag for tag in tags]))

    def renew(self) -> None:
        """The leases of all that was held a round ago already."""
        old = [tag for tag, when in self.held.items() if when < self.round]
        self.round += 1
        if old:
            self.link.send(b"".join([b"PUB %b 4\r\n+WPI\r\n" % tag for tag in old]))

    def give_back(self) -> None:
        for queue in self.queues.values():
            queue.give_back()
        self.nak(list(self.held))
        self.held.clear()

    def stop(self) -> None:
        self.held.clear()
        for queue in self.queues.values():
            queue.stop()


class NatsBroker:
    scheme = "nats"
    volatile = False

    def __init__(self, url: str) -> None:
        self._options = read(url)
        self._label = self._options.servers[0]
        self._session: _Session | None = None
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

    async def publish(self, messages: Sequence[Outgoing]) -> None:
        if not messages:
            return
        session = await self._ready(0.0, self._options.confirm_timeout)
        await session.streams.prepare(self._expected)
        batch = Batch(messages)
        todo = list(range(len(messages)))
        for _ in range(1 + REPAIRS):
            numbers, streams = await self._admit(session, batch, todo)
            await session.publisher.send(batch, numbers, streams, self._options.confirm_timeout)
            todo, batch.homeless = batch.homeless, []
            if not todo:
                break
            for number in todo:
                session.streams.forget(messages[number].queue)
        batch.failed += todo
        if batch.failed or batch.refused:
            lost = session.link.lost
            why = batch.reason or (lost.result() if lost.done() else session.link.complaint) or "no confirmation came"
            raise BrokerUnavailableError(
                f"nats {self._label}: {why if batch.failed else batch.refused[0][1]}",
                unconfirmed=[messages[number] for number in sorted(batch.failed)],
                refused=batch.refused,
            )

    async def fetch(self, queue: str, *, limit: int, wait: float) -> list[Delivery]:
        clock = asyncio.get_running_loop().time
        begin = clock()
        until, setup = begin + wait, begin + max(wait, self._options.confirm_timeout)
        asked, failures = False, 0
        while True:
            session = await self._ready(until - clock(), setup - clock())
            try:
                source = await self._source(session, queue)
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
                lost = session.link.lost.done()
                if not trouble and not lost and clock() >= until:
                    return got
                why = session.link.lost.result() if lost else read_status(trouble)
                if not asked and session.queues.get(queue) is source:
                    del session.queues[queue]
                    source.stop()
                    session.streams.forget(queue)
            failures += 1
            if failures > 1:
                if clock() >= until:
                    raise BrokerUnavailableError(f"nats {self._label}: {why}")
                await asyncio.sleep(min(FIRST_RETRY_S, until - clock()))

    async def settle(self, settlements: Sequence[Settlement]) -> None:
        session = self._session
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
            session.link.send(b"".join(parts))

    async def backlog(self, queue: str) -> Backlog:
        session = await self._ready(0.0, self._options.confirm_timeout)
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
        session = await self._ready(0.0, self._options.confirm_timeout)
        if any(stream.in_memory for stream in session.streams.known.values()):
            return "best-effort"
        if self._options.monitor is None:
            return "crash-safe"
        always = await asyncio.to_thread(_syncs_always, self._options.monitor, self._options.confirm_timeout)
        return "power-safe" if always else "crash-safe"

    def health(self) -> Health:
        up = self._session is not None and not self._session.link.lost.done()
        return Health(up, "" if up else self._down or "not connected yet", max(0, self._connections - 1))

    async def reset(self) -> None:
        session = self._session
        if session is not None:
            session.give_back()
            await session.link.flushed()
            session.stop()
            self._session = None
            session.link.give_up(RESET)

    async def close(self) -> None:
        self._closed = True
        session, supervisor = self._session, self._supervisor
        if session is not None:
            session.give_back()
            await session.link.flushed()
        self._tell("closed")
        if supervisor is not None and self._stop is not None:
            if not self._stop.done():
                self._stop.set_result(None)
            await asyncio.wait((supervisor,))

    # -- streams and queues ------------------------------------------------------------------------------------------

    async def _admit(self, session: _Session, batch: Batch, numbers: list[int]) -> tuple[list[int], dict[str, Stream]]:
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

    async def _source(self, session: _Session, queue: str) -> Queue:
        stream = await session.streams.with_consumer(queue)
        stream.busy = True
        session.lease = min(session.lease, stream.lease)
        source = session.queues.get(queue)
        if source is None:
            source = session.queues[queue] = Queue(queue, session.link, stream.name, stream.consumer, session.nak)
        return source

    # -- connection --------------------------------------------------------------------------------------------------

    async def _ready(self, known_down: float, being_made: float) -> _Session:
        """The session that stands. Waits for so many seconds while the connection is known to be down, and for so many
        while it is being made."""
        loop = asyncio.get_running_loop()
        begin = loop.time()
        if self._supervisor is None and not self._closed:
            self._stop = loop.create_future()
            self._supervisor = loop.create_task(self._supervise(self._stop))
        while True:
            session = self._session
            if session is not None and not session.link.lost.done():
                return session
            left = begin + (known_down if self._down else being_made) - loop.time()
            if left <= 0 or self._closed:
                raise BrokerUnavailableError(f"nats {self._label}: {self._down or 'no connection in time'}")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._changed.wait()

    def _tell(self, down: str) -> None:
        """To all who wait for a change."""
        self._down = down
        self._changed.set()
        self._changed = asyncio.Event()

    async def _supervise(self, stop: asyncio.Future[None]) -> None:
        """It is never cancelled by `close`, which would cut its tidying up short: it is told to stop."""
        pause, tried = FIRST_RETRY_S, 0
        while not stop.done():
            link = Link(self._options)
            opening = asyncio.create_task(link.open(self._options.servers[tried % len(self._options.servers)]))
            await asyncio.wait((opening, stop), return_when=asyncio.FIRST_COMPLETED)
            if not opening.done():
                opening.cancel()
                await asyncio.wait((opening,))
            if opening.cancelled():
                continue
            failure = opening.exception()
            if failure is None:
                reason, pause = await self._stand(link, stop), FIRST_RETRY_S
            else:
                reason = str(failure)
            if reason != RESET and not stop.done():
                tried += 1
                self._lost(reason)
                await asyncio.wait((stop,), timeout=pause * random.uniform(0.5, 1.0))
                pause = min(2 * pause, LAST_RETRY_S)

    async def _stand(self, link: Link, stop: asyncio.Future[None]) -> str:
        """As long as the link does; why it fell."""
        session = self._session = _Session(link, self._options)
        self._connections += 1
        if self._down:
            log.info("broker connection is back", broker="nats", server=self._label)
        self._tell("")
        chores = [asyncio.create_task(chore(session)) for chore in (self._listen, self._renew, self._purge)]
        try:
            await asyncio.wait((link.lost, stop), return_when=asyncio.FIRST_COMPLETED)
            return link.lost.result() if link.lost.done() else "closed"
        finally:
            session.stop()
            if self._session is session:
                self._session = None
            for chore in chores:
                chore.cancel()
            await asyncio.gather(link.drop(), *chores, return_exceptions=True)

    def _lost(self, reason: str) -> None:
        if not self._down:
            log.warning("broker connection lost", broker="nats", server=self._label, reason=reason)
        self._tell(reason)

    async def _listen(self, session: _Session) -> None:
        """The client pings; a server that says nothing at all is gone, or out of reach."""
        heard, silent = -1, 0
        while silent < SILENCE_S:
            await asyncio.sleep(1)
            silent = silent + 1 if heard == session.link.heard else 0
            heard = session.link.heard
        session.link.give_up(f"it said nothing for {SILENCE_S} s")

    async def _renew(self, session: _Session) -> None:
        while True:
            await asyncio.sleep(session.lease / 3)
            session.renew()

    async def _purge(self, session: _Session) -> None:
        while True:
            await asyncio.sleep(PURGE_S * random.uniform(0.8, 1.0))
            with contextlib.suppress(BrokerUnavailableError):
                await session.streams.purge()


def _syncs_always(monitor: str, timeout: float) -> bool:
    try:
        with urllib.request.urlopen(f"{monitor}/varz", timeout=timeout) as answer:
            config = orjson.loads(answer.read())["jetstream"]["config"]
            return bool(config.get("sync_always"))
    except (OSError, urllib.error.URLError, ValueError, KeyError, TypeError):
        return False
