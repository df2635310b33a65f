"""Port: a transport for messages. At least once, in any order, never trusted with the truth.

What an adapter promises beyond the verbs: it is made without a running loop and connects by itself, at the first verb
and again whenever it was cut off; no verb waits for ever; a delivery of a connection that is gone is settled by doing
nothing; a `fetch` that is cancelled loses no message. Everything that goes wrong is a BrokerError.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol


@dataclass(slots=True)
class Outgoing:
    """`message_id` is the same whenever the same message is sent again; empty when the sender does not care. Messages
    with the same `key` stay in order where a broker divides its queues; others ignore it."""

    queue: str
    body: bytes
    message_id: str
    headers: dict[str, str] | None = None
    key: str = ""


@dataclass(slots=True)
class Delivery:
    """One message taken from a queue. It comes again, to somebody, unless it is settled. `tag` is the adapter's own;
    `broker` is the name of the broker that it came from, where there is more than one."""

    queue: str
    body: bytes
    tag: Any
    redelivered: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    broker: str = ""


class Settle(StrEnum):
    ACK = "ack"  # handled; it may be forgotten
    RETRY = "retry"  # give it to somebody, after `delay`


@dataclass(slots=True)
class Settlement:
    delivery: Delivery
    verdict: Settle = Settle.ACK
    delay: float = 0.0


@dataclass(slots=True)
class Backlog:
    """Messages that wait in a queue, and for how many seconds the oldest has waited; None: the broker cannot say."""

    waiting: int | None
    oldest_s: float | None = None


@dataclass(slots=True)
class Health:
    """Of the connection: whether it stands, why not, and how often it was made anew."""

    connected: bool
    error: str = ""
    reconnects: int = 0


def forgets(broker: Broker, queue: str) -> bool:
    """Whether it forgets what is in this queue when the process ends; of several brokers, not all may."""
    told = getattr(broker, "forgets", None)
    return bool(broker.volatile if told is None else told(queue))


def expect(broker: Broker, queue: str) -> None:
    """Answers to what is published will come to this queue: a broker that drops what has no queue makes it before it
    publishes anything, as far as it can. To be said before the first publish."""
    told = getattr(broker, "expect", None)
    if told is not None:
        told(queue)


class Broker(Protocol):
    """All verbs take many. `fetch` pulls, so nobody ever holds more than they asked for."""

    scheme: str
    volatile: bool  # it forgets everything when this process ends

    async def publish(self, messages: Sequence[Outgoing]) -> None:
        """Returns once the broker has confirmed every one; BrokerUnavailableError, within seconds, when it is not known
        that it has. The error names those that were not confirmed, and those that the broker will never take."""
        ...

    async def fetch(self, queue: str, *, limit: int, wait: float) -> list[Delivery]:
        """Between 1 and `limit` messages as soon as there are any; an empty list after `wait` seconds."""
        ...

    async def settle(self, settlements: Sequence[Settlement]) -> None: ...

    async def backlog(self, queue: str) -> Backlog:
        """Of a queue that may not exist: then nothing waits there, and it is not made."""
        ...

    async def durability(self) -> str:
        """`power-safe`, `crash-safe` or `best-effort`, read from the server's real settings."""
        ...

    def health(self) -> Health: ...

    async def reset(self) -> None:
        """Drop the connection with all its consumers and make it anew: somebody noticed that it is silent."""
        ...

    async def close(self) -> None: ...
