"""Port: the journal, the only truth. What happened to every orchestration, in the order of commits.

One `append` is one transaction: the events of many steps, what the catalogue shows of them, the messages that were
refused, the idempotency keys that were used and the counters that must add up. There is no outbox table and no timer
table: the journal says what is owed (`owes`) and when to look again (`wake_at`), so a crash finds both again
(docs/adr/0003).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from oraculo.core.events import Event
from oraculo.core.step import Step
from oraculo.ports.dead_letters import DeadLetter
from oraculo.ports.unique_keys import KeyHolder


@dataclass(slots=True)
class Key:
    """An Idempotency-Key that was used for an orchestration."""

    key: str
    fingerprint: str
    run: int


@dataclass(slots=True)
class Batch:
    """The content of one transaction."""

    at: datetime
    steps: list[Step] = field(default_factory=list)
    results: dict[int, bytes] = field(default_factory=dict)  # run → final aggregate
    dead: list[DeadLetter] = field(default_factory=list)
    keys: list[Key] = field(default_factory=list)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)  # (queue, verdict)
    holders: dict[int, KeyHolder] = field(default_factory=dict)  # run → the key by which its request exists once

    def __bool__(self) -> bool:
        return bool(self.steps or self.dead or self.keys or self.counts or self.holders)


@dataclass(slots=True)
class Recorded:
    """One step as the journal has it; `first` is the number of its first event, `text` its stored form."""

    run: int
    first: int
    at: datetime
    events: list[Event]
    position: int = 0
    text: str = field(default="", compare=False)

    @property
    def erased(self) -> bool:
        """True if its events cannot be read any more, because the key of its tenant was forgotten."""
        return not self.events


@dataclass(slots=True)
class LockRequest:
    """The runs, names and keys that some pieces of work are about, to be locked and read before anything is decided."""

    known: dict[int, int] = field(default_factory=dict)  # run → the version that is in memory; 0: none
    names: list[str] = field(default_factory=list)  # correlation ids whose run is not known here
    keys: list[str] = field(default_factory=list)  # idempotency keys that the work uses
    unique: list[str] = field(default_factory=list)  # keys of requests that exist once


@dataclass(slots=True)
class LockedSnapshot:
    """The answer to a `LockRequest`. `news` are the steps beyond the known versions; `gone` the requested runs that are
    not in the store."""

    at: datetime | None = None  # the store's clock, where several processes share it
    runs: dict[str, int] = field(default_factory=dict)  # correlation_id → run
    keys: dict[str, Key] = field(default_factory=dict)
    news: dict[int, list[Recorded]] = field(default_factory=dict)
    gone: list[int] = field(default_factory=list)
    holders: dict[str, KeyHolder] = field(default_factory=dict)  # by the keys of `unique`


@dataclass(slots=True)
class Live:
    """An orchestration that has still to end, to send something or to be woken."""

    run: int
    correlation_id: str
    wake_at: datetime | None
    owes: int
    open: bool


class Journal(Protocol):
    async def begin(self, request: LockRequest) -> LockedSnapshot:
        """Begin a transaction: lock what is requested and read what other processes wrote of it. In a shared store no
        other process writes to it until `append` or `abandon`, so every `begin` that returns needs one of the two."""
        ...

    async def append(self, batch: Batch) -> None:
        """Write and commit the whole batch, or nothing. StoreUnavailableError: it is not known to be durable. Without
        a `begin` before it, a transaction of its own."""
        ...

    async def abandon(self) -> None:
        """End a transaction without writing: what `begin` locked is free again. Never fails."""
        ...

    async def locate(self, correlation_ids: Sequence[str]) -> dict[str, int]:
        """Map each correlation_id that exists to its run."""
        ...

    async def keyed(self, keys: Sequence[str]) -> dict[str, Key]:
        """Map each idempotency key that was used to what it was used for."""
        ...

    async def load(self, runs: Sequence[int]) -> dict[int, list[Recorded]]:
        """Map each run that exists to all its steps, oldest first. Runs that were erased are left out."""
        ...

    async def live(self) -> list[Live]:
        """List the orchestrations that have still something to do, in the order of their runs."""
        ...

    async def last_instant(self) -> datetime | None:
        """The instant of the newest step; the clock never starts before it."""
        ...

    async def events(self, run: int, after: int, limit: int) -> list[Recorded]:
        """The steps of a run that hold events numbered above `after`, oldest first, `limit` at most. ErasedError when
        they cannot be read any more."""
        ...

    async def tail(self, after: int, limit: int, tipo: str | None = None, *, limited: bool = False) -> list[Recorded]:
        """The steps of all runs beyond a position, in commit order and without gaps; with `tipo`, only those of
        orchestrations of that type, with `limited` only those that a ceiling may apply to (see Query). What was erased
        has no events."""
        ...

    async def result(self, run: int) -> bytes | None:
        """The final aggregate of a run; None while it has not ended. ErasedError when it cannot be read any more."""
        ...

    async def prune(self, before: datetime, limit: int, read: int | None = None) -> int:
        """Forget up to `limit` orchestrations that ended before an instant; return how many. With `read`, only those
        that have no step beyond this position."""
        ...
