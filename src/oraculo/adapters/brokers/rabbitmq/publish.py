"""Publishing: a whole batch in a few writes, its confirmations counted in bulk.

Every message is persistent and mandatory: one whose queue does not exist comes back before it is confirmed. Such a
queue is not made at once, because a worker that declares it differently (pika's default is not durable) could then
never start; it is made when nobody has made it for `declare_after` seconds. Until then its messages are unconfirmed,
which the caller knows how to bear, and all others go through. Queues that answers are expected in exist before the
first message goes: a worker that answers at once may not declare them, and the server drops what has no queue.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from oraculo.adapters.brokers.rabbitmq import wire as wire_frames
from oraculo.adapters.brokers.rabbitmq.link import Lane, Link
from oraculo.adapters.brokers.rabbitmq.queues import DIFFERS, Queues
from oraculo.adapters.brokers.rabbitmq.wire import SHORT, WRITE, AMQPError, Wire
from oraculo.errors import BrokerUnavailableError
from oraculo.ports.broker import Outgoing
from oraculo.wire import names

ALWAYS_OURS = (names.RESULTS, names.REQUESTS)
RESERVED = "amq."
Key = tuple[str, str, bytes]


def _key(message: Outgoing) -> Key:
    """What a returned message is recognised by. Two that share it cannot be told apart, and both count as returned."""
    return message.queue, message.message_id, message.body


class Batch:
    """Messages with the sequence numbers `first` … `last`; all up to `low` are confirmed, and those in `ahead`."""

    def __init__(self, messages: list[Outgoing], first: int, done: asyncio.Future[None]) -> None:
        self.messages = messages
        self.first = first
        self.last = first + len(messages) - 1
        self.low = first - 1
        self.ahead: set[int] = set()
        self.returned: set[Key] = set()
        self.nacked: list[Outgoing] = []
        self.done = done

    def confirm(self, tag: int, multiple: bool) -> bool:
        """True when nothing is left to wait for."""
        if multiple:
            self.low = max(self.low, min(tag, self.last))
            self.ahead = {n for n in self.ahead if n > self.low}
        else:
            self.ahead.add(tag)
        while self.low + 1 in self.ahead:
            self.low += 1
            self.ahead.discard(self.low)
        return self.low >= self.last

    @property
    def pending(self) -> list[Outgoing]:
        start = self.low + 1
        return [m for n, m in enumerate(self.messages[start - self.first :], start) if n not in self.ahead]


class ConfirmLane(Lane):
    """A channel in confirm mode."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        self._next = 1
        self._batches: deque[Batch] = deque()
        self._methods: dict[str, bytes] = {}

    async def open(self, seconds: float) -> None:
        await super().open(seconds)
        self.channel.add_on_return_callback(self._returned)
        await self.call(self.channel.confirm_delivery, self._acknowledged, seconds=seconds)
        self.wire.receivers[self.number] = self

    def send(self, messages: Sequence[Outgoing], refused: list[tuple[Outgoing, str]]) -> Batch:
        """Those that AMQP cannot carry are refused, the others are on their way."""
        pieces: list[bytes] = []
        sent: list[Outgoing] = []
        writes: list[bytes] = []
        size, number, room = 0, self.number, self.wire.body_room
        methods, properties_for, frames = self._methods, wire_frames.properties_for, wire_frames.content_frames
        for message in messages:
            try:
                method = methods.get(message.queue) or self._method(message.queue)
                properties = properties_for(message)
                if len(properties) > room - 12:
                    raise ValueError(f"the headers have {len(properties)} bytes, more than a frame holds")
            except ValueError as error:
                refused.append((message, str(error)))
                continue
            pieces.append(method)
            pieces += frames(number, properties, message.body, room)
            sent.append(message)
            size += len(message.body)
            if size >= WRITE:
                writes.append(b"".join(pieces))
                pieces, size = [], 0
        batch = Batch(sent, self._next, asyncio.get_running_loop().create_future())
        if not sent:
            batch.done.set_result(None)
            return batch
        self._next += len(sent)
        self._batches.append(batch)
        for data in (*writes, b"".join(pieces)):
            if data:
                self.wire.emit(data)
        return batch

    def confirmed(self, tag: int, multiple: bool) -> None:
        finished = []
        for batch in self._batches:
            if batch.first > tag:
                break
            if (multiple or tag <= batch.last) and batch.confirm(tag, multiple):
                finished.append(batch)
        for batch in finished:
            self._batches.remove(batch)
            if not batch.done.done():
                batch.done.set_result(None)

    def delivered(self, tag: int, redelivered: bool, headers: dict[str, str], body: bytes) -> None:
        """Nothing is consumed here."""

    def lost(self) -> None:
        for batch in self._batches:
            if not batch.done.done():
                batch.done.set_exception(self.gone)
                batch.done.exception()  # a publish that gave up no longer looks
        self._batches.clear()

    def _method(self, queue: str) -> bytes:
        if not queue or len(queue.encode()) > SHORT:
            raise ValueError(f"a queue name has 1 to {SHORT} bytes")
        frame = self._methods[queue] = wire_frames.publish_frame(self.number, queue)
        return frame

    def _acknowledged(self, frame: object) -> None:
        """What the short cut did not take: basic.nack, the server's word that it did not store a message."""
        method = frame.method  # type: ignore[attr-defined]
        tag, multiple = int(method.delivery_tag), bool(method.multiple)
        if method.INDEX == wire_frames.NACK:
            for batch in self._batches:
                first = batch.first if multiple else max(tag, batch.first)
                for number in range(first, min(tag, batch.last) + 1):
                    if number > batch.low and number not in batch.ahead:
                        batch.nacked.append(batch.messages[number - batch.first])
        self.confirmed(tag, multiple)

    def _returned(self, _channel: object, method: object, properties: object, body: bytes) -> None:
        """Comes before the confirmation of the same message."""
        queue: str = method.routing_key  # type: ignore[attr-defined]
        ident: str = properties.message_id or ""  # type: ignore[attr-defined]
        for batch in self._batches:
            batch.returned.add((queue, ident, body))


