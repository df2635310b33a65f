"""Port: delivers one notice to the outside world (a webhook)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Notice:
    """One attempt to deliver one document. `webhook_id` is the same for all attempts of the same document.
    `headers` are sent beside those of every webhook."""

    url: str
    webhook_id: str
    body: bytes
    traceparent: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Outcome(StrEnum):
    DELIVERED = "delivered"  # the receiver took it (2xx)
    RETRY = "retry"  # not taken; trying again may help
    REFUSED = "refused"  # not taken, and never will be (410, or an address that is not allowed)


@dataclass(frozen=True, slots=True)
class Receipt:
    """How the attempt went. `detail` is short, safe to show, and holds no secret."""

    outcome: Outcome
    detail: str
    status_code: int | None = None
    retry_after: timedelta | None = None  # the receiver's own wish, when it said one


class Notifier(Protocol):
    async def notify(self, notice: Notice) -> Receipt:
        """Try once. Never raises for anything the network or the receiver does."""
        ...
