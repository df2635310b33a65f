"""Port: the keys that sign tokens of orders, shared by all processes on a store."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class StoredTokenKey:
    """One key. It signs from `signs_from` on, until a newer one does; its tokens are right until `good_until`."""

    kid: str
    secret: bytes = field(repr=False)
    created_at: datetime
    signs_from: datetime
    good_until: datetime | None = None

    def is_good(self, now: datetime) -> bool:
        """True unless its time is over."""
        return self.good_until is None or now < self.good_until


class TokenKeys(Protocol):
    async def token_keys(self) -> list[StoredTokenKey]:
        """List every key, the one that signs last first."""
        ...

    async def add_first_token_key(self, key: StoredTokenKey) -> None:
        """Store a key unless there is one that has no end: of processes that start at once, one key stays."""
        ...

    async def succeed_token_keys(self, key: StoredTokenKey, old_until: datetime, now: datetime) -> None:
        """Store a key in the place of the others, whose tokens are right until `old_until`, or until the end that they
        had. Those that are over by `now` are forgotten."""
        ...
