"""What the checks know: what workers really said, and how the records tell each ticket and notice."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from oraculo.core import events as ev
from oraculo.core.vocabulary import Status

NEVER = datetime.max.replace(tzinfo=UTC)  # the deadline of a plan that has none
AFTER_THE_END = (
    ev.LateAnswerKept,
    ev.ConflictingAnswerKept,
    ev.NoticeSent,
    ev.NoticeDelivered,
    ev.NoticeFailed,
    ev.NoticeGivenUp,
    ev.Woken,
    ev.ChildrenCancelled,
)


@dataclass(slots=True)
class Answer:
    """What a worker really said; found again by the digest of its bytes."""

    ticket: str
    attempt: int
    ok: bool
    definitivo: bool
    dados: Any
    echoed: bool = True  # it named its ticket and attempt


class Knowledge(Protocol):
    """What the world knows beside the journal."""

    def answer(self, digest: int) -> Answer | None: ...

    def confirmed(self, message_id: str) -> bool:
        """A broker really confirmed this message."""
        ...

    def honest_timeouts(self) -> bool:
        """True when no worker hangs and nothing is lost: a timeout cannot happen."""
        ...


@dataclass(slots=True)
class Seen:
    """One ticket as the records tell it."""

    phase: str = "waiting"
    attempt: int = 0
    confirmed_at: datetime | None = None
    retry_at: datetime | None = None
    answered: set[int] = field(default_factory=set)
    preempted: int = 0  # how often it made room for a more urgent one
    lapsed: int = 0  # how often it was offered to a worker that did not take it in time
    withdrawn: set[int] = field(default_factory=set)  # attempts that were taken back from their workers
    allocated: tuple[int, str] | None = None  # the attempt and the worker that was chosen last
    said: dict[int, set[int]] = field(default_factory=dict)  # what was said to each attempt, as digests of the content
    conflicts: int = 0
    status: Status = Status.PENDENTE
    dados: bytes = b"null"
    released_at: datetime | None = None  # of its first attempt
    closed_at: datetime | None = None  # on the clock, whether it was paused or not
    taken: bool = False  # a broker confirmed one of its orders
    spare: bool = False  # it was closed because nothing needed it any more

    def used(self, attempt: int) -> int:
        """How many attempts count when this one is made."""
        return attempt - len([one for one in self.withdrawn if one < attempt])


@dataclass(slots=True)
class SeenNotice:
    attempt: int = 0
    phase: str = "quiet"
    retry_at: datetime | None = None
