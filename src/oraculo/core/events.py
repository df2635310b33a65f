"""What became true. Facts in the past tense; the journal is made of them.

The first event of every step holds all that its command held (the *mirror*), so a journal is the log of commands too:
replaying the mirrors through `step` must give the same events again.

    Start           → OrchestrationStarted
    Reuse           → ResultsReused
    ConfirmDispatch → DispatchConfirmed
    RecordResult    → TicketConcluded · AttemptFailed · TicketFailed · LateAnswerKept · ConflictingAnswerKept ·
                      ChildEnded · AnswerHeld
    ConfirmCancel   → ChildrenCancelled
    Wake            → Woken
    Cancel          → CancelRequested
    PauseRun        → OrchestrationPaused
    ResumeRun       → OrchestrationResumed
    Prioritise      → PriorityChanged
    RequeueTicket   → TicketRequeued
    WithdrawTicket  → TicketWithdrawn
    AllocateTicket  → TicketAllocated
    Approve         → ApprovalGiven · ApprovalRefused
    Signal          → SignalReceived
    Resolve         → Resolved
    Grow            → PlanGrown · Resolved
    Judge           → PolicyEvaluated
    RecordDelivery  → NoticeDelivered · NoticeFailed · NoticeGivenUp

A mirror of a request names its actor. None: it came from a queue and the sender is unknown, a deadline
did it, or the journal is older than actors are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from oraculo.core.allocations import Allocation
from oraculo.core.plan import Added, Plan
from oraculo.core.policies import PolicyFinding, PolicyPoint, PolicySource
from oraculo.core.reasons import Reason
from oraculo.core.resolution import IdleItems, Resolution
from oraculo.core.reuse import Origin, ReusedResult, ReusedRows
from oraculo.core.vocabulary import Cause, Status
from oraculo.core.waits import WaitEnd


@dataclass(slots=True)
class OrchestrationStarted:
    run: int
    correlation_id: str
    plan: Plan
    deadline: datetime | None
    fingerprint: str
    traceparent: str | None = None
    actor: str | None = None
    origin: Origin | None = None  # of a retry: the run that is tried again


@dataclass(slots=True)
class ResultsReused:
    """What an earlier run had concluded, copied into the journal of its retry: that run may be forgotten. One chunk;
    with `more`, others follow in the same transaction. Each result counts when its task would start."""

    from_run: int
    results: list[ReusedResult]
    rows: list[ReusedRows]
    more: bool = False


@dataclass(slots=True)
class TicketsReused:
    """These would have started now; what an earlier run had concluded takes the place of that."""

    tickets: list[int]


@dataclass(slots=True)
class MapRestored:
    """A map has the items that it had in an earlier run, from position `first` on. Nothing was evaluated."""

    owner: int
    first: int
    total: int


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
    actor: str | None = None
    work_ms: int | None = None  # of what it took, how long it was with a worker


@dataclass(slots=True)
class ChildEnded:
    """A child went through, whole or in part. One that did not is an attempt that failed."""

    ticket: int
    attempt: int
    status: Status
    dados: bytes
    digest: int


@dataclass(slots=True)
class ChildrenCancelled:
    """Children that had to end with what they belong to have ended, or never began."""

    tickets: list[tuple[int, int]]


@dataclass(slots=True)
class AttemptFailed:
    """This attempt failed and another one will follow at `retry_at`. `reason` is given when no worker said why."""

    ticket: int
    attempt: int
    cause: Cause
    erros: list[dict[str, object]]
    retry_at: datetime
    dados: bytes = b"null"
    digest: int = 0
    reason: Reason | None = None
    actor: str | None = None
    work_ms: int | None = None  # of what it took, how long it was with a worker


@dataclass(slots=True)
class TicketFailed:
    """The last attempt failed: `erro` when a worker said so, `timeout` when no answer came in time. `reason` is given
    when no worker said why."""

    ticket: int
    attempt: int
    status: Status
    erros: list[dict[str, object]]
    dados: bytes = b"null"
    definitivo: bool = False
    digest: int = 0
    reason: Reason | None = None
    actor: str | None = None
    work_ms: int | None = None  # of what it took, how long it was with a worker


@dataclass(slots=True)
class TicketRequeued:
    """An operator gave a ticket whose attempts were used up another one; its message is owed to the broker again."""

    ticket: int
    attempt: int
    actor: str | None = None


@dataclass(slots=True)
class TicketWithdrawn:
    """An attempt was taken back from `worker` and used up none; the next one is owed after `wait`, None: at once. `by`
    is the ticket for which its place was needed, if it was."""

    ticket: int
    attempt: int
    cause: Cause
    worker: str = ""
    wait: timedelta | None = None
    actor: str | None = None
    by: str = ""


@dataclass(slots=True)
class TicketAllocated:
    """An attempt was given to a worker that asked, by a choice among those that were there. Replaying a journal asks no
    registry: it is all here."""

    ticket: int
    attempt: int
    allocation: Allocation


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
    actor: str | None = None


@dataclass(slots=True)
class ConflictingAnswerKept:
    """A second answer to an attempt that was answered already, and it says something else. Kept and shown; it changes
    nothing. One of the two is wrong, or forged."""

    ticket: int
    attempt: int
    ok: bool
    dados: bytes
    erros: list[dict[str, object]]
    definitivo: bool
    digest: int
    actor: str | None = None


@dataclass(slots=True)
class TicketsClosed:
    """Closed without an answer, all for the same reason: cancelled, or out of time with the orchestration."""

    tickets: list[int]
    status: Status
    reason: Reason


@dataclass(slots=True)
class FanInClosed:
    gate: int
    passed: bool


@dataclass(slots=True)
class TasksAsked:
    """May start once their expressions are evaluated; `output`: so is the output of the plan, and then it ends."""

    tickets: list[int]
    output: bool = False


@dataclass(slots=True)
class Resolved:
    """What evaluating gave. Replaying a journal evaluates nothing: it is all here."""

    resolutions: list[Resolution]
    output: Resolution | None = None


@dataclass(slots=True)
class PolicyAsked:
    """These (position, attempt) wait for a verdict of the policies: the plan, or tickets that may start otherwise."""

    point: PolicyPoint
    tickets: list[tuple[int, int]]


@dataclass(slots=True)
class PolicyEvaluated:
    """What the policies said. All of `tickets` are allowed but those with a finding that says otherwise. Replaying a
    journal asks no policies: it is all here."""

    point: PolicyPoint
    tickets: list[tuple[int, int]]
    findings: list[PolicyFinding]
    source: PolicySource


@dataclass(slots=True)
class AnswerHeld:
    """A worker answered that it is done; the answer counts when the policies allow it."""

    ticket: int
    attempt: int
    dados: bytes
    erros: list[dict[str, object]]
    digest: int
    actor: str | None = None


@dataclass(slots=True)
class PlanGrown:
    """Items of a map have become tickets, from position `first` on: one chunk of its rows, `offset` of which came
    before. `template` is in the first chunk; `idle` are items that do not start. Or one more round of a loop, which
    starts at `due_at`; None: at once."""

    owner: int
    first: int
    offset: int
    count: int
    total: int
    rows: list[tuple[bytes, ...]]
    template: list[str] | None = None
    idle: list[IdleItems] = field(default_factory=list)
    due_at: datetime | None = None

    @property
    def more(self) -> bool:
        """True when other chunks follow, always in the same transaction."""
        return self.offset + self.count < self.total


@dataclass(slots=True)
class MapEnded:
    """Enough of its items closed, or it is out of time. `reason`: why it failed."""

    ticket: int
    status: Status
    reason: Reason | None = None


@dataclass(slots=True)
class LoopEnded:
    """Its condition is true, no round is left, a round failed, or it is out of time. `reason`: why it failed."""

    ticket: int
    status: Status
    reason: Reason | None = None


@dataclass(slots=True)
class Woken:
    pass


@dataclass(slots=True)
class CancelRequested:
    reason: str
    actor: str | None = None
    undo: bool = False  # what was done is to be undone


@dataclass(slots=True)
class OrchestrationPaused:
    """No order goes out from now on, and deadlines stand still."""

    reason: str
    actor: str | None = None


@dataclass(slots=True)
class OrchestrationResumed:
    """The pause is over: deadlines have moved by it, and what is owed goes out."""

    reason: str
    actor: str | None = None


@dataclass(slots=True)
class PriorityChanged:
    """From now on all tickets count as this urgent, whatever the plan says: from 1, the least, to 9."""

    priority: int
    reason: str
    actor: str | None = None


@dataclass(slots=True)
class ApprovalAsked:
    """Nothing is published before a human agrees."""


@dataclass(slots=True)
class ApprovalGiven:
    by: str
    reason: str
    actor: str | None = None
    task: int | None = None  # the task that waited for it; None: the whole plan did


@dataclass(slots=True)
class ApprovalRefused:
    by: str
    reason: str
    actor: str | None = None
    task: int | None = None


@dataclass(slots=True)
class SignalReceived:
    """`signal` is its id, `taken_by` the position of the wait that takes it; None: it is kept. `content` is a digest of
    name and data."""

    signal: str
    name: str
    dados: bytes
    taken_by: int | None
    content: int
    actor: str | None = None


@dataclass(slots=True)
class WaitStarted:
    """A task waits from now on; `due_at` is when that ends by itself. None: never."""

    ticket: int
    due_at: datetime | None


@dataclass(slots=True)
class WaitEnded:
    """`signal` is the id of the signal that ended it, whose data it takes; `dados` are those of any other end."""

    ticket: int
    how: WaitEnd
    status: Status
    signal: str | None = None
    dados: bytes = b"null"
    reason: Reason | None = None


@dataclass(slots=True)
class CompensationStarted:
    """These tickets are to be undone, in this order as far as they depend on each other. Each gets a ticket of its own,
    which stands behind all those of the plan. `added` is None under rules before 3, which did not record it. `ending`
    is how the run ends when all of it is undone, where that is decided before."""

    undone: list[int]
    reason: str
    added: Added | None = None
    ending: Status | None = None


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
    OrchestrationStarted | ResultsReused | TicketsReused | MapRestored
    | TicketsDispatched | DispatchConfirmed | TicketConcluded | ChildEnded
    | ChildrenCancelled | AttemptFailed | TicketFailed | TicketRequeued | TicketWithdrawn | LateAnswerKept
    | ConflictingAnswerKept | TicketsClosed | FanInClosed | TasksAsked | Resolved | PlanGrown | MapEnded
    | LoopEnded | Woken | CancelRequested | OrchestrationPaused | OrchestrationResumed | PriorityChanged | ApprovalAsked
    | ApprovalGiven | ApprovalRefused | SignalReceived | WaitStarted | WaitEnded | CompensationStarted
    | OrchestrationClosed | NoticeSent | NoticeDelivered | NoticeFailed | NoticeGivenUp
    | PolicyAsked | PolicyEvaluated | AnswerHeld | TicketAllocated
)  # fmt: skip

_CAUSED = (
    OrchestrationStarted | TicketConcluded | AttemptFailed | TicketFailed | TicketRequeued | TicketWithdrawn
    | LateAnswerKept | ConflictingAnswerKept | CancelRequested | OrchestrationPaused | OrchestrationResumed
    | ApprovalGiven | ApprovalRefused | SignalReceived | AnswerHeld | PriorityChanged
)  # fmt: skip


def actor_of(event: Event) -> str | None:
    """Return the actor that caused an event; None when there is none or it is unknown."""
    return event.actor if isinstance(event, _CAUSED) else None
