"""Port: dead letters. Messages that could not be handled wait here for an operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from oraculo.core.tenants import tenant_of


@dataclass(slots=True)
class DeadLetter:
    """A message that could not be handled: its bytes, why, and where it came from."""

    queue: str
    reason: str
    detail: str
    body: bytes
    correlation_id: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    id: int = 0
    at: datetime | None = None
    size: int = 0  # bytes of the body, also where it was not read
    erased: bool = False  # body, detail and headers cannot be read any more: the key of its tenant was forgotten

    @property
    def tenant(self) -> str:
        """The tenant that it belongs to: that of its queue."""
        return tenant_of(self.queue)

    def __post_init__(self) -> None:
        self.size = self.size or len(self.body)


class DeadLetters(Protocol):
    """Dead letters are written by `Journal.append`, in the transaction that refuses the message. Where a tenant is
    given, those of others are not there."""

    async def dead_letters(
        self,
        *,
        before: int | None = None,
        limit: int = 50,
        queue: str | None = None,
        reason: str | None = None,
        bodies: bool = True,
        tenant: str | None = None,
    ) -> list[DeadLetter]:
        """List dead letters, newest first; only those numbered below `before`, of one queue or reason, when given.
        Without `bodies` none is read: a list for people shows their size."""
        ...

    async def dead_letter(self, id: int, tenant: str | None = None) -> DeadLetter | None:
        """One dead letter; None when there is none of that number."""
        ...

    async def dead_letter_groups(self, tenant: str | None = None) -> list[tuple[str, str, int]]:
        """Count dead letters by (queue, reason), most first."""
        ...

    async def remove_dead_letters(self, ids: Sequence[int], outcome: str, tenant: str | None = None) -> int:
        """Remove dead letters and count them under the verdict `outcome`; return how many were there."""
        ...
