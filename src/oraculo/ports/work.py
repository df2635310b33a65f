"""What is handed to an engine, and what comes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from oraculo.core.access import Actor
from oraculo.core.commands import (
    Approve,
    Cancel,
    Command,
    Grow,
    PauseRun,
    Prioritise,
    RecordResult,
    RequeueTicket,
    Resolve,
    ResumeRun,
    Reuse,
    Signal,
    Start,
    WithdrawTicket,
)
from oraculo.core.vocabulary import Verdict
from oraculo.ports.dead_letters import DeadLetter
from oraculo.ports.journal import Key


class Fate(StrEnum):
    """What became of one piece of work: the verdicts of the core, and what only the runtime can know."""

    APPLIED = "applied"
    DUPLICATE = "duplicate"
    MERGED = "merged"  # Start: it is one with an equal request that came before
    LATE = "late"
    CONFLICTING = "conflicting_answer"
    IDLE = "idle"
    QUARANTINED = "quarantined"
    REFUSED = "refused"  # a signal that cannot be used; the reason is its verdict
    CONFLICT = "conflict"  # Start: the id is taken by another request
    UNKNOWN = "unknown"  # no such orchestration
    RETRY = "retry"  # nothing was done with it; hand it in again


FATE_OF = {
    Verdict.APPLIED: Fate.APPLIED,
    Verdict.DUPLICATE: Fate.DUPLICATE,
    Verdict.LATE: Fate.LATE,
    Verdict.CONFLICTING: Fate.CONFLICTING,
    Verdict.IDLE: Fate.IDLE,
    Verdict.AMBIGUOUS: Fate.QUARANTINED,
    Verdict.UNKNOWN_TICKET: Fate.QUARANTINED,
    Verdict.WRONG_ATTEMPT: Fate.QUARANTINED,
    Verdict.TOO_MANY_ANSWERS: Fate.QUARANTINED,
    Verdict.RUN_ENDED: Fate.QUARANTINED,
    Verdict.ALREADY_DECIDED: Fate.QUARANTINED,
    Verdict.UNKNOWN_SIGNAL: Fate.REFUSED,
    Verdict.TOO_MANY_SIGNALS: Fate.REFUSED,
    Verdict.SIGNAL_REUSED: Fate.REFUSED,
}


@dataclass(slots=True)
class Outcome:
    fate: Fate
    reason: str = ""
    run: int = 0
    correlation_id: str = ""


class EngineCommand:
    """The base of commands that an engine gives to itself; the core does not know them."""

    __slots__ = ()


@dataclass(slots=True)
class EvaluatedTasks:
    """What evaluating gave: commands for one orchestration that count in this order, and in one transaction."""

    commands: list[Resolve | Grow]


class WorkGroup(Protocol):
    """The caller that handed in some pieces of work together and waits for their outcomes."""

    partial: bool  # single pieces may come back with Fate.RETRY while the others are done

    def settle(self, index: int, outcome: Outcome) -> None: ...

    def fail(self, error: BaseException) -> None: ...


@dataclass(slots=True)
class Work:
    """One command for one orchestration (named by `run` when it is known, else by `correlation_id`), or one message
    that is to be quarantined. `queue` and `body` are where it came from, when it came from a broker."""

    command: Command | EvaluatedTasks | EngineCommand | None = None
    correlation_id: str = ""
    run: int = 0
    fresh: bool = False  # Start: the id was made here, so no other request can have used it
    key: Key | None = None
    reuse: Sequence[Reuse] = ()  # Start of a retry: what it takes over, in the same transaction
    dead: DeadLetter | None = None
    queue: str = ""
    broker: str = ""  # its name, where there are several
    worker: str = ""  # the name that the worker gave itself in its answer
    served: str = ""  # the queue that it says its order came from
    body: bytes = b""
    fixed: bool = False  # an answer: its ticket or attempt is not in `body`, but comes from a token
    group: WorkGroup | None = None  # None: no caller waits for it
    index: int = 0

    @property
    def source(self) -> str:
        """The label under which it is counted: the queue, and the broker where there are several."""
        return f"{self.queue}@{self.broker}" if self.broker else self.queue

    def settle(self, outcome: Outcome) -> None:
        """Tell the caller that this piece is durable."""
        if self.group is not None:
            self.group.settle(self.index, outcome)

    def fail(self, error: BaseException) -> None:
        """Tell the caller that the whole group failed."""
        if self.group is not None:
            self.group.fail(error)

    def refuse(self, error: BaseException) -> None:
        """Tell the caller that this piece alone was not done."""
        if self.group is not None and self.group.partial:
            self.group.settle(self.index, Outcome(Fate.RETRY))
        else:
            self.fail(error)


def by_actor(work: Work, actor: Actor) -> Work:
    """The same work as this actor's: what it asks for names the actor."""
    command = work.command
    if isinstance(
        command,
        Start
        | RecordResult
        | Cancel
        | PauseRun
        | ResumeRun
        | Prioritise
        | Approve
        | Signal
        | RequeueTicket
        | WithdrawTicket,
    ):
        work.command = replace(command, actor=actor.id)
    return work
