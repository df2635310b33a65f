"""The rules of waits, signals and decisions, said again without the core: a wait ends once and for a reason, never
before its instant; a signal counts once, and is taken by the wait of its name that waits longest."""

from __future__ import annotations

from collections.abc import Sequence, Set
from datetime import datetime, timedelta
from typing import Any, Protocol

import orjson

from oraculo.core import events as ev
from oraculo.core.named_tasks import named_in
from oraculo.core.plan import Plan
from oraculo.core.vocabulary import Status
from oraculo.core.waits import Wait, WaitEnd, WaitKind
from oraculo.simulation.facts import Seen
from oraculo.simulation.pause_rules import PauseRules

RULE, SIGNALS = "waits end for a reason", "signals count once"
HELD = "held"


class ReadJournal(Protocol):
    """What the rules read of a journal, and say to it."""

    plan: Plan
    tickets: list[Seen]
    gates: list[bool | None]
    pauses: PauseRules

    def wrong(self, rule: str, text: str) -> None: ...

    def may_start(self, position: int) -> bool: ...

    def close(self, position: int, status: Status, dados: bytes) -> None: ...


def wait_of(plan: Plan, position: int) -> Wait | None:
    """What a task of the plan waits for; None of other tasks, and of items of maps."""
    named = named_in(plan)
    return None if named is None or position >= len(named.named) else named.named[position].wait


def is_of_a_task(event: ev.Event) -> bool:
    """True of a decision on one task; the others are about a whole plan."""
    return isinstance(event, ev.ApprovalGiven | ev.ApprovalRefused) and event.task is not None


