"""Publishing, and what becomes of messages that are too large or have no queue.

Every message is persistent and mandatory: one whose queue does not exist comes back before it is confirmed. The queue
of an order is not made here, because a worker that declares it differently (pika's default is not durable) could then
never start: the order waits until its worker has made it, however long that takes, and is in the journal meanwhile.
With `declare_after` it is made after so many seconds; queues of other messages are made after a few seconds in any
case. Until then the report names the messages as having no queue, and all others go through. Queues that answers are
expected in exist before the first message goes: a worker that answers at once may not declare them, and the server
drops what has no queue.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from oraculo.adapters.brokers.rabbitmq.confirm_channel import Batch, ConfirmChannel, key_of
from oraculo.adapters.brokers.rabbitmq.connection import Connection
from oraculo.adapters.brokers.rabbitmq.queues import PRECONDITION_FAILED, Queues
from oraculo.adapters.brokers.rabbitmq.transport import AMQPError, AmqpTransport
from oraculo.errors import BrokerUnavailableError
from oraculo.ports.broker import ALL_CONFIRMED, Outgoing, PublishReport, Refusal
from oraculo.wire import names

MADE_AT_ONCE = (names.RESULTS, names.REQUESTS)
RESERVED_PREFIX = "amq."
DECLARE_AFTER_S = 5.0  # for what is no order
LOOK_SHARE, LOOK_MAX_S = 0.1, 2.0  # of the time that a queue is missing, between two looks for it


@dataclass(slots=True)
class Outcome:
    """What became of the messages of one publish that were not confirmed, as far as it is known yet."""

    unconfirmed: list[Outgoing] = field(default_factory=list)
    no_queue: list[Outgoing] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    no_room: list[Outgoing] = field(default_factory=list)
    reasons: dict[str, None] = field(default_factory=dict)

    def not_confirmed(self, messages: Sequence[Outgoing], reason: str) -> None:
        if messages:
            self.unconfirmed += messages
            self.reasons[reason] = None

    def refuse(self, messages: Iterable[Outgoing], reason: str) -> None:
        self.refused += [Refusal(message, reason) for message in messages]

    def report(self) -> PublishReport:
        for refusal in self.refused:
            self.reasons[f"{refusal.message.queue}: refused, {refusal.reason}"] = None
        if not self.reasons:
            return ALL_CONFIRMED
        return PublishReport(
            self.unconfirmed, self.no_queue, self.refused, "; ".join(list(self.reasons)[:5]), self.no_room
        )


class Publisher:
    """Publishes over one connection; `queues` looks for missing queues over the other."""

    def __init__(self, connection: Connection, queues: Queues) -> None:
        self.expected: list[str] = []  # queues that answers come to
        self._connection = connection
        self._queues = queues
        self._own_queues = Queues(connection)  # over the connection that publishes: the other one need not work
        self._timeout_s = connection.options.confirm_timeout
        self._declare_after = connection.options.declare_after
        self._missing: dict[str, float] = {}  # since when
        self._looked: dict[str, float] = {}  # when a missing queue was looked for last
        self._largest: int | None = None  # bytes that the server takes; learnt when it refuses more
        self._channel: ConfirmChannel | None = None
        self._opening = asyncio.Lock()

    async def publish(self, messages: Sequence[Outgoing]) -> PublishReport:
        until = asyncio.get_running_loop().time() + self._timeout_s
        outcome = Outcome()
        left: Sequence[Outgoing] = messages
        while left:
            left = self._without_oversized(left, outcome)
            if self._missing:
                left = await self._with_queue(left, outcome)
            if left:
                left = await self._send(left, until, outcome)
        return outcome.report()

    async def _send(self, messages: Sequence[Outgoing], until: float, outcome: Outcome) -> list[Outgoing]:
        """Send once; return the messages that are worth another try at once."""
        try:
            if asyncio.get_running_loop().time() >= until:
                raise BrokerUnavailableError(f"RabbitMQ did not confirm within {self._timeout_s:g} s")
            channel = await self._open(until)
            if channel.transport.blocked:
                raise BrokerUnavailableError(f"RabbitMQ takes no messages now: {channel.transport.blocked}")
            heard = channel.transport.bytes_received
            batch = channel.send(messages, outcome.refused)
        except BrokerUnavailableError as error:
            outcome.not_confirmed(messages, str(error))
            return []
        again: list[Outgoing] = []
        try:
            async with asyncio.timeout_at(until):
                await batch.done
        except TimeoutError:
            outcome.not_confirmed(batch.pending, self._timeout_reason(channel.transport, heard))
        except BrokerUnavailableError as error:
            again = self._after_close(channel, batch, str(error), outcome)
        if batch.nacked:
            outcome.no_room += batch.nacked
            outcome.reasons["RabbitMQ did not store a message (basic.nack)"] = None
        if batch.returned:
            returned = [message for message in batch.messages if key_of(message) in batch.returned]
            pending = set(map(id, batch.pending)) if batch.low < batch.last else ()
            again += await self._without_queue([m for m in returned if id(m) not in pending], outcome)
        return again

    async def _open(self, until: float) -> ConfirmChannel:
        channel = self._channel
        if channel is not None and channel.alive:
            return channel
        async with self._opening:
            channel = self._channel
            if channel is not None and channel.alive:
                return channel
            left = until - asyncio.get_running_loop().time()
            transport = await self._connection.transport(left)
            channel = ConfirmChannel(transport)
            await channel.open(max(0.1, until - asyncio.get_running_loop().time()))
            await self._own_queues.prepare(self.expected, (until - asyncio.get_running_loop().time()) / 2)
            self._channel = channel
            return channel

    def _timeout_reason(self, transport: AmqpTransport, heard: int) -> str:
        """Say why nothing was confirmed. A connection on which the server said nothing at all meanwhile is dropped."""
        if transport.blocked:
            return f"RabbitMQ takes no messages now: {transport.blocked}"
        if transport.bytes_received == heard:
            transport.drop(AMQPError(f"no confirmation within {self._timeout_s:g} s"))
        return f"RabbitMQ did not confirm within {self._timeout_s:g} s"

    # -- messages that are too large ---------------------------------------------------------------------------------

    def _without_oversized(self, messages: Sequence[Outgoing], outcome: Outcome) -> Sequence[Outgoing]:
        """Refuse the messages that are larger than the server has said it takes."""
        largest = self._largest
        if largest is None or all(len(message.body) <= largest for message in messages):
            return messages
        reason = f"the server takes at most {largest} bytes"
        outcome.refuse((message for message in messages if len(message.body) > largest), reason)
        return [message for message in messages if len(message.body) <= largest]

    def _after_close(self, channel: ConfirmChannel, batch: Batch, reason: str, outcome: Outcome) -> list[Outgoing]:
        """The server closes the channel on a message that is too large, and says what it allows: the others go again,
        on another channel."""
        limit = re.search(r"message size \d+ is larger than configured max size (\d+)", reason)
        if channel.gone.code != PRECONDITION_FAILED or limit is None:
            outcome.not_confirmed(batch.pending, reason)
            return []
        self._largest = int(limit[1])
        return batch.pending

    # -- queues that do not exist ------------------------------------------------------------------------------------

    async def _with_queue(self, messages: Sequence[Outgoing], outcome: Outcome) -> Sequence[Outgoing]:
        """Leave out the messages whose queue was missing the last time and still is."""
        absent = set()
        for queue in {message.queue for message in messages} & self._missing.keys():
            theirs = [message for message in messages if message.queue == queue]
            reason = await self._why_missing(queue, all(message.awaits_reader for message in theirs))
            if not reason:
                self._missing.pop(queue, None)
                self._looked.pop(queue, None)
                continue
            absent.add(queue)
            if queue.startswith(RESERVED_PREFIX):
                outcome.refuse(theirs, "only the server makes queues of that name")
            elif reason == _missing_text(queue):
                outcome.no_queue += theirs
                outcome.reasons[reason] = None
            else:
                outcome.not_confirmed(theirs, reason)
        return [message for message in messages if message.queue not in absent] if absent else messages

    async def _without_queue(self, messages: list[Outgoing], outcome: Outcome) -> list[Outgoing]:
        """Take note of messages that the server returned; return those whose queue exists by now."""
        now = asyncio.get_running_loop().time()
        for message in messages:
            self._missing.setdefault(message.queue, now)
        return list(await self._with_queue(messages, outcome))

    async def _why_missing(self, queue: str, awaits_reader: bool) -> str:
        """Say why a queue cannot be sent to; empty when it exists, perhaps because it was made now."""
        now = asyncio.get_running_loop().time()
        missing_s = now - self._missing[queue]
        due = missing_s >= self._patience(queue, awaits_reader)
        if not due and now - self._looked.get(queue, -math.inf) < min(LOOK_MAX_S, LOOK_SHARE * missing_s):
            return _missing_text(queue)
        self._looked[queue] = now
        try:
            if due:
                await self._queues.ensure(queue)
            elif await self._queues.waiting(queue) is None:
                return _missing_text(queue)
        except BrokerUnavailableError as error:
            return f"{_missing_text(queue)}, and: {error}"
        return ""

    def _patience(self, queue: str, awaits_reader: bool) -> float:
        """Seconds that a queue may be missing before it is made here."""
        if queue.startswith(RESERVED_PREFIX):
            return math.inf
        if queue.endswith(names.DLQ) or queue in MADE_AT_ONCE:
            return 0.0
        if self._declare_after is not None:
            return self._declare_after
        return math.inf if awaits_reader else DECLARE_AFTER_S


def _missing_text(queue: str) -> str:
    return f"queue {queue} does not exist yet"
