"""Port: the execution engine. It makes commands durable, moves orchestrations on, and carries out what they owe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, Self

from oraculo.core.access import Actor
from oraculo.core.state import Orchestration
from oraculo.ports.effects import EffectBacklog
from oraculo.ports.work import Outcome, Work


@dataclass(frozen=True, slots=True)
class Membership:
    """What this process is among those that share a store."""

    name: str
    slot: int
    epoch: int
    rescues: int  # dead processes that this one took over from
    fenced: int  # times that this one was taken for dead itself


@dataclass(frozen=True, slots=True)
class Outage:
    """A service that the engine needs, besides the store and the broker, and cannot reach."""

    service: str
    target: str
    since: datetime


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """A snapshot of an engine: all that operators, pages and metrics may know of it."""

    ready: bool
    open: int  # orchestrations that have not ended
    effects: EffectBacklog
    queues: frozenset[str]  # queues that are published to, now or earlier
    store_failing_since: datetime | None = None
    membership: Membership | None = None  # None: the store is not shared, or was not joined yet
    outage: Outage | None = None


class CommandSink(Protocol):
    """The part of an engine that takes new work."""

    async def submit(self, works: list[Work], *, piecewise: bool = False) -> list[Outcome]:
        """Return once all of it is durable. On StoreUnavailableError or BusyError none of it counts as accepted. With
        `piecewise`, single pieces may come back as Fate.RETRY."""
        ...

    def admit(self, count: int = 1) -> None:
        """Raise BusyError when so many more orchestrations may not be opened now."""
        ...

    def next_run(self) -> int:
        """Return a number that no other orchestration of this store has."""
        ...


class Engine(CommandSink, Protocol):
    def enqueue(self, works: Sequence[Work]) -> None:
        """Queue work that no caller waits for; it is tried again while the store is away."""
        ...

    async def answer(self, works: list[Work]) -> list[Outcome]:
        """Take answers of workers as they came from a broker; durable when it returns, piece by piece."""
        ...

    def only_counts(self, works: Sequence[Work]) -> bool:
        """Return whether these are answers after which nothing follows until others come, as far as is known without
        asking the store."""
        ...

    def has_room(self) -> bool:
        """Return whether one more orchestration may be opened now."""
        ...

    async def cancel(self, correlation_id: str, reason: str = "", *, actor: Actor, undo: bool = False) -> Outcome:
        """Cancel an orchestration; UnknownIdError when there is none of that id."""
        ...

    async def run_of(self, correlation_id: str) -> int | None:
        """Return the number of the orchestration of that id, None when there is none."""
        ...

    async def state_of(self, correlation_id: str) -> Orchestration | None:
        """Return the committed state, also of an orchestration that ended long ago. What a broker has confirmed is
        recorded first, so that the caller sees it. Read it at once: it may be the live object."""
        ...

    async def state(self, run: int) -> Orchestration | None:
        """Return the committed state by number, as far as it is recorded. Read it at once, as above."""
        ...

    async def result(self, run: int) -> bytes | None:
        """Return the final document, None while the orchestration is open."""
        ...

    def still_owed(self, run: int, tickets: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
        """Filter out (position, attempt) pairs that are known to be settled."""
        ...

    async def filter_owed(
        self, run: int, tickets: Sequence[tuple[int, int]], *, running_too: bool
    ) -> Sequence[tuple[int, int]]:
        """Filter out pairs that are settled; the store is asked about a run that is not in memory. With `running_too`
        tickets that are with workers still count."""
        ...

    async def send_again(self, runs: Sequence[int]) -> None:
        """Carry out again what these orchestrations owe by their journals."""
        ...

    async def start(self) -> Self:
        """Recover and run; returns when it takes work."""
        ...

    async def drained(self) -> None:
        """Return when all that was handed in is durable and all that is owed is on its way."""
        ...

    async def stop(self, patience: float | None = None) -> None:
        """Finish what was taken, within `patience` seconds (None: as many as suit the engine), then end. What is left
        is in the journal."""
        ...

    def is_ready(self) -> bool:
        """Return whether it has started and does not stop; `status` says it too, and costs more."""
        ...

    def status(self) -> EngineStatus: ...