class WaitRules:
    """Follows one journal."""

    def __init__(self, journal: ReadJournal) -> None:
        self._journal = journal
        self.signals: dict[str, tuple[str, bytes]] = {}  # id → name and data
        self.kept: list[str] = []
        self.held: list[int] = []  # in the order in which they began
        self.refused: set[int] = set()
        self._decided: ev.ApprovalGiven | ev.ApprovalRefused | None = None
        self._taken: dict[int, str] = {}  # waits that a signal of this record has chosen

    def began(self, plan: Plan) -> None:
        """A plan with a wait has a deadline only when its author says so."""
        named = named_in(plan)
        if named is not None and any(one.wait is not None for one in named.named):
            asked = "timeout_s" in orjson.loads(named.document)
            if asked is not (plan.timeout is not None):
                self._journal.wrong("deadlines are honest", "a plan that waits has a deadline that nobody asked for")

    def read(self, event: ev.Event, at: datetime) -> bool:
        """Check an event, if it is about waits; False when it is not."""
        match event:
            case ev.WaitStarted(position, due_at):
                self._start(position, due_at, at)
            case ev.WaitEnded():
                self._end(event, at)
            case ev.SignalReceived(signal, name, dados, taken_by):
                self._received(signal, name, dados, taken_by)
            case ev.ApprovalGiven() | ev.ApprovalRefused() if event.task is not None:
                self._decided = event
            case _:
                return False
        return True

    def next_of(self, signal: str) -> int | None:
        """The wait that has to take a signal of this name."""
        plan = self._journal.plan
        waiting = [p for p in self._open() if (wait := wait_of(plan, p)) is not None and wait.signal == signal]
        return waiting[0] if waiting else None

    def _open(self) -> list[int]:
        self.held = [p for p in self.held if self._journal.tickets[p].phase == HELD]
        return self.held

    def _start(self, position: int, due_at: datetime | None, at: datetime) -> None:
        journal, ticket = self._journal, self._journal.tickets[position]
        wait, after = wait_of(journal.plan, position), journal.plan.tasks[position].after
        if wait is None or not journal.may_start(position):
            journal.wrong(RULE, f"ticket {position} waits while {ticket.phase}")
        if after is not None and journal.gates[after] is not True:
            journal.wrong("no dispatch before its gate", f"wait {position}, gate {after}")
        own_due = None if due_at is None else journal.pauses.own_instant(due_at)
        if wait is not None and own_due != self._due(position, wait, at):
            journal.wrong(RULE, f"wait {position} is to end at {due_at}")
        ticket.phase, ticket.retry_at, ticket.released_at = HELD, own_due, at
        self.held.append(position)

    def _due(self, position: int, wait: Wait, at: datetime) -> datetime | None:
        """The plans of these worlds say seconds as a number, or as that of the input."""
        if wait.kind is WaitKind.SECONDS:
            said: Any = orjson.loads(self._journal.plan.tasks[position].parametros)
            named = named_in(self._journal.plan)
            given = orjson.loads(named.input)["n"] if isinstance(said, str) and named is not None else said
            return at + timedelta(seconds=given)
        return None if wait.limit is None else at + wait.limit

    def _received(self, signal: str, name: str, dados: bytes, taken_by: int | None) -> None:
        if signal in self.signals:
            self._journal.wrong(SIGNALS, f"{signal} was received twice")
        if taken_by != self.next_of(name):
            self._journal.wrong(SIGNALS, f"{signal} is taken by {taken_by}, not by {self.next_of(name)}")
        self.signals[signal] = name, dados
        self.kept.append(signal)
        if taken_by is not None:
            self._taken[taken_by] = signal

    def _end(self, event: ev.WaitEnded, at: datetime) -> None:
        position, journal = event.ticket, self._journal
        ticket, wait = journal.tickets[position], wait_of(journal.plan, position)
        dados = event.dados
        if wait is None or ticket.phase != HELD:
            journal.wrong(RULE, f"ticket {position} ended as {event.how} while {ticket.phase}")
            return
        good = True
        match event.how:
            case WaitEnd.SIGNALLED:
                dados = self._signalled(position, wait, event.signal)
            case WaitEnd.APPROVED | WaitEnd.REFUSED:
                said = self._decided
                if said is None or said.task != position:
                    journal.wrong(RULE, f"nobody decided on ticket {position}")
                good = isinstance(said, ev.ApprovalGiven) or wait.continues_refused
                if not good:
                    self.refused.add(position)
            case WaitEnd.ELAPSED | WaitEnd.EXPIRED:
                if ticket.released_at is None or ticket.retry_at != ticket.released_at:  # no time at all has passed
                    journal.pauses.timed_out(f"wait {position} ended")
                if ticket.retry_at is None or at < ticket.retry_at:
                    journal.wrong(RULE, f"ticket {position} ended at {at}, before {ticket.retry_at}")
                good = not wait.expires or wait.continues_expired
        bad = Status.CANCELADA if position in self.refused else Status.TIMEOUT
        if event.status is not (Status.CONCLUIDA if good else bad):
            journal.wrong(RULE, f"ticket {position} is {event.status.value} after {event.how}")
        journal.close(position, event.status, dados)

    def _signalled(self, position: int, wait: Wait, signal: str | None) -> bytes:
        name, dados = self.signals.get(signal or "", ("", b"null"))
        oldest = next((one for one in self.kept if self.signals[one][0] == wait.signal), None)
        if signal is None or name != wait.signal or signal != oldest:
            self._journal.wrong(SIGNALS, f"ticket {position} took {signal}, not {oldest}")
            return dados
        self.kept.remove(signal)
        self._taken.pop(position, None)
        return dados

    def quiet(self, at: datetime, woken: bool) -> None:
        """After every record: nothing waits for what is there."""
        for position in self._open():
            wait, due = wait_of(self._journal.plan, position), self._journal.tickets[position].retry_at
            if wait is not None and any(self.signals[one][0] == wait.signal for one in self.kept):
                self._journal.wrong(SIGNALS, f"ticket {position} waits although its signal came")
            if due is not None and due <= at and woken and not self._journal.pauses.paused:
                self._journal.wrong(RULE, f"ticket {position} waits past {due}")
        if self._taken and self._open():
            self._journal.wrong(SIGNALS, f"{self._taken} were to be taken")
        self._decided, self._taken = None, {}


def follows(plan: Plan, position: int, tickets: Sequence[Seen], refused: Set[int]) -> bool:
    """True of a task that was refused, or cancelled because something before it was."""
    if position in refused:
        return True
    after = plan.tasks[position].after
    cancelled = tickets[position].status is Status.CANCELADA and after is not None
    return cancelled and any(follows(plan, p, tickets, refused) for p in plan.gates[after or 0].inputs)
