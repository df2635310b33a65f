"""Port: the keys of requests that exist once, and what was merged into the runs that hold them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

RECENT_MAX_REQUESTS = 20


@dataclass(frozen=True, slots=True)
class MergedRequest:
    """One request that was merged: when, the id that it asked for, and whose it was; None: it did not say."""

    at: datetime
    correlation_id: str | None
    actor: str | None


@dataclass(slots=True)
class KeyHolder:
    """A run and its key; the newest run of a key holds it. `until`: how long the key outlives the run, None: for ever.
    `recent` are the last requests that were merged into it, the newest last; `merged` counts all of them."""

    key: str
    run: int
    correlation_id: str
    since: datetime
    until: datetime | None
    merged: int = 0
    recent: list[MergedRequest] = field(default_factory=list)
    open: bool = True
    forgotten: bool = False  # its run is not in the store any more

    def add(self, request: MergedRequest) -> None:
        """Merge one more request."""
        self.merged += 1
        self.recent = [*self.recent, request][-RECENT_MAX_REQUESTS:]


class UniqueKeys(Protocol):
    async def key_holder(self, run: int) -> KeyHolder | None:
        """The key of a run whose request exists once, and what was merged into it; None when it has none."""
        ...
