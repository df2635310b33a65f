"""A channel in confirm mode: a whole batch in a few writes, its confirmations counted in bulk."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from oraculo.adapters.brokers.rabbitmq import transport as frames
from oraculo.adapters.brokers.rabbitmq.channel import Channel
from oraculo.adapters.brokers.rabbitmq.transport import SHORT_STRING_MAX_BYTES, WRITE_MAX_BYTES, AmqpTransport
from oraculo.ports.broker import Outgoing, Refusal

Key = tuple[str, str, bytes]


def key_of(message: Outgoing) -> Key:
    """The key by which a returned message is recognised. Two that share it both count as returned."""
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


class ConfirmChannel(Channel):
    """A channel in confirm mode."""

    def __init__(self, transport: AmqpTransport) -> None:
        super().__init__(transport)
        self._next = 1
        self._batches: deque[Batch] = deque()
        self._methods: dict[str, bytes] = {}

    async def open(self, seconds: float) -> None:
        await super().open(seconds)
        self.channel.add_on_return_callback(self._returned)
        await self.call(self.channel.confirm_delivery, self._acknowledged, seconds=seconds)
        self.transport.receivers[self.number] = self

    def send(self, messages: Sequence[Outgoing], refused: list[Refusal]) -> Batch:
        """Write messages to the connection. What AMQP cannot carry is appended to `refused`."""
        pieces: list[bytes] = []
        sent: list[Outgoing] = []
        writes: list[bytes] = []
        size, number, room = 0, self.number, self.transport.body_room
        methods, properties_for, content_frames = self._methods, frames.properties_for, frames.content_frames
        for message in messages:
            try:
                method = methods.get(message.queue) or self._method(message.queue)
                properties = properties_for(message)
                if len(properties) > room - 12:
                    raise ValueError(f"the headers have {len(properties)} bytes, more than a frame holds")
            except ValueError as error:
                refused.append(Refusal(message, str(error)))
                continue
            pieces.append(method)
            pieces += content_frames(number, properties, message.body, room)
            sent.append(message)
            size += len(message.body)
            if size >= WRITE_MAX_BYTES:
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
                self.transport.emit(data)
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
        if not queue or len(queue.encode()) > SHORT_STRING_MAX_BYTES:
            raise ValueError(f"a queue name has 1 to {SHORT_STRING_MAX_BYTES} bytes")
        frame = self._methods[queue] = frames.publish_frame(self.number, queue)
        return frame

    def _acknowledged(self, frame: object) -> None:
        """What the short cut did not take: basic.nack, the server's word that it did not store a message."""
        method = frame.method  # type: ignore[attr-defined]
        tag, multiple = int(method.delivery_tag), bool(method.multiple)
        if method.INDEX == frames.NACK:
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
