"""A channel that consumes one queue: what has arrived on it, what of that is settled, and how much may be out.

Acknowledgements are one frame for all that leave no gap. Messages that were handed out stay with the channel until they
are settled, however long that takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from oraculo.adapters.brokers.rabbitmq.channel import Channel
from oraculo.adapters.brokers.rabbitmq.transport import AmqpTransport, ack_frame, nack_frames, text_of
from oraculo.ports.broker import Delivery

PREFETCH_MAX = 65535


class ConsumeChannel(Channel):
    """A channel that consumes one queue. Delivery tags are 1, 2, 3 …: all up to `low` are settled, and those in
    `settled`; the others are here, in the buffer or handed out."""

    def __init__(
        self, transport: AmqpTransport, queue: str, arrived: Callable[[Delivery], None], changed: Callable[[], None]
    ) -> None:
        super().__init__(transport)
        self.queue = queue
        self.last = 0
        self.low = 0
        self.settled: set[int] = set()
        self.held: dict[int, asyncio.TimerHandle] = {}  # to be given back later
        self.consumers: dict[str, int] = {}  # tag → how many messages it may have out
        self._arrived = arrived
        self._changed = changed
        self._names = 0
        self._getting = asyncio.Lock()
        self._got: asyncio.Future[None] | None = None

    @property
    def unsettled(self) -> int:
        return self.last - self.low - len(self.settled)

    @property
    def window(self) -> int:
        return sum(self.consumers.values())

    async def open(self, seconds: float) -> None:
        await super().open(seconds)
        self.channel.add_on_cancel_callback(self._cancelled)
        self.channel.add_callback(lambda _: self._get_answered(), ["Basic.GetEmpty"], one_shot=False)
        self.transport.receivers[self.number] = self

    async def consume(self, room: int, seconds: float) -> None:
        """One more consumer, which may have `room` messages out."""
        room = min(room, PREFETCH_MAX)
        self._names += 1
        name = str(self._names)
        self.consumers[name] = room
        try:
            await self.call(self.channel.basic_qos, prefetch_count=room, seconds=seconds)
            await self.call(self.channel.basic_consume, self.queue, self._message, consumer_tag=name, seconds=seconds)
        except BaseException:
            self.consumers.pop(name, None)
            raise

    async def cancel(self, name: str, seconds: float) -> None:
        await self.call(self.channel.basic_cancel, name, seconds=seconds)
        self.consumers.pop(name, None)

    async def get(self, seconds: float) -> None:
        """One message, if there is any that no consumer got. Everything that the queue sent before has then arrived."""
        async with self._getting:
            self._got = self._answer()
            self.channel.basic_get(self.queue, self._message)
            await self._wait(self._got, seconds)

    def delivered(self, tag: int, redelivered: bool, headers: dict[str, str], body: bytes) -> None:
        if tag != self.last + 1:
            self.settled.update(range(self.last + 1, tag))  # pika sent those back: their consumer was being cancelled
        self.last = tag
        self._arrived(Delivery(self.queue, body, (self, tag), redelivered, headers))

    def confirmed(self, tag: int, multiple: bool) -> None:
        """Nothing is published here."""

    def ack(self, tags: Iterable[int]) -> None:
        """One frame for all that leave no gap, one for each of the others."""
        new = self._settle(tags)
        if not new:
            return
        low, number = self.low, self.number
        upto = max((tag for tag in new if tag <= low), default=0)
        frames = [ack_frame(number, tag, False) for tag in new if tag > low]
        if upto:
            frames.append(ack_frame(number, upto, True))
        self.transport.emit(b"".join(frames))
        self._changed()

    def give_back(self, tags: Iterable[int]) -> None:
        new = self._settle(tags)
        if new:
            self.transport.emit(nack_frames(self.number, sorted(new)))
            self._changed()

    def give_back_later(self, tag: int, delay: float) -> None:
        """It stays unsettled here meanwhile: if this process dies, the server has it at once."""
        if self.alive and tag > self.low and tag not in self.settled and tag not in self.held:
            self.held[tag] = asyncio.get_running_loop().call_later(delay, self._overdue, tag)

    def lost(self) -> None:
        for timer in self.held.values():
            timer.cancel()
        self.held.clear()
        self.consumers.clear()
        self._changed()

    def _settle(self, tags: Iterable[int]) -> set[int]:
        """Mark tags as settled. Return the ones that were not settled before."""
        if not self.alive:
            return set()
        low, settled, held = self.low, self.settled, self.held
        new = {tag for tag in tags if tag > low and tag not in settled and tag not in held}
        settled |= new
        while low + 1 in settled:
            low += 1
            settled.remove(low)
        self.low = low
        return new

    def _overdue(self, tag: int) -> None:
        del self.held[tag]
        self.give_back([tag])

    def _message(self, _channel: object, method: object, properties: object, body: bytes) -> None:
        """What the short cut did not take: long messages, and those that were asked for one by one."""
        self.delivered(
            method.delivery_tag,  # type: ignore[attr-defined]
            method.redelivered,  # type: ignore[attr-defined]
            text_of(properties.headers),  # type: ignore[attr-defined]
            body,
        )
        if not hasattr(method, "consumer_tag"):
            self._get_answered()

    def _get_answered(self) -> None:
        if self._got is not None and not self._got.done():
            self._got.set_result(None)

    def _cancelled(self, frame: object) -> None:
        """By the server: the queue was deleted."""
        self.consumers.pop(frame.method.consumer_tag, None)  # type: ignore[attr-defined]
        self._changed()
