"""An orchestration as it stands, and `evolve`: how each event changes it.

`evolve` has no rules and never fails; it changes the state in place, and only the parts that the event names, so one
result costs the same at 10 tickets and at 50,000. `fold` rebuilds a state from its journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import heappop, heappush
from typing import assert_never

from oraculo.core import allocating, blocks, pausing, policing, restoring, undoing, waits, withdrawing
from oraculo.core import events as ev
from oraculo.core.blocks import Blocks
from oraculo.core.fan_in import GateCount
from oraculo.core.notice_state import NoticePhase, NoticeState, quiet_notices
from oraculo.core.pausing import PauseState
from oraculo.core.plan import Plan
from oraculo.core.reasons import Reason, expression_fault
from oraculo.core.requeue import reopen
from oraculo.core.resolution import Outcome
from oraculo.core.reuse import Origin, Reusable
from oraculo.core.ticket_state import Ticket
from oraculo.core.undoing import Window, nothing_undone
from oraculo.core.vocabulary import Cause, Kind, Phase, Status
from oraculo.core.waits import SignalState


@dataclass(slots=True)
class Orchestration:
    run: int
    correlation_id: str
    plan: Plan
    deadline: datetime | None  # None: it may take as long as it takes
    fingerprint: str
    started_at: datetime
    tickets: list[Ticket]
    gates: list[GateCount]
    notices: tuple[NoticeState, ...]
    open: int  # tickets not closed
    version: int = 1  # how many events made it
    status: Status = Status.PENDENTE
    closed_at: datetime | None = None
    cancel_reason: str | None = None
    traceparent: str | None = None  # W3C trace context that it belongs to
    actor: str | None = None  # who asked for it, when that is known
    origin: Origin | None = None  # the run that it is a retry of
    reuse: Reusable | None = None  # what it may take over from there and has not taken yet
    awaits_approval: bool = False
    approved_by: str | None = None  # who agreed, or who refused
    undoes: int = 0  # the position of the first ticket that undoes another; 0: nothing is undone
    undo_reason: str | None = None
    undone: Mapping[int, int] = field(default_factory=nothing_undone)  # position → that of the ticket that undoes it
    undoing: Sequence[int] = ()  # what each ticket from `undoes` on undoes, with an `ending`
    windows: Sequence[Window] = ()  # of undoing items of maps
    ending: Status | None = None  # how it ends when all is undone, where that is decided before
    asks: dict[int, None] = field(default_factory=dict)  # positions whose expressions are not evaluated yet
    asks_output: bool = False
    resolved: dict[int, bytes] = field(default_factory=dict)  # position → its parameters, where they had expressions
    output: bytes = b"null"
    output_resolved: bool = False
    output_fault: Reason | None = None
    policy: policing.PolicyState | None = None  # what policies were asked; None before they are
    blocks: Blocks | None = None  # the items of its maps and the rounds of its loops; None before there are any
    owed: set[int] = field(default_factory=set)  # positions whose message no broker has confirmed
    to_end: dict[int, int] = field(default_factory=dict)  # children that have to end: position → attempt
    held: dict[str, dict[int, None]] = field(default_factory=dict)  # what is waited for → positions, longest first
    signals: dict[str, SignalState] = field(default_factory=dict)  # all that were received, by their ids
    kept: dict[str, None] = field(default_factory=dict)  # ids of those that no wait has taken, in their order
    paused: PauseState | None = None
    pauses: int = 0  # how many there were
    priority: int | None = None  # that an operator gave all of its tickets
    data_bytes: int = 0  # about how much data it holds: what tickets gave, and rows of maps
    # Two indexes, not facts: a heap of (instant, position or ~notice) that may hold stale entries, and the positions of
    # each destination, made when the first answer without a ticket_id comes.
    timers: list[tuple[datetime, int]] = field(default_factory=list, compare=False)
    by_name: dict[tuple[Kind, str], list[int]] | None = field(default=None, compare=False)

    def due_of(self, timer: int) -> datetime | None:
        return self.tickets[timer].due_at if timer >= 0 else self.notices[~timer].due_at

    def arm(self, timer: int, at: datetime) -> None:
        if self.paused is None or not pausing.stands_still(self, timer):
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
        if self.closed_at is not None or self.paused is not None:
            return first
        return self.deadline if first is None else self.by_deadline(first)

    def by_deadline(self, at: datetime) -> datetime:
        """This instant, or the deadline when that comes first."""
        return at if self.deadline is None else min(at, self.deadline)

    def out_of_time(self, now: datetime) -> bool:
        """True when its deadline has passed. While it is paused none does."""
        return self.deadline is not None and now >= self.deadline and self.paused is None

    def open_named(self, kind: Kind, name: str) -> list[int]:
        return [p for p in self.named(kind, name) if self.tickets[p].phase is not Phase.CLOSED]

    def named(self, kind: Kind, name: str) -> list[int]:
        """The tickets of a destination that the plan asked for; the index is built when first needed."""
        if self.by_name is None:
            self.by_name = undoing.by_name(self)
        return self.by_name.get((kind, name), [])

    @property
    def asked(self) -> int:
        """How many tickets the plan itself asked for; those behind them undo others."""
        return self.undoes or len(self.tickets)

    @property
    def finished(self) -> bool:
        """True once nothing can happen by itself any more: ended, nothing owed to the outside, no timer to come."""
        return self.closed_at is not None and not self.owes and self.wake_at() is None

    def owes_order(self, position: int, attempt: int) -> bool:
        """True while the message of this attempt has to be sent: released, and no broker has confirmed it."""
        return position in self.owed and self.tickets[position].attempt == attempt

    def may_owe_order(self, position: int, attempt: int) -> bool:
        """False when this attempt is known to be settled. For a state that may be older than the question: tickets and
        attempts that it has not heard of may be owed."""
        known = self.tickets
        return position in self.owed or position >= len(known) or known[position].attempt < attempt

    def owes_notice(self, notice: int, attempt: int) -> bool:
        """True while this try of a notice has to be made."""
        one = self.notices[notice]
        return one.phase is NoticePhase.OWED and one.attempt == attempt

    def wants_answer(self, position: int, attempt: int) -> bool:
        """True while an answer to this attempt counts: it is the current one, and with a worker or on its way there."""
        ticket = self.tickets[position]
        return ticket.attempt == attempt and (ticket.phase is Phase.RUNNING or ticket.phase is Phase.OWED)

    @property
    def asks_anything(self) -> bool:
        """True while expressions have to be evaluated."""
        return bool(self.asks) or self.asks_output

    def parameters(self, position: int) -> bytes:
        """The parameters of a task that has started."""
        block = None if self.blocks is None else self.blocks.of(position)
        if block is not None:
            return block.parameters(position)
        return self.resolved.get(position) or self.plan.tasks[position].parametros

    def items(self, position: int) -> Sequence[int]:
        """The positions of the items of a map or the rounds of a loop; none before it has any."""
        block = None if self.blocks is None else self.blocks.grown_of(position)
        return () if block is None else block.positions

    @property
    def owes(self) -> int:
        """How many things the world is owed and may be given, evaluations included; orders wait while it is paused."""
        owed = len(self.asks) + self.asks_output + len(self.to_end)
        if self.paused is None:
            owed += len(self.owed)
        if self.policy is not None:
            owed += len(self.policy.owed)
        for notice in self.notices:
            if notice.phase is NoticePhase.OWED:
                owed += 1
        return owed


def begin(event: ev.OrchestrationStarted, at: datetime) -> Orchestration:
    plan = event.plan
    return Orchestration(
        run=event.run,
        correlation_id=event.correlation_id,
        plan=plan,
        deadline=event.deadline,
        fingerprint=event.fingerprint,
        started_at=at,
        tickets=[Ticket() for _ in plan.tasks],
        gates=[GateCount() for _ in plan.gates],
        notices=quiet_notices(plan.notify.webhook, plan.notify.queue, plan.parent is not None),
        open=len(plan.tasks),
        traceparent=event.traceparent,
        actor=event.actor,
        origin=event.origin,
        reuse=Reusable() if event.origin is not None and event.origin.reuses else None,
    )


def _close(state: Orchestration, position: int, status: Status, at: datetime) -> None:
    ticket, task = state.tickets[position], state.plan.tasks[position]
    if ticket.phase is Phase.HELD:
        del state.held[task.name][position]
    if task.kind is Kind.FILHA and (ticket.phase is Phase.OWED or ticket.phase is Phase.RUNNING):
        state.to_end[position] = ticket.attempt
    judged = ticket.phase is Phase.JUDGED and policing.let_go(state, position)
    ticket.status = status
    ticket.phase = Phase.CLOSED
    ticket.closed_at, ticket.due_at = at, None
    state.owed.discard(position)
    if state.asks:
        state.asks.pop(position, None)
    if state.resolved and status is not Status.ERRO and status is not Status.TIMEOUT:  # those may be requeued
        state.resolved.pop(position, None)
    state.open -= 1
    if state.status is Status.PENDENTE:
        state.status = Status.EM_EXECUCAO
    if state.blocks is not None and (ticket.attempt or judged):
        state.blocks.closed(position)
    if state.windows:
        undoing.closed(state, position)
    ok = status is Status.CONCLUIDA or status is Status.PARCIAL
    skipped = not ok and (status is Status.IGNORADA or state.plan.profile.optional(position))
    for number in task.feeds:
        gate = state.gates[number]
        gate.closed += 1
        if ok:
            gate.ok += 1
        elif skipped:
            gate.skipped += 1


def evolve(state: Orchestration, event: ev.Event, at: datetime) -> None:
    """Make the event true. `at` is the instant of its step."""
    state.version += 1
    match event:
        case ev.TicketConcluded(position, attempt, dados, erros, digest):
            ticket = state.tickets[position]
            ticket.dados, ticket.erros, ticket.fault = dados, erros or None, None
            state.data_bytes += len(dados)
            ticket.take_last_answer(attempt, digest)
            _close(state, position, Status.CONCLUIDA, at)
        case ev.DispatchConfirmed(confirmed):
            started, timeout, due = pausing.clock(state, at), timedelta(), at
            for position, attempt in confirmed:
                ticket, task = state.tickets[position], state.plan.tasks[position]
                ticket.confirmed |= 1 << attempt
                ticket.status, ticket.phase, ticket.started_at = Status.EM_EXECUCAO, Phase.RUNNING, at
                state.owed.discard(position)
                if task.timeout:  # children may have as long as they take
                    if task.timeout != timeout:  # most tickets of a run have the same, and one instant is kept for all
                        timeout, due = task.timeout, started + task.timeout
                    ticket.due_at = due
                    state.arm(position, due)
            state.status = Status.EM_EXECUCAO
        case ev.TicketsDispatched(positions, attempt):
            fresh = policing.fresh(state, positions)
            for position in positions:
                ticket = state.tickets[position]
                ticket.phase, ticket.attempt, ticket.status = Phase.OWED, attempt, Status.PENDENTE
                ticket.due_at = ticket.started_at = None
                ticket.dispatched_at = ticket.dispatched_at or at
            state.owed.update(positions)
            if state.blocks is not None and attempt == 1:
                state.blocks.started(fresh)
            if state.windows and attempt == 1:
                undoing.started(state, positions)
        case ev.FanInClosed(number, passed):
            state.gates[number].passed = passed
        case ev.AttemptFailed(position, attempt, cause, erros, retry_at, dados, digest, fault):
            ticket = state.tickets[position]
            ticket.status, ticket.phase, ticket.due_at = Status.PENDENTE, Phase.BACKOFF, retry_at
            ticket.erros, ticket.fault, ticket.dados = erros or None, fault, dados
            state.data_bytes += len(dados)
            ticket.causes = [*(ticket.causes or ()), cause]
            if cause is Cause.ERRO:
                ticket.take_answer(attempt, digest)
                ticket.digest = digest
            state.owed.discard(position)
            state.arm(position, retry_at)
        case ev.TicketFailed(position, attempt, status, erros, dados, _definitivo, digest, fault):
            ticket = state.tickets[position]
            ticket.erros, ticket.fault, ticket.dados = erros or None, fault, dados
            state.data_bytes += len(dados)
            if status is Status.ERRO:
                ticket.take_last_answer(attempt, digest)
            _close(state, position, status, at)
            if status is Status.ERRO and state.to_end:
                state.to_end.pop(position, None)  # it has ended by itself, or is none of ours
        case ev.OrchestrationClosed(status):
            state.status, state.closed_at, state.asks_output, state.paused = status, at, False, None
            policing.close(state)
        case ev.ChildEnded(position, attempt, status, dados, digest):
            ticket = state.tickets[position]
            ticket.dados, ticket.erros, ticket.fault = dados, None, None
            state.data_bytes += len(dados)
            ticket.take_last_answer(attempt, digest)
            _close(state, position, status, at)
            del state.to_end[position]
        case ev.ChildrenCancelled(children):
            for position, _attempt in children:
                del state.to_end[position]
        case ev.TicketRequeued(position, attempt):
            reopen(state, position, attempt)
        case ev.TicketWithdrawn():
            withdrawing.take_back(state, event, at)
        case ev.TicketAllocated():
            allocating.note(state, event, at)
        case ev.TicketsClosed(positions, status, reason):
            for position in positions:
                ticket = state.tickets[position]
                ticket.reason = reason
                if status is Status.TIMEOUT or status is Status.ERRO:
                    ticket.erros, ticket.fault = None, reason
                _close(state, position, status, at)
        case ev.TasksAsked(positions, output):
            state.asks.update(dict.fromkeys(positions))
            state.asks_output = output
            if state.windows:
                undoing.started(state, positions)
        case ev.Resolved(resolutions, output):
            for one in resolutions:
                state.asks.pop(one.ticket, None)
                if one.outcome is Outcome.GO:
                    state.resolved[one.ticket] = one.value
            if output is not None:
                state.asks_output, state.output_resolved, state.output = False, True, output.value
                if output.outcome is Outcome.FAIL:
                    state.output_fault = expression_fault(output)
        case ev.PolicyAsked() | ev.PolicyEvaluated() | ev.AnswerHeld():
            policing.evolve(state, event)
        case ev.PlanGrown():
            blocks.take_in(state, event, at)
        case ev.ResultsReused():
            restoring.take_in(state, event)
        case ev.MapRestored():
            blocks.take_in(state, restoring.grown(state, event), at)
        case ev.TicketsReused(positions):
            for position in positions:
                _close(state, position, Status.CONCLUIDA, at)
                restoring.take_over(state, position, at)
        case ev.MapEnded(position, status, reason) | ev.LoopEnded(position, status, reason):
            state.tickets[position].fault = reason
            if isinstance(event, ev.LoopEnded):
                blocks.end_loop(state, position, status)
            _close(state, position, status, at)
        case ev.LateAnswerKept(position, attempt, _ok, _dados, _erros, _definitivo, digest):
            ticket = state.tickets[position]
            ticket.late = [*(ticket.late or ()), event]
            ticket.take_answer(attempt, digest)
            ticket.digest = ticket.digest or digest
        case ev.ConflictingAnswerKept(position):
            state.tickets[position].conflicts = [*(state.tickets[position].conflicts or ()), event]
        case ev.NoticeSent() | ev.NoticeDelivered() | ev.NoticeFailed() | ev.NoticeGivenUp():
            state.notices[event.notice].take_in(event)
            if isinstance(event, ev.NoticeFailed):
                state.arm(~event.notice, event.retry_at)
        case ev.CancelRequested(reason):
            state.cancel_reason = reason
        case ev.OrchestrationPaused() | ev.OrchestrationResumed() | ev.PriorityChanged():
            pausing.evolve(state, event, at)
        case ev.ApprovalAsked():
            state.awaits_approval = True
        case ev.ApprovalGiven(by, task=None) | ev.ApprovalRefused(by, task=None):
            state.awaits_approval, state.approved_by = False, by
        case ev.SignalReceived(signal, name, dados, taken_by, content):
            state.signals[signal] = SignalState(name, dados, content, taken_by)
            state.kept[signal] = None
        case ev.WaitStarted(position, due_at):
            waits.hold(state, position, due_at, at)
        case ev.WaitEnded(position, _how, status):
            waits.let_go(state, event)
            _close(state, position, status, at)
        case ev.CompensationStarted():
            undoing.begin(state, event)
        case ev.Woken() | ev.OrchestrationStarted() | ev.ApprovalGiven() | ev.ApprovalRefused():
            pass
        case _:
            assert_never(event)


def fold(recorded: Iterable[tuple[datetime, Iterable[ev.Event]]], state: Orchestration | None = None) -> Orchestration:
    """The state that these (instant, events) make, from the start or on top of an earlier state."""
    for at, events in recorded:
        for event in events:
            if state is None:
                if not isinstance(event, ev.OrchestrationStarted):
                    raise ValueError(f"a journal begins with OrchestrationStarted, not with {type(event).__name__}")
                state = begin(event, at)
            else:
                evolve(state, event, at)
    if state is None:
        raise ValueError("an empty journal has no state")
    return state