@dataclass(slots=True)
class Trouble:
    """What of one call was not confirmed, what never will be, and why."""

    unconfirmed: list[Outgoing] = field(default_factory=list)
    refused: list[tuple[Outgoing, str]] = field(default_factory=list)
    reasons: dict[str, None] = field(default_factory=dict)
    failed: bool = False  # more than a queue that nobody has made yet

    def add(self, messages: Sequence[Outgoing], reason: str, *, failed: bool = True) -> None:
        if messages:
            self.unconfirmed += messages
            self.reasons[reason] = None
            self.failed = self.failed or failed

    def raise_if_any(self) -> None:
        for message, reason in self.refused:
            self.reasons[f"{message.queue}: refused, {reason}"] = None
        if self.reasons:
            raise BrokerUnavailableError(
                "; ".join(list(self.reasons)[:5]),
                unconfirmed=self.unconfirmed,
                refused=self.refused,
                works=not self.failed,
            )


class Publisher:
    def __init__(self, link: Link, queues: Queues) -> None:
        self.expected: list[str] = []  # queues that answers come to
        self._link = link
        self._queues = queues
        self._here = Queues(link)  # over the connection that publishes: no other has to work for that
        self._seconds = link.options.confirm_timeout
        self._declare_after = link.options.declare_after
        self._missing: dict[str, float] = {}  # since when
        self._largest: int | None = None  # bytes that the server takes; learnt when it refuses more
        self._lane: ConfirmLane | None = None
        self._opening = asyncio.Lock()

    async def publish(self, messages: Sequence[Outgoing]) -> None:
        until = asyncio.get_running_loop().time() + self._seconds
        trouble = Trouble()
        left: Sequence[Outgoing] = messages
        while left:
            left = self._of_a_size(left, trouble)
            if self._missing:
                left = await self._present(left, trouble)
            if left:
                left = await self._send(left, until, trouble)
        trouble.raise_if_any()

    async def _send(self, messages: Sequence[Outgoing], until: float, trouble: Trouble) -> list[Outgoing]:
        """Gives those that are worth another try at once."""
        try:
            if asyncio.get_running_loop().time() >= until:
                raise BrokerUnavailableError(f"RabbitMQ did not confirm within {self._seconds:g} s")
            lane = await self._open(until)
            if lane.wire.blocked:
                raise BrokerUnavailableError(f"RabbitMQ takes no messages now: {lane.wire.blocked}")
            heard = lane.wire.bytes_received
            batch = lane.send(messages, trouble.refused)
        except BrokerUnavailableError as error:
            trouble.add(messages, str(error))
            return []
        again: list[Outgoing] = []
        try:
            async with asyncio.timeout_at(until):
                await batch.done
        except TimeoutError:
            trouble.add(batch.pending, self._late(lane.wire, heard))
        except BrokerUnavailableError as error:
            again = self._after_close(lane, batch, str(error), trouble)
        if batch.nacked:
            trouble.add(batch.nacked, "RabbitMQ did not store a message (basic.nack)")
        if batch.returned:
            returned = [message for message in batch.messages if _key(message) in batch.returned]
            pending = set(map(id, batch.pending)) if batch.low < batch.last else ()
            again += await self._came_back([m for m in returned if id(m) not in pending], trouble)
        return again

    async def _open(self, until: float) -> ConfirmLane:
        lane = self._lane
        if lane is not None and lane.alive:
            return lane
        async with self._opening:
            lane = self._lane
            if lane is not None and lane.alive:
                return lane
            left = until - asyncio.get_running_loop().time()
            wire = await self._link.wire(left)
            lane = ConfirmLane(wire)
            await lane.open(max(0.1, until - asyncio.get_running_loop().time()))
            await self._here.prepare(self.expected, (until - asyncio.get_running_loop().time()) / 2)
            self._lane = lane
            return lane

    def _late(self, wire: Wire, heard: int) -> str:
        """A server that said nothing at all meanwhile is not slow but gone: the connection is of no use."""
        if wire.blocked:
            return f"RabbitMQ takes no messages now: {wire.blocked}"
        if wire.bytes_received == heard:
            wire.drop(AMQPError(f"no confirmation within {self._seconds:g} s"))
        return f"RabbitMQ did not confirm within {self._seconds:g} s"

    # -- messages that are too large ---------------------------------------------------------------------------------

    def _of_a_size(self, messages: Sequence[Outgoing], trouble: Trouble) -> Sequence[Outgoing]:
        largest = self._largest
        if largest is None or all(len(message.body) <= largest for message in messages):
            return messages
        reason = f"the server takes at most {largest} bytes"
        trouble.refused += [(message, reason) for message in messages if len(message.body) > largest]
        return [message for message in messages if len(message.body) <= largest]

    def _after_close(self, lane: ConfirmLane, batch: Batch, reason: str, trouble: Trouble) -> list[Outgoing]:
        """The server closes the channel on a message that is too large, and says what it allows: the others go again,
        on another channel."""
        limit = re.search(r"message size \d+ is larger than configured max size (\d+)", reason)
        if lane.gone.code != DIFFERS or limit is None:
            trouble.add(batch.pending, reason)
            return []
        self._largest = int(limit[1])
        return batch.pending

    # -- queues that do not exist ------------------------------------------------------------------------------------

    async def _present(self, messages: Sequence[Outgoing], trouble: Trouble) -> Sequence[Outgoing]:
        """Without those whose queue was missing the last time and still is."""
        absent = set()
        for queue in {message.queue for message in messages} & self._missing.keys():
            reason = await self._absent(queue)
            if not reason:
                self._missing.pop(queue, None)
                continue
            absent.add(queue)
            theirs = [message for message in messages if message.queue == queue]
            if queue.startswith(RESERVED):
                trouble.refused += [(message, "only the server makes queues of that name") for message in theirs]
            else:
                trouble.add(theirs, reason, failed=reason != _absence(queue))
        return [message for message in messages if message.queue not in absent] if absent else messages

    async def _came_back(self, messages: list[Outgoing], trouble: Trouble) -> list[Outgoing]:
        now = asyncio.get_running_loop().time()
        for message in messages:
            self._missing.setdefault(message.queue, now)
        return list(await self._present(messages, trouble))

    async def _absent(self, queue: str) -> str:
        """Why nothing can be sent there; empty when the queue exists, perhaps because it was made now."""
        since = self._missing[queue]
        if queue.startswith(RESERVED):
            since = math.inf
        ours = queue.endswith(names.DLQ) or queue in ALWAYS_OURS
        due = ours or asyncio.get_running_loop().time() - since >= self._declare_after
        try:
            if due:
                await self._queues.ensure(queue)
            elif await self._queues.waiting(queue) is None:
                return _absence(queue)
        except BrokerUnavailableError as error:
            return f"{_absence(queue)}, and: {error}"
        return ""


def _absence(queue: str) -> str:
    return f"queue {queue} does not exist yet"
