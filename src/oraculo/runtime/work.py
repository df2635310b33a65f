"""What is handed to the engine, and what comes back."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum

from oraculo.core.commands import Command
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Verdict
from oraculo.ports.store import DeadLetter, Key


class Fate(StrEnum):
    """What became of one piece of work. The verdicts of the core, and what only the runtime can know."""

    APPLIED = "applied"
    DUPLICATE = "duplicate"
    LATE = "late"
    IDLE = "idle"
    QUARANTINED = "quarantined"
    CONFLICT = "conflict"  # Start: the id is taken by another request
    UNKNOWN = "unknown"  # no such orchestration
    RETRY = "retry"  # nothing was done with it; hand it in again


FATE_OF = {
    Verdict.APPLIED: Fate.APPLIED,
    Verdict.DUPLICATE: Fate.DUPLICATE,
    Verdict.LATE: Fate.LATE,
    Verdict.IDLE: Fate.IDLE,
    Verdict.AMBIGUOUS: Fate.QUARANTINED,
    Verdict.UNKNOWN_TICKET: Fate.QUARANTINED,
    Verdict.WRONG_ATTEMPT: Fate.QUARANTINED,
}


@dataclass(slots=True)
class Outcome:
    fate: Fate
    reason: str = ""
    run: int = 0
    correlation_id: str = ""


class Group:
    """Work handed in together: done when the last piece is durable, or failed as a whole. With `partial`, single pieces
    can come back (Fate.RETRY) while the others are done."""

    __slots__ = ("future", "left", "outcomes", "partial")

    def __init__(self, size: int, future: asyncio.Future[list[Outcome]], partial: bool = False) -> None:
        self.left = size
        self.partial = partial
        self.outcomes: list[Outcome | None] = [None] * size
        self.future = future

    def settle(self, index: int, outcome: Outcome) -> None:
        self.outcomes[index] = outcome
        self.left -= 1
        if not self.left and not self.future.done():
            self.future.set_result(self.outcomes)  # type: ignore[arg-type]

    def fail(self, error: BaseException) -> None:
        if not self.future.done():
            self.future.set_exception(error)


@dataclass(slots=True)
class Work:
    """One command for one orchestration (named by `run` when it is known, else by `correlation_id`), or one message
    that is to be quarantined. `queue` and `body` are where it came from, when it came from a broker."""

    command: Command | None = None
    correlation_id: str = ""
    run: int = 0
    fresh: bool = False  # Start: the id was made here, nobody can have used it
    key: Key | None = None
    dead: DeadLetter | None = None
    queue: str = ""
    broker: str = ""  # which one, where there are several
    worker: str = ""  # who answered, if he said so
    body: bytes = b""
    group: Group | None = None
    index: int = 0

    @property
    def source(self) -> str:
        """What is counted: the queue, and the broker where there are several."""
        return f"{self.queue}@{self.broker}" if self.broker else self.queue

    def settle(self, outcome: Outcome) -> None:
        if self.group is not None:
            self.group.settle(self.index, outcome)

    def fail(self, error: BaseException) -> None:
        if self.group is not None:
            self.group.fail(error)

    def refuse(self, error: BaseException) -> None:
        """This piece alone was not done."""
        if self.group is not None and self.group.partial:
            self.group.settle(self.index, Outcome(Fate.RETRY))
        else:
            self.fail(error)


@dataclass(slots=True)
class Closed:
    """An orchestration that ended in the last commit."""

    state: Orchestration
    result: bytes
