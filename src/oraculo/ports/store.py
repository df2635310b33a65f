"""Port: the only truth. Journal, catalogue, results, dead letters, task types and idempotency keys in one database.

One `append` is one transaction: the events of many steps, what the catalogue shows of them, the answers that were
refused, the keys that were used and the counters that must add up. There is no outbox table and no timer table: the
journal says what is owed (`owes`) and when to look again (`wake_at`), so a crash finds both again (docs/adr/0003).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from oraculo.core.events import Event
from oraculo.core.step import Step
from oraculo.core.vocabulary import Status


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


@dataclass(slots=True)
class SystemEvent:
    """Something that happened to the system itself: publishing switched to another broker, dead letters discarded."""

    kind: str
    at: datetime
    body: dict[str, Any]
    id: int = 0


@dataclass(slots=True)
class Key:
    """An Idempotency-Key that was used for an orchestration."""

    key: str
    fingerprint: str
    run: int


@dataclass(slots=True)
class Batch:
    """What one transaction writes."""

    at: datetime
    steps: list[Step] = field(default_factory=list)
    results: dict[int, bytes] = field(default_factory=dict)  # run → final aggregate
    dead: list[DeadLetter] = field(default_factory=list)
    keys: list[Key] = field(default_factory=list)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)  # (queue, verdict)

    def __bool__(self) -> bool:
        return bool(self.steps or self.dead or self.keys or self.counts)


@dataclass(slots=True)
class Recorded:
    """One step as the journal has it; `first` is the number of its first event, `text` what is written there."""

    run: int
    first: int
    at: datetime
    events: list[Event]
    position: int = 0
    text: str = field(default="", compare=False)


@dataclass(slots=True)
class Asked:
    """What some pieces of work need to know before anything can be decided."""

    known: dict[int, int] = field(default_factory=dict)  # run → the version that is in memory; 0: none
    names: list[str] = field(default_factory=list)  # correlation ids whose run is not known here
    keys: list[str] = field(default_factory=list)  # idempotency keys that somebody uses


@dataclass(slots=True)
class Found:
    """The answers. `news` are the steps beyond the known versions; `gone` the runs that are not in the store at all."""

    at: datetime | None = None  # the store's own clock, where several processes share it
    runs: dict[str, int] = field(default_factory=dict)  # correlation_id → run
    keys: dict[str, Key] = field(default_factory=dict)
    news: dict[int, list[Recorded]] = field(default_factory=dict)
    gone: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Live:
    """An orchestration that is not finished with the world."""

    run: int
    correlation_id: str
    wake_at: datetime | None
    owes: int
    open: bool


@dataclass(slots=True)
class Summary:
    run: int
    correlation_id: str
    status: Status
    tipo: str | None
    created_at: datetime
    closed_at: datetime | None
    total: int
    open: int
    failed: int
    fingerprint: str
    version: int
    deadline: datetime | None = None  # None: written before it was kept


@dataclass(slots=True)
class Bucket:
    """How many orchestrations that began in one slice of time have this status now."""

    at: datetime  # where the slice begins
    status: Status
    count: int


@dataclass(slots=True)
class FailingQueue:
    """A queue whose tickets failed or timed out, in orchestrations that have ended."""

    destino: str
    tickets: int
    runs: int


@dataclass(slots=True)
class Lag:
    """How far a cursor is behind the end of the journal."""

    steps: int = 0
    since: datetime | None = None  # when the first of them was recorded


@dataclass(slots=True)
class Query:
    status: Sequence[Status] = ()
    destino: str | None = None  # queue
    tipo: str | None = None
    since: datetime | None = None
    until: datetime | None = None  # began before
    text: str | None = None  # the beginning of a correlation_id
    before_run: int | None = None  # cursor
    after_run: int | None = None  # only newer ones
    limit: int = 50


class Store(Protocol):
    shared: bool  # several processes may work on it at once; then it is a SharedStore (ports/sharing.py)

    async def begin(self, asked: Asked) -> Found:
        """The first half of a transaction: what others wrote of the runs, names and keys that are asked for. In a
        shared store they are ours alone from now on, until `append` or `abandon`; so one who begins must end."""
        ...

    async def append(self, batch: Batch) -> None:
        """The second half: all of it or nothing. StoreUnavailableError when it is not known to be durable. Without a
        `begin` before it, a transaction of its own."""
        ...

    async def abandon(self) -> None:
        """Nothing is to be written: whatever `begin` took is free again. Never fails."""
        ...

    async def locate(self, correlation_ids: Sequence[str]) -> dict[str, int]:
        """correlation_id → run, for those that exist."""
        ...

    async def keyed(self, keys: Sequence[str]) -> dict[str, Key]:
        """Idempotency keys that were used, and what for."""
        ...

    async def load(self, runs: Sequence[int]) -> dict[int, list[Recorded]]: ...

    async def live(self) -> list[Live]: ...

    async def last_instant(self) -> datetime | None:
        """The instant of the newest record; the clock never starts before it."""
        ...

    async def summary(self, correlation_id: str) -> Summary | None: ...

    async def find(self, query: Query) -> list[Summary]: ...

    async def count(self, query: Query) -> int:
        """How many `find` would give, counted up to `query.limit` and no further."""
        ...

    async def activity(self, since: datetime, step: timedelta) -> list[Bucket]:
        """Orchestrations that began since, in slices of `step` that begin at whole multiples of it; oldest first."""
        ...

    async def failures(self, since: datetime) -> list[FailingQueue]:
        """Of orchestrations that began since and have ended: tickets that failed, by queue, most first."""
        ...

    async def nearest_deadlines(self, limit: int) -> list[Summary]:
        """Orchestrations that have not ended, the one with the least time left first."""
        ...

    async def events(self, run: int, after: int, limit: int) -> list[Recorded]:
        """Steps that hold events numbered above `after`, oldest first."""
        ...

    async def tail(self, after: int, limit: int, tipo: str | None = None) -> list[Recorded]:
        """The whole journal in commit order, from a position on, without gaps; or only of orchestrations of a type."""
        ...

    async def result(self, run: int) -> bytes | None: ...

    async def count_by_status(self) -> dict[str, int]: ...

    async def counts(self) -> dict[tuple[str, str], int]:
        """(queue, verdict) → how many messages, since the database exists."""
        ...

    async def dead_letters(
        self, *, before: int | None = None, limit: int = 50, queue: str | None = None, reason: str | None = None
    ) -> list[DeadLetter]: ...

    async def dead_letter(self, id: int) -> DeadLetter | None: ...

    async def dead_letter_groups(self) -> list[tuple[str, str, int]]:
        """(queue, reason, how many)."""
        ...

    async def remove_dead_letters(self, ids: Sequence[int], outcome: str) -> int: ...

    async def record_system_event(self, event: SystemEvent) -> None: ...

    async def system_events(self, limit: int = 50, kind: str | None = None) -> list[SystemEvent]:
        """Newest first; of one kind when that is given."""
        ...

    async def later_system_events(self, after: int, limit: int) -> list[SystemEvent]:
        """Oldest first, those numbered above `after`, without gaps."""
        ...

    async def cursors(self) -> dict[str, int]:
        """How far each projection has read: its name → the last position."""
        ...

    async def claim_cursor(self, name: str) -> int | None:
        """Where it is (0: nothing read yet), when it is this process that moves it from now on; None while another one
        that lives does."""
        ...

    async def move_cursor(self, name: str, to: int) -> None:
        """Never back. FencedError when another process has claimed it meanwhile."""
        ...

    async def lag(self, after: int) -> Lag:
        """What the journal holds beyond this position."""
        ...

    async def queues(self) -> list[str]:
        """Every queue that an orchestration in the store ever used."""
        ...

    async def put_task_type(self, tipo: str, body: bytes, at: datetime) -> None: ...

    async def task_types(self) -> dict[str, bytes]: ...

    async def remove_task_type(self, tipo: str) -> bool: ...

    async def prune(self, before: datetime, limit: int, read: int | None = None) -> int:
        """Forget up to `limit` orchestrations that ended before; how many were forgotten. With `read`, only those that
        have no step beyond this position."""
        ...

    async def durability(self) -> str: ...

    async def close(self) -> None: ...
