"""An orchestration as it stands, and `evolve`: how each event changes it.

`evolve` has no rules and never fails; it changes the state in place, and only the parts that the event names, so one
result costs the same at 10 tickets and at 50,000. `fold` rebuilds a state from its journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from heapq import heappop, heappush
from typing import assert_never

from oraculo.core.compensation import extended
from oraculo.core.events import (
    ApprovalAsked,
    ApprovalGiven,
    ApprovalRefused,
    AttemptFailed,
    CancelRequested,
    CompensationStarted,
    DispatchConfirmed,
    Event,
    FanInClosed,
    LateAnswerKept,
    NoticeDelivered,
    NoticeFailed,
    NoticeGivenUp,
    NoticeSent,
    OrchestrationClosed,
    OrchestrationStarted,
    TicketConcluded,
    TicketFailed,
    TicketsClosed,
    TicketsDispatched,
    Woken,
)
from oraculo.core.plan import Plan
from oraculo.core.vocabulary import Cause, Kind, Phase, Status


@dataclass(slots=True)
class Ticket:
    status: Status = Status.PENDENTE
    phase: Phase = Phase.WAITING
    attempt: int = 0
    confirmed: int = 0  # bit n is set when a broker confirmed the message of attempt n
    answered: int = 0  # bit n is set when attempt n was answered
    digest: int = 0  # of the last answer
    dados: bytes = b"null"
    erros: list[dict[str, object]] | None = None
    late: list[LateAnswerKept] | None = None
    reason: str | None = None  # why it was closed without an answer
    causes: list[Cause] | None = None  # why each earlier attempt failed
    dispatched_at: datetime | None = None  # first release
    started_at: datetime | None = None  # the broker confirmed the current attempt
    closed_at: datetime | None = None
    due_at: datetime | None = None  # deadline of the running attempt, or when the next one is due

    @property
    def running(self) -> bool:
        return self.phase is Phase.RUNNING


@dataclass(slots=True)
class GateCount:
    ok: int = 0
    closed: int = 0
    passed: bool | None = None  # None while open


class NoticePhase(StrEnum):
    OWED = "owed"
    BACKOFF = "backoff"
    DELIVERED = "delivered"
    GIVEN_UP = "given_up"


@dataclass(slots=True)
class NoticeState:
    target: str  # "webhook" or "fila"
    phase: NoticePhase = NoticePhase.OWED
    attempt: int = 0
    due_at: datetime | None = None
    detail: str = ""


@dataclass(slots=True)
class Orchestration:
    run: int
    correlation_id: str
    plan: Plan
    deadline: datetime
    fingerprint: str
    started_at: datetime
    tickets: list[Ticket]
    gates: list[GateCount]
    notices: list[NoticeState]
    open: int  # tickets not closed
    version: int = 1  # how many events made it
    status: Status = Status.PENDENTE
    closed_at: datetime | None = None
    cancel_reason: str | None = None
    traceparent: str | None = None  # W3C trace context that it belongs to
    awaits_approval: bool = False
    approved_by: str | None = None  # who agreed, or who refused
    undoes: int = 0  # the position of the first ticket that undoes another; 0: nothing is undone
    undo_reason: str | None = None
    undone: dict[int, int] = field(default_factory=dict)  # position → that of the ticket that undoes it
    owed: set[int] = field(default_factory=set)  # positions whose message no broker has confirmed
    # Two indexes, not facts: a heap of (instant, position or ~notice) that may hold stale entries, and the positions of
    # each destination, made when the first answer without a ticket_id comes.
    timers: list[tuple[datetime, int]] = field(default_factory=list, compare=False)
    by_name: dict[tuple[Kind, str], list[int]] | None = field(default=None, compare=False)

    def due_of(self, timer: int) -> datetime | None:
        return self.tickets[timer].due_at if timer >= 0 else self.notices[~timer].due_at

    def arm(self, timer: int, at: datetime) -> None:
        heappush(self.timers, (at, timer))

    def due(self, now: datetime) -> Iterator[int]:
        """The timers whose time has come, each once; stale ones are dropped on the way."""
        before: tuple[datetime, int] | None = None
        while self.timers and self.timers[0][0] <= now:
            entry = at, timer = heappop(self.timers)
            if entry != before and self.due_of(timer) == at:
                yield timer
            before = entry  # the same timer armed twice for the same instant comes out twice in a row

    def wake_at(self) -> datetime | None:
        """When to send Wake next; None when nothing can become due."""
        timers = self.timers
        while timers and self.due_of(timers[0][1]) != timers[0][0]:
            heappop(timers)
        first = timers[0][0] if timers else None
        if self.closed_at is not None:
            return first
        return self.deadline if first is None or self.deadline < first else first

    def open_named(self, kind: Kind, name: str) -> list[int]:
        return [p for p in self.named(kind, name) if self.tickets[p].phase is not Phase.CLOSED]

    def named(self, kind: Kind, name: str) -> list[int]:
        """Tickets of that destination, without those that undo others. The index is built when first asked for."""
        if self.by_name is None:
            self.by_name = {}
            for position, task in enumerate(self.plan.tasks[: self.asked]):
                self.by_name.setdefault((task.kind, task.name), []).append(position)
        return self.by_name.get((kind, name), [])

    @property
    def asked(self) -> int:
        """How many tickets the plan itself asked for; those behind them undo others."""
        return self.undoes or len(self.tickets)

    @property
    def owes(self) -> int:
        """How many things the world is still owed."""
        return len(self.owed) + sum(1 for notice in self.notices if notice.phase is NoticePhase.OWED)


def begin(event: OrchestrationStarted, at: datetime) -> Orchestration:
    plan = event.plan
    notices = [NoticeState("webhook")] if plan.notify.webhook else []
    if plan.notify.queue:
        notices.append(NoticeState("fila"))
    for notice in notices:
        notice.phase = NoticePhase.BACKOFF  # nothing owed before the end
    return Orchestration(
        run=event.run,
        correlation_id=event.correlation_id,
        plan=plan,
        deadline=event.deadline,
        fingerprint=event.fingerprint,
        started_at=at,
        tickets=[Ticket() for _ in plan.tasks],
        gates=[GateCount() for _ in plan.gates],
        notices=notices,
        open=len(plan.tasks),
        traceparent=event.traceparent,
    )


def _close(state: Orchestration, position: int, status: Status, at: datetime) -> None:
    ticket = state.tickets[position]
    ticket.status = status
    ticket.phase = Phase.CLOSED
    ticket.closed_at = at
    ticket.due_at = None
    state.owed.discard(position)
    state.open -= 1
    if state.status is Status.PENDENTE:
        state.status = Status.EM_EXECUCAO
    ok = status is Status.CONCLUIDA
    for number in state.plan.tasks[position].feeds:
        gate = state.gates[number]
        gate.closed += 1
        if ok:
            gate.ok += 1


def _answered(ticket: Ticket, attempt: int, digest: int) -> None:
    ticket.answered |= 1 << attempt
    ticket.digest = digest


def evolve(state: Orchestration, event: Event, at: datetime) -> None:
    """Make the event true. `at` is the instant of its step."""
    state.version += 1
    match event:
        case TicketConcluded(position, attempt, dados, erros, digest):
            ticket = state.tickets[position]
            ticket.dados, ticket.erros = dados, erros or None
            _answered(ticket, attempt, digest)
            _close(state, position, Status.CONCLUIDA, at)
        case DispatchConfirmed(confirmed):
            for position, attempt in confirmed:
                ticket = state.tickets[position]
                ticket.confirmed |= 1 << attempt
                ticket.status, ticket.phase, ticket.started_at = Status.EM_EXECUCAO, Phase.RUNNING, at
                ticket.due_at = due = at + state.plan.tasks[position].timeout
                state.owed.discard(position)
                state.arm(position, due)
            state.status = Status.EM_EXECUCAO
        case TicketsDispatched(positions, attempt):
            for position in positions:
                ticket = state.tickets[position]
                ticket.phase, ticket.attempt, ticket.status = Phase.OWED, attempt, Status.PENDENTE
                ticket.due_at = ticket.started_at = None
                if ticket.dispatched_at is None:
                    ticket.dispatched_at = at
            state.owed.update(positions)
        case FanInClosed(number, passed):
            state.gates[number].passed = passed
        case AttemptFailed(position, attempt, cause, erros, retry_at, dados, digest):
            ticket = state.tickets[position]
            ticket.status, ticket.phase, ticket.due_at = Status.PENDENTE, Phase.BACKOFF, retry_at
            ticket.erros, ticket.dados = erros, dados
            ticket.causes = [*(ticket.causes or ()), cause]
            if cause is Cause.ERRO:
                _answered(ticket, attempt, digest)
            state.owed.discard(position)
            state.arm(position, retry_at)
        case TicketFailed(position, attempt, status, erros, dados, _definitivo, digest):
            ticket = state.tickets[position]
            ticket.erros, ticket.dados = erros, dados
            if status is Status.ERRO:
                _answered(ticket, attempt, digest)
            _close(state, position, status, at)
        case TicketsClosed(positions, status, reason):
            for position in positions:
                ticket = state.tickets[position]
                ticket.reason = reason
                if status is Status.TIMEOUT:
                    ticket.erros = [{"codigo": "timeout", "mensagem": reason, "definitivo": True}]
                _close(state, position, status, at)
        case OrchestrationClosed(status):
            state.status, state.closed_at = status, at
        case LateAnswerKept(position, attempt, _ok, _dados, _erros, _definitivo, digest):
            ticket = state.tickets[position]
            ticket.late = [*(ticket.late or ()), event]
            _answered(ticket, attempt, ticket.digest or digest)
        case NoticeSent(number, attempt):
            notice = state.notices[number]
            notice.phase, notice.attempt, notice.due_at = NoticePhase.OWED, attempt, None
        case NoticeDelivered(number, _attempt, detail):
            notice = state.notices[number]
            notice.phase, notice.detail = NoticePhase.DELIVERED, detail
        case NoticeFailed(number, _attempt, detail, retry_at, _retry_after):
            notice = state.notices[number]
            notice.phase, notice.detail, notice.due_at = NoticePhase.BACKOFF, detail, retry_at
            state.arm(~number, retry_at)
        case NoticeGivenUp(number, _attempt, detail, _final, _retry_after):
            notice = state.notices[number]
            notice.phase, notice.detail = NoticePhase.GIVEN_UP, detail
        case CancelRequested(reason):
            state.cancel_reason = reason
        case ApprovalAsked():
            state.awaits_approval = True
        case ApprovalGiven(by, _) | ApprovalRefused(by, _):
            state.awaits_approval, state.approved_by = False, by
        case CompensationStarted(undone, reason):
            state.undoes, state.undo_reason = len(state.tickets), reason
            state.undone = {position: number for number, position in enumerate(undone, len(state.tickets))}
            state.plan = extended(state.plan, undone)
            state.tickets += [Ticket() for _ in undone]
            state.gates += [GateCount() for _ in range(len(state.plan.gates) - len(state.gates))]
            state.open += len(undone)
            state.by_name = None
        case Woken() | OrchestrationStarted():
            pass
        case _:
            assert_never(event)


def fold(recorded: Iterable[tuple[datetime, Iterable[Event]]], state: Orchestration | None = None) -> Orchestration:
    """The state that these (instant, events) make, from the start or on top of an earlier state."""
    for at, events in recorded:
        for event in events:
            if state is None:
                if not isinstance(event, OrchestrationStarted):
                    raise ValueError(f"a journal begins with OrchestrationStarted, not with {type(event).__name__}")
                state = begin(event, at)
            else:
                evolve(state, event, at)
    if state is None:
        raise ValueError("an empty journal has no state")
    return state
