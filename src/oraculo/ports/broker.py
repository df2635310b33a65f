"""Port: a transport for messages. At least once, in any order, never trusted with the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol


@dataclass(slots=True)
class Outgoing:
    """`message_id` is the same whenever the same message is sent again."""

    queue: str
    body: bytes
    message_id: str
    headers: dict[str, str] | None = None


@dataclass(slots=True)
class Delivery:
    """One message taken from a queue. It comes again, to somebody, unless it is settled. `tag` is the broker's own."""

    queue: str
    body: bytes
    tag: Any
    redelivered: bool = False
    headers: dict[str, str] = field(default_factory=dict)


class Settle(StrEnum):
    ACK = "ack"  # handled; it may be forgotten
    RETRY = "retry"  # give it to somebody, after `delay`


@dataclass(slots=True)
class Settlement:
    delivery: Delivery
    verdict: Settle = Settle.ACK
    delay: float = 0.0


class Broker(Protocol):
    """All verbs take many. `fetch` pulls, so nobody ever holds more than they asked for."""

    scheme: str
    volatile: bool  # it forgets everything when this process ends

    async def publish(self, messages: Sequence[Outgoing]) -> None:
        """Returns once the broker has confirmed every one; BrokerUnavailableError when it is not known that it has."""
        ...

    async def fetch(self, queue: str, *, limit: int, wait: float) -> list[Delivery]:
        """Between 1 and `limit` messages as soon as there are any; an empty list after `wait` seconds."""
        ...

    async def settle(self, settlements: Sequence[Settlement]) -> None: ...

    async def depth(self, queue: str) -> int | None:
        """Messages waiting; None when the broker cannot say."""
        ...

    async def durability(self) -> str:
        """`power-safe`, `crash-safe` or `best-effort`, read from the server's real settings."""
        ...

    async def close(self) -> None: ...
