"""Port: what a store offers beyond `Store` when several processes work on it at once.

Each process is a member with a lease, by the store's clock. Two things are lost from the memory of a member that dies:
what it was about to send, and when it wanted to look again. The store remembers both. For every run that owes something
it keeps the members that may be sending it (`hands`), so that another one can take over what a dead one owed; and every
run has its `wake_at`, so that whoever looks finds those that are overdue (docs/adr/0014).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, cast

from oraculo.ports.store import Store


@dataclass(slots=True)
class Member:
    """A process that works on the store. `epoch` grows with every membership ever: an older one is nobody any more."""

    name: str
    slot: int
    epoch: int
    joined_at: datetime
    lease_until: datetime


@dataclass(slots=True)
class Progress:
    version: int
    closed: bool


class SharedStore(Store, Protocol):
    async def join(self, name: str, lease: timedelta) -> Member:
        """Become a member. Everything that is appended from now on is refused (FencedError) once the lease has run out
        and another member has taken over; then join again."""
        ...

    async def renew(self) -> datetime:
        """The lease begins anew; what time it is. FencedError when it was taken over meanwhile."""
        ...

    async def leave(self) -> None:
        """The lease ends now: others take over at once."""
        ...

    async def members(self) -> list[Member]: ...

    async def rescue(self) -> tuple[list[Member], list[int]]:
        """Take over from every member whose lease has run out: who they were, and the runs that may owe something
        because of them. In one transaction, so that each is taken over by one, and none twice."""
        ...

    async def overdue(self, grace: timedelta, limit: int) -> list[int]:
        """Runs whose `wake_at` is past by more than `grace`, the longest overdue first: nobody seems to look after
        them."""
        ...

    async def owing(self, age: timedelta, limit: int, but: str | None = None) -> list[int]:
        """Runs that owe something for longer than `age` without a break, the longest first; but not those of this type
        that are open."""
        ...

    async def open_runs(self) -> int:
        """How many orchestrations have not ended."""
        ...

    async def progress(self, runs: Sequence[int]) -> dict[int, Progress]: ...

    async def changed(self, patience: float, heard: int | None = None) -> int:
        """Returns when some member has written something since the last call, or after `patience` seconds. Where there
        is more than one who listens, each hands in what it was given last."""
        ...

    async def claim_duty(self, name: str) -> str | None:
        """What the last one noted (nothing yet: ""), when it is the duty of this process from now on; None while
        another one that lives has it."""
        ...

    async def note_duty(self, name: str, note: str) -> None:
        """For whoever has this duty next. FencedError when somebody has it already."""
        ...


def sharing(store: Store) -> SharedStore | None:
    """The store as one that is shared, if it is."""
    return cast("SharedStore", store) if store.shared else None
