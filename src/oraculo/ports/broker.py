"""Port: a transport for messages. At least once, in any order, never trusted with the truth.

What an adapter promises beyond the verbs: it is made without a running loop and connects by itself, at the first verb
and again whenever it was cut off; no verb waits for ever; a delivery of a connection that is gone is settled by doing
nothing; a `fetch` that is cancelled loses no message. What goes wrong with a message is told in a PublishReport;
everything else that goes wrong is a BrokerError.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from oraculo.errors import BrokerUnavailableError


@dataclass(slots=True)
class Outgoing:
    """`message_id` is the same whenever the same message is sent again; empty when the sender does not care. Messages
    with the same `key` stay in order where a broker divides its queues; others ignore it. The queue of one that
    `awaits_reader` is for its reader to make, where it matters who makes it; until then it has no queue."""

    queue: str
    body: bytes
    message_id: str
    headers: dict[str, str] | None = None
    key: str = ""
    awaits_reader: bool = False


@dataclass(slots=True)
class Delivery:
    """One message taken from a queue. It is delivered again unless it is settled. `tag` is the adapter's own;
    `broker` is the name of the broker that it came from, where there is more than one. Its headers are read only."""

    queue: str
    body: bytes
    tag: Any
    redelivered: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    broker: str = ""


class Settle(StrEnum):
    ACK = "ack"  # handled; it may be forgotten
    RETRY = "retry"  # deliver it again, after `delay` seconds


@dataclass(slots=True)
class Settlement:
    delivery: Delivery
    verdict: Settle = Settle.ACK
    delay: float = 0.0


@dataclass(slots=True)
class Backlog:
    """The number of messages in a queue, the age of the oldest in seconds, and how many consume it; None: the broker
    cannot say."""

    waiting: int | None
    oldest_s: float | None = None
    consumers: int | None = None


@dataclass(slots=True)
class Health:
    """The state of the connection: whether it stands, why not, and how often it was made again."""

    connected: bool
    error: str = ""
    reconnects: int = 0


@dataclass(frozen=True, slots=True)
class Refusal:
    """A message that the broker will never take (too large, a name that it does not allow), and why."""

    message: Outgoing
    reason: str


@dataclass(frozen=True, slots=True)
class PublishReport:
    """The outcome of one publish. Every message that is not named here is confirmed.

    `unconfirmed` messages may or may not have arrived: the broker is away, or did not answer in time. `no_queue`
    messages did not arrive because their queue does not exist yet, `no_room` messages because their queue is full now;
    the broker works, and other messages need not wait for them. All are to be published again with the same message_id.
    `reason` says why, for logs.
    """

    unconfirmed: Sequence[Outgoing] = ()
    no_queue: Sequence[Outgoing] = ()
    refused: Sequence[Refusal] = ()
    reason: str = ""
    no_room: Sequence[Outgoing] = ()

    @property
    def complete(self) -> bool:
        """True if every message is confirmed."""
        return not (self.unconfirmed or self.no_queue or self.refused or self.no_room)

    def confirmed(self, messages: Sequence[Outgoing]) -> Sequence[Outgoing]:
        """Return the published messages that the broker has confirmed."""
        if self.complete:
            return messages
        others = {id(message) for message in (*self.unconfirmed, *self.no_queue, *self.no_room)}
        others.update(id(refusal.message) for refusal in self.refused)
        return [message for message in messages if id(message) not in others]

    def raise_unless_complete(self) -> None:
        """Raise BrokerUnavailableError if any message is not confirmed."""
        if not self.complete:
            raise BrokerUnavailableError(self.reason or "the broker did not confirm every message")


ALL_CONFIRMED = PublishReport()


@dataclass(frozen=True, slots=True)
class BrokerTraits:
    """What is true of every broker of a kind.

    `volatile`: it lives in this process and forgets everything when the process ends. `partitioned`: a queue is divided
    among its readers, so that a message may be for a reader that is not reading now.
    """

    volatile: bool = False
    partitioned: bool = False


class Broker(Protocol):
    """The verbs that every adapter has; it derives from this class. All verbs take many messages; `fetch` pulls, so
    that no caller holds more than it asked for."""

    scheme: str
    traits: BrokerTraits

    def expect(self, queue: str) -> None:
        """Announce that answers to what is published will come to this queue. Called before the first publish. A broker
        that drops messages without a queue makes this one before it publishes anything, as far as it can."""
        return

    def forgets(self, queue: str) -> bool:
        """True if the messages of this queue are gone when the process ends."""
        return self.traits.volatile

    async def publish(self, messages: Sequence[Outgoing]) -> PublishReport:
        """Publish, and return within seconds what became of each message. Never raises BrokerError: when the broker is
        away, the report names every message as unconfirmed."""
        ...

    async def fetch(self, queue: str, *, limit: int, wait: float) -> list[Delivery]:
        """Between 1 and `limit` messages as soon as there are any; an empty list after `wait` seconds."""
        ...

    async def settle(self, settlements: Sequence[Settlement]) -> None:
        """Acknowledge deliveries, or give them back. One of a connection that is gone is skipped."""
        ...

    async def backlog(self, queue: str) -> Backlog:
        """Measure a queue. One that does not exist has nothing waiting, and is not made."""
        ...

    async def durability(self) -> str:
        """`power-safe`, `crash-safe` or `best-effort`, read from the server's real settings."""
        ...

    def health(self) -> Health:
        """The state of the connection now; asks the server nothing."""
        ...

    async def reset(self) -> None:
        """Drop the connection with all its consumers and connect again: it was found to be silent."""
        ...

    async def close(self) -> None:
        """Give back what was taken and not settled, and disconnect."""
        ...


async def publish_confirmed(broker: Broker, messages: Sequence[Outgoing]) -> None:
    """Publish; BrokerUnavailableError unless every message is confirmed."""
    (await broker.publish(messages)).raise_unless_complete()
