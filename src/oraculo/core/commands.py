"""What can be asked of an orchestration. Imperatives; each becomes at most one step. `actor` is the id of who asks it
(`core.access`), None when that is not known."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from oraculo.core.allocations import Allocation
from oraculo.core.plan import Plan
from oraculo.core.policies import PolicyFinding, PolicyPoint, PolicySource
from oraculo.core.resolution import IdleItems, Resolution
from oraculo.core.reuse import Origin, ReusedResult, ReusedRows
from oraculo.core.vocabulary import Cause, Kind, Status


@dataclass(frozen=True, slots=True)
class Start:
    """Begin. `run` is the orchestration's own number: unique and growing with time."""

    run: int
    correlation_id: str
    plan: Plan
    fingerprint: str = ""  # of the request, to tell a repeated request from another one with the same id
    traceparent: str | None = None  # W3C trace context; kept, never looked at
    actor: str | None = None
    origin: Origin | None = None  # of a retry; one that reuses anything waits for `Reuse` before it begins


@dataclass(slots=True)
class Reuse:
    """Take over what an earlier run had concluded: one chunk of it, in the transaction of Start. `more` follow."""

    from_run: int
    results: list[ReusedResult]
    rows: list[ReusedRows]
    more: bool = False


@dataclass(slots=True)
class ConfirmDispatch:
    """A broker confirmed these (position, attempt) messages."""

    tickets: list[tuple[int, int]]


@dataclass(slots=True)
class RecordResult:
    """A worker answered. What it did not echo is None; the rules find the ticket, or refuse."""

    ok: bool
    dados: bytes  # JSON text
    erros: list[dict[str, object]]
    definitivo: bool = False
    ticket: str | None = None  # ticket_id
    attempt: int | None = None
    kind: Kind | None = None
    name: str | None = None
    digest: int = 0  # of the bytes that arrived and of what they say (core/digests.py)
    traceparent: str | None = None  # of the worker, when it passed one on; not part of the journal
    position: int | None = None  # of the ticket, when it is known already
    actor: str | None = None
    child: Status | None = None  # how a child ended that went through; None: no child did
    work_ms: int | None = None  # how long the worker had it, by its own clock or by its lease; None: that is not known


@dataclass(slots=True)
class ConfirmCancel:
    """These children (position, attempt), which had to end, have ended, or never began."""

    children: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Wake:
    """The time has come for something."""


@dataclass(frozen=True, slots=True)
class Cancel:
    reason: str = ""
    actor: str | None = None
    undo: bool = False


@dataclass(frozen=True, slots=True)
class PauseRun:
    """Send no further order, and let the time of the orchestration stand still."""

    reason: str = ""
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class ResumeRun:
    """Go on after a pause."""

    reason: str = ""
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class Prioritise:
    """Let the tickets of the orchestration count as this urgent from now on: from 1, the least, to 9."""

    priority: int
    reason: str = ""
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class RequeueTicket:
    """Give a ticket that used up `attempt` attempts another one."""

    position: int
    attempt: int
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class WithdrawTicket:
    """Take an attempt back from the worker that has it; the next one goes out after `wait`, None: at once. `by` is the
    ticket for which its place was needed, if it was."""

    position: int
    attempt: int
    cause: Cause
    worker: str = ""
    wait: timedelta | None = None
    actor: str | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class AllocateTicket:
    """Give an attempt to the worker that was chosen for it."""

    position: int
    attempt: int
    allocation: Allocation


@dataclass(frozen=True, slots=True)
class Approve:
    """A human decided on a plan, or on one of its tasks, that waits for it."""

    approved: bool
    by: str = ""  # what the human calls himself
    reason: str = ""
    actor: str | None = None
    task: int | None = None  # the position of the task that waits for it; None: the whole plan does


@dataclass(frozen=True, slots=True)
class Signal:
    """Tell a wait of this name something; it is kept when none waits. The same id again is the same signal."""

    id: str
    name: str
    dados: bytes = b"null"  # JSON text
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class RecordDelivery:
    """How one try at a notice went."""

    notice: int
    attempt: int
    delivered: bool
    final: bool  # do not try again
    detail: str = ""
    retry_after: timedelta | None = None


@dataclass(slots=True)
class Resolve:
    """What the expressions of tasks gave that were asked, and of the output when `output` is given."""

    resolutions: list[Resolution]
    output: Resolution | None = None


@dataclass(slots=True)
class Grow:
    """Some of the items of a map, in their order: one chunk of its rows. `offset` items came before it, `total` there
    are; `template` is the parameters cut at their holes, in the first chunk. `idle` are those that do not start. Or the
    next round of a loop, as the only item behind the rounds before it. Who decides without data has no `rows`."""

    owner: int
    offset: int
    count: int
    total: int
    rows: list[tuple[bytes, ...]]
    template: list[str] | None = None
    idle: list[IdleItems] = field(default_factory=list)


@dataclass(slots=True)
class Judge:
    """What the policies said of these (position, attempt): all are allowed but those with a finding that says
    otherwise."""

    point: PolicyPoint
    tickets: list[tuple[int, int]]
    findings: list[PolicyFinding]
    source: PolicySource


Command = (
    Start
    | Reuse
    | ConfirmDispatch
    | RecordResult
    | ConfirmCancel
    | Wake
    | Cancel
    | PauseRun
    | ResumeRun
    | Prioritise
    | Approve
    | Signal
    | RecordDelivery
    | Resolve
    | RequeueTicket
    | WithdrawTicket
    | AllocateTicket
    | Grow
    | Judge
)
