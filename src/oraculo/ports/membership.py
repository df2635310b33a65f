"""Port: the processes that work on one store at once, and what each of them may take over from another.

Each process is a member with a lease, by the store's clock. Two things are lost from the memory of a member that dies:
what it was about to send, and when it wanted to look again. The store remembers both. For every run that owes something
it keeps the members that may be sending it, so that another one can take over what a dead one owed; and every run has
its `wake_at`, so that any member finds the runs that are overdue (docs/adr/0014).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol


@dataclass(slots=True)
class Member:
    """A process that works on the store. `epoch` grows with every membership ever: a member with an older one than its
    slot has now was taken over."""

    name: str
    slot: int
    epoch: int
    joined_at: datetime
    lease_until: datetime


@dataclass(slots=True)
class Progress:
    """How far an orchestration is, without its events."""

    version: int
    closed: bool


class MemberLeases(Protocol):
    async def join(self, name: str, lease: timedelta) -> Member:
        """Become a member. Everything that is appended from now on is refused (FencedError) once the lease has run out
        and another member has taken over; then join again."""
        ...

    async def renew(self) -> datetime:
        """Begin the lease anew and return the store's time. FencedError when it was taken over meanwhile."""
        ...

    async def leave(self) -> None:
        """End the lease now: other members take over at once."""
        ...

    async def members(self) -> list[Member]:
        """List all members, by slot; also those whose lease has run out and that were not taken over yet."""
        ...


class Takeover(Protocol):
    async def rescue(self) -> tuple[list[Member], list[int]]:
        """Take over from every member whose lease has run out: return these members, and the runs that may owe
        something because of them. In one transaction, so that each is taken over by one member, and none twice."""
        ...

    async def overdue(self, grace: timedelta, limit: int) -> list[int]:
        """List runs whose `wake_at` is past by more than `grace`, the longest overdue first: the member that should
        have woken them seems to be gone."""
        ...

    async def owing(self, age: timedelta, limit: int, *, unlimited: bool = False) -> list[int]:
        """List runs that owe something for longer than `age` without a break, the longest first; with `unlimited`, open
        runs whose profile has a ceiling are left out."""
        ...


class SharedView(Protocol):
    async def open_runs(self) -> int:
        """Count the orchestrations that have not ended."""
        ...

    async def progress(self, runs: Sequence[int]) -> dict[int, Progress]:
        """Map each run that exists to how far it is."""
        ...

    async def changed(self, patience: float, heard: int | None = None) -> int:
        """Wait until a member has written something since the last call, `patience` seconds at most. Return a number to
        hand in as `heard` at the next call, so that several callers can wait side by side."""
        ...
