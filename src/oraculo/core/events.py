"""What became true. Facts in the past tense; the journal is made of them.

The first event of every step holds all that its command held (the *mirror*), so a journal is the log of commands too:
replaying the mirrors through `step` must give the same events again.

    Start           → OrchestrationStarted
    ConfirmDispatch → DispatchConfirmed
    RecordResult    → TicketConcluded · AttemptFailed · TicketFailed · LateAnswerKept
    Wake            → Woken
    Cancel          → CancelRequested
    Approve         → ApprovalGiven · ApprovalRefused
    RecordDelivery  → NoticeDelivered · NoticeFailed · NoticeGivenUp
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from oraculo.core.plan import Plan
from oraculo.core.vocabulary import Cause, Status


@dataclass(slots=True)
class OrchestrationStarted:
    run: int
    correlation_id: str
    plan: Plan
    deadline: datetime
    fingerprint: str
    traceparent: str | None = None


@dataclass(slots=True)
class TicketsDispatched:
    """Released, or due again: their messages are owed to the broker. All have the same attempt number."""

    tickets: list[int]
    attempt: int


@dataclass(slots=True)
class DispatchConfirmed:
    tickets: list[tuple[int, int]]


@dataclass(slots=True)
class TicketConcluded:
    ticket: int
    attempt: int
    dados: bytes
    erros: list[dict[str, object]]
    digest: int


@dataclass(slots=True)
class AttemptFailed:
    """This attempt failed and another one will follow at `retry_at`."""

    ticket: int
    attempt: int
    cause: Cause
    erros: list[dict[str, object]]
    retry_at: datetime
    dados: bytes = b"null"
    digest: int = 0


@dataclass(slots=True)
class TicketFailed:
    """The last attempt failed: `erro` when a worker said so, `timeout` when nobody answered in time."""

    ticket: int
    attempt: int
    status: Status
    erros: list[dict[str, object]]
    dados: bytes = b"null"
    definitivo: bool = False
    digest: int = 0


@dataclass(slots=True)
class LateAnswerKept:
    """It came when its attempt was over. Kept and shown; it changes nothing."""

    ticket: int
    attempt: int
    ok: bool
    dados: bytes
    erros: list[dict[str, object]]
    definitivo: bool
    digest: int


@dataclass(slots=True)
class TicketsClosed:
    """Closed without an answer, all for the same reason: cancelled, or out of time with the orchestration."""

    tickets: list[int]
    status: Status
    reason: str


@dataclass(slots=True)
class FanInClosed:
    gate: int
    passed: bool


@dataclass(slots=True)
class Woken:
    pass


@dataclass(slots=True)
class CancelRequested:
    reason: str


@dataclass(slots=True)
class ApprovalAsked:
    """Nothing is published before a human agrees."""


@dataclass(slots=True)
class ApprovalGiven:
    by: str
    reason: str


@dataclass(slots=True)
class ApprovalRefused:
    by: str
    reason: str


@dataclass(slots=True)
class CompensationStarted:
    """These tickets are to be undone, in this order as far as they depend on each other. Each gets a ticket of its own,
    which stands behind all those of the plan (core/compensation.py)."""

    undone: list[int]
    reason: str


@dataclass(slots=True)
class OrchestrationClosed:
    status: Status


@dataclass(slots=True)
class NoticeSent:
    """A notice is owed to the outside: its first try, or another one."""

    notice: int
    attempt: int


@dataclass(slots=True)
class NoticeDelivered:
    notice: int
    attempt: int
    detail: str


@dataclass(slots=True)
class NoticeFailed:
    notice: int
    attempt: int
    detail: str
    retry_at: datetime
    retry_after: timedelta | None


@dataclass(slots=True)
class NoticeGivenUp:
    notice: int
    attempt: int
    detail: str
    final: bool
    retry_after: timedelta | None


Event = (
    OrchestrationStarted
    | TicketsDispatched
    | DispatchConfirmed
    | TicketConcluded
    | AttemptFailed
    | TicketFailed
    | LateAnswerKept
    | TicketsClosed
    | FanInClosed
    | Woken
    | CancelRequested
    | ApprovalAsked
    | ApprovalGiven
    | ApprovalRefused
    | CompensationStarted
    | OrchestrationClosed
    | NoticeSent
    | NoticeDelivered
    | NoticeFailed
    | NoticeGivenUp
)
