"""What must hold in every journal, said again without a line of the core.

A `Journal` reads one orchestration's records as they are committed and checks each event against rules written here
from the promises, not from the code: numbering, one ending, closed tickets that stay closed, gates, deadlines, retries
with a cause, answers that somebody really gave, notices.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import orjson

from oraculo.core import events as ev
from oraculo.core.compensation import extended
from oraculo.core.flow import Spec
from oraculo.core.plan import Gate, Plan
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import Cause, FanIn, Status
from oraculo.ports.store import Recorded
from oraculo.simulation.facts import Knowledge, Seen, SeenNotice


class Journal:
    def __init__(self, knows: Knowledge, violate: Callable[[str, str], None]) -> None:
        self._knows = knows
        self._violate = violate
        self.version = 0
        self.run = 0
        self.name = ""
        self.plan: Plan
        self.deadline: datetime
        self.tickets: list[Seen] = []
        self.gates: list[bool | None] = []
        self.notices: list[SeenNotice] = []
        self.status: Status | None = None
        self.cancelled = False
        self.asked = False  # a human
        self.undoes = 0  # where the tickets begin that undo others
        self.at: datetime | None = None
        self.late_by = timedelta()  # the latest that anything timed came, in the last record
        self.answers = 0  # answers that took effect, and those that came late
        self.late = 0
        self._woken = False
        self._first: ev.Event

    def wrong(self, rule: str, text: str) -> None:
        self._violate(rule, f"{self.name or self.run} event {self.version}: {text}")

    def read(self, recorded: Recorded) -> None:
        if recorded.first != self.version + 1:
            self.wrong("gap-free numbering", f"record starts at {recorded.first} after {self.version}")
        if self.at is not None and recorded.at < self.at:
            self.wrong("time only goes forward", f"{recorded.at} after {self.at}")
        self.at, self.late_by = recorded.at, timedelta()
        self._first = recorded.events[0]
        self._woken = isinstance(self._first, ev.Woken)
        for event in recorded.events:
            self.version += 1
            self._event(event, recorded.at)
        self._quiet(recorded.at)

    # -- one event ---------------------------------------------------------------------------------------------------

    def _event(self, event: ev.Event, at: datetime) -> None:
        if not self.tickets and not isinstance(event, ev.OrchestrationStarted):
            self.wrong("begins with its start", type(event).__name__)
            return
        over = self.status is not None
        after_end = (ev.LateAnswerKept, ev.NoticeSent, ev.NoticeDelivered, ev.NoticeFailed, ev.NoticeGivenUp, ev.Woken)
        if over and not isinstance(event, after_end):
            self.wrong("one ending", f"{type(event).__name__} after the end")
        match event:
            case ev.OrchestrationStarted():
                self._started(event, at)
            case ev.TicketsDispatched(positions, attempt):
                for position in positions:
                    self._dispatched(position, attempt, at)
            case ev.DispatchConfirmed(pairs):
                for position, attempt in pairs:
                    self._confirmed(position, attempt, at)
            case ev.TicketConcluded(position, attempt, dados, _erros, digest):
                self._answered(position, attempt, True, False, dados, digest)
                self._close(position, Status.CONCLUIDA, dados)
            case ev.AttemptFailed():
                self._attempt_failed(event, at)
            case ev.TicketFailed():
                self._failed(event, at)
            case ev.LateAnswerKept():
                self._late(event)
            case ev.TicketsClosed(positions, status, _reason):
                for position in positions:
                    self._closed_without(position, status, at)
            case ev.FanInClosed(number, passed):
                if self.gates[number] is not None:
                    self.wrong("a gate closes once", f"gate {number}")
                if self._verdict(self.plan.gates[number]) is not passed:
                    self.wrong("gates count right", f"gate {number} closed as passed={passed}")
                self.gates[number] = passed
            case ev.CancelRequested() | ev.ApprovalRefused():
                self.cancelled = True
                self.asked = False
            case ev.ApprovalAsked():
                self.asked = True
            case ev.ApprovalGiven():
                self.asked = False
            case ev.CompensationStarted(undone):
                self._undoing(undone)
            case ev.OrchestrationClosed(status):
                self._ended(status, at)
            case ev.Woken():
                pass
            case _:
                self._notice(event, at)

    def _started(self, event: ev.OrchestrationStarted, at: datetime) -> None:
        if self.tickets:
            self.wrong("one start", "started twice")
        self.run, self.name, self.plan = event.run, event.correlation_id, event.plan
        self.deadline = at + event.plan.timeout
        if event.deadline != self.deadline:
            self.wrong("deadlines are honest", f"deadline {event.deadline}, expected {self.deadline}")
        self.tickets = [Seen() for _ in event.plan.tasks]
        self.gates = [None for _ in event.plan.gates]
        targets = (event.plan.notify.webhook, event.plan.notify.queue)
        self.notices = [SeenNotice() for target in targets if target]

    def _undoing(self, undone: list[int]) -> None:
        """What failed and what it needed, as far as it was ever tried, the last first; once, when all else is over."""
        if self.undoes:
            self.wrong("undone once", "undone twice")
        if any(ticket.phase != "closed" for ticket in self.tickets):
            self.wrong("undone once", "undone while tickets are open")
        if undone != self._to_undo():
            self.wrong("undone in reverse", f"{undone}, expected {self._to_undo()}")
        self.undoes = len(self.tickets)
        self.plan = extended(self.plan, undone)
        self.tickets += [Seen() for _ in undone]
        self.gates += [None] * (len(self.plan.gates) - len(self.gates))
        for number, position in enumerate(undone, self.undoes):
            self._check_undoing(number, position, undone)

    def _check_undoing(self, number: int, position: int, undone: list[int]) -> None:
        """It waits for what undoes everything that needed it."""
        specs = self._specs()
        needed = {self.undoes + n for n, other in enumerate(undone) if position in specs[other].dependencies}
        after = self.plan.tasks[number].after
        if (set() if after is None else set(self.plan.gates[after].inputs)) != needed:
            self.wrong("undone in reverse", f"ticket {number} does not wait for {sorted(needed)}")

    def _specs(self) -> tuple[Spec, ...]:
        return () if self.plan.flow is None else self.plan.flow.specs

    def _to_undo(self) -> list[int]:
        flow = self.plan.flow
        if flow is None or not flow.compensate:
            return []
        wanted: set[int] = set()
        for position in reversed(range(len(self.tickets))):  # nothing depends on what comes later
            ticket = self.tickets[position]
            failed = ticket.status in (Status.ERRO, Status.TIMEOUT)
            if failed or any(position in flow.specs[other].dependencies for other in wanted):
                wanted.add(position)
        return sorted((p for p in wanted if self.tickets[p].attempt), reverse=True)

    def _dispatched(self, position: int, attempt: int, at: datetime) -> None:
        ticket, task = self.tickets[position], self.plan.tasks[position]
        if self.asked:
            self.wrong("nothing before a human agrees", f"ticket {position} dispatched")
        if attempt == 1:
            if ticket.phase != "waiting":
                self.wrong("a closed ticket never moves", f"ticket {position} dispatched while {ticket.phase}")
            if task.after is not None and self.gates[task.after] is not True:
                self.wrong("no dispatch before its gate", f"ticket {position}, gate {task.after}")
        else:
            if ticket.phase != "backoff" or attempt != ticket.attempt + 1:
                self.wrong("explained attempts", f"ticket {position} attempt {attempt} while {ticket.phase}")
            elif ticket.retry_at is not None:
                if at < ticket.retry_at:
                    self.wrong("deadlines are honest", f"ticket {position} tried again before {ticket.retry_at}")
                self.late_by = max(self.late_by, at - ticket.retry_at)
        if attempt > task.max_attempts:
            self.wrong("explained attempts", f"ticket {position} attempt {attempt} of {task.max_attempts}")
        ticket.phase, ticket.attempt, ticket.confirmed_at = "owed", attempt, None

    def _confirmed(self, position: int, attempt: int, at: datetime) -> None:
        ticket = self.tickets[position]
        if ticket.phase != "owed" or ticket.attempt != attempt:
            self.wrong("a closed ticket never moves", f"ticket {position} confirmed while {ticket.phase}")
        if not self._knows.confirmed(f"{ticket_id(self.run, position)}.{attempt}"):
            self.wrong("confirmed means confirmed", f"ticket {position} attempt {attempt}: no broker confirmed it")
        ticket.phase, ticket.confirmed_at = "running", at

    def _answered(self, position: int, attempt: int, ok: bool, definitivo: bool, dados: bytes, digest: int) -> None:
        """An answer that takes effect: current attempt, first for it, and really given."""
        ticket = self.tickets[position]
        if attempt in ticket.answered:
            self.wrong("results count once", f"ticket {position} attempt {attempt} answered twice")
        if ticket.phase not in ("owed", "running") or attempt != ticket.attempt:
            self.wrong("a closed ticket never moves", f"ticket {position} attempt {attempt} while {ticket.phase}")
        ticket.answered.add(attempt)
        self.answers += 1
        self._given(position, attempt, ok, definitivo, dados, digest)

    def _given(self, position: int, attempt: int, ok: bool, definitivo: bool, dados: bytes, digest: int) -> None:
        given = self._knows.answer(digest)
        if given is None or given.ticket != ticket_id(self.run, position):
            self.wrong("results are real", f"ticket {position}: nobody gave this answer")
        elif (given.ok, given.definitivo, given.dados) != (ok, definitivo, orjson.loads(dados)):
            self.wrong("results are real", f"ticket {position}: recorded otherwise than given")
        elif given.echoed and given.attempt != attempt:
            self.wrong("fenced", f"ticket {position}: answer of attempt {given.attempt} taken for {attempt}")

    def _timed_out(self, position: int, attempt: int, at: datetime) -> None:
        ticket = self.tickets[position]
        if not self._woken:
            self.wrong("explained attempts", f"ticket {position} timed out without a timer")
        if ticket.phase != "running" or ticket.attempt != attempt or ticket.confirmed_at is None:
            self.wrong("deadlines are honest", f"ticket {position} timed out while {ticket.phase}")
            return
        due = ticket.confirmed_at + self.plan.tasks[position].timeout
        if at < due:
            self.wrong("deadlines are honest", f"ticket {position} timed out at {at}, before {due}")
        self.late_by = max(self.late_by, at - due)
        if self._knows.honest_timeouts() and not 0 < self.undoes <= position:  # those have little time
            self.wrong("nothing is lost", f"ticket {position} attempt {attempt} timed out and nobody was to blame")

    def _attempt_failed(self, event: ev.AttemptFailed, at: datetime) -> None:
        ticket, task = self.tickets[event.ticket], self.plan.tasks[event.ticket]
        if event.cause is Cause.TIMEOUT:
            self._timed_out(event.ticket, event.attempt, at)
        else:
            self._answered(event.ticket, event.attempt, False, False, event.dados, event.digest)
        if event.attempt >= task.max_attempts:
            self.wrong("explained attempts", f"ticket {event.ticket}: no attempt is left after {event.attempt}")
        if event.retry_at < at:
            self.wrong("deadlines are honest", f"ticket {event.ticket}: retry in the past")
        if event.retry_at > at + self.plan.backoff.cap:
            self.wrong("deadlines are honest", f"ticket {event.ticket}: retry beyond the cap")
        ticket.phase, ticket.retry_at, ticket.dados = "backoff", event.retry_at, event.dados

    def _failed(self, event: ev.TicketFailed, at: datetime) -> None:
        task = self.plan.tasks[event.ticket]
        if event.status is Status.TIMEOUT:
            self._timed_out(event.ticket, event.attempt, at)
        else:
            self._answered(event.ticket, event.attempt, False, event.definitivo, event.dados, event.digest)
        if not event.definitivo and event.attempt < task.max_attempts:
            self.wrong(
                "explained attempts", f"ticket {event.ticket} given up at {event.attempt} of {task.max_attempts}"
            )
        self._close(event.ticket, event.status, event.dados)

    def _late(self, event: ev.LateAnswerKept) -> None:
        ticket = self.tickets[event.ticket]
        if event.attempt in ticket.answered:
            self.wrong("results count once", f"ticket {event.ticket} attempt {event.attempt} answered twice")
        if event.attempt == ticket.attempt and ticket.phase in ("owed", "running"):
            self.wrong("results count once", f"ticket {event.ticket}: an answer in time was called late")
        ticket.answered.add(event.attempt)
        self.late += 1
        self._given(event.ticket, event.attempt, event.ok, event.definitivo, event.dados, event.digest)

    def _close(self, position: int, status: Status, dados: bytes = b"null") -> None:
        ticket = self.tickets[position]
        if ticket.phase == "closed":
            self.wrong("a closed ticket never moves", f"ticket {position} closed again as {status.value}")
        ticket.phase, ticket.status, ticket.dados = "closed", status, dados

    def _closed_without(self, position: int, status: Status, at: datetime) -> None:
        ticket, task = self.tickets[position], self.plan.tasks[position]
        out_of_time = self._woken and at >= self.deadline
        if status is Status.TIMEOUT:
            if not out_of_time or ticket.phase == "waiting":
                self.wrong("deadlines are honest", f"ticket {position} closed as timeout before {self.deadline}")
            if self._knows.honest_timeouts():
                self.wrong("nothing is lost", f"ticket {position} ran out of time and nobody was to blame")
        else:
            spare = any(self.gates[gate] is True for gate in task.feeds)
            doomed = task.after is not None and self.gates[task.after] is False
            failed = any(g is False and gate.essential for g, gate in zip(self.gates, self.plan.gates, strict=True))
            if status is not Status.CANCELADA or not (self.cancelled or out_of_time or spare or doomed or failed):
                self.wrong("endings are explained", f"ticket {position} closed as {status.value} for no reason")
        if ticket.phase == "closed":
            self.wrong("a closed ticket never moves", f"ticket {position} closed again as {status.value}")
        ticket.phase, ticket.status = "closed", status

    # -- gates, endings, notices -------------------------------------------------------------------------------------

    def _verdict(self, gate: Gate) -> bool | None:
        inputs = [self.tickets[position] for position in gate.inputs]
        good = sum(1 for ticket in inputs if ticket.status is Status.CONCLUIDA)
        closed = sum(1 for ticket in inputs if ticket.phase == "closed")
        if gate.mode is FanIn.TODOS:
            return good >= gate.needed if closed == len(inputs) else None
        wanted = {FanIn.QUORUM: gate.needed, FanIn.PRIMEIRO: 1, FanIn.TODAS_OK: len(inputs)}[gate.mode]
        if good >= wanted:
            return True
        return False if good + len(inputs) - closed < wanted else None

    def _ended(self, status: Status, at: datetime) -> None:
        if self.status is not None:
            self.wrong("one ending", f"{status.value} after {self.status.value}")
        still_open = [n for n, ticket in enumerate(self.tickets) if ticket.phase != "closed"]
        if still_open:
            self.wrong("one ending", f"ended with open tickets {still_open}")
        if isinstance(self._first, ev.CancelRequested | ev.ApprovalRefused):
            expected = Status.CANCELADA
        elif self._woken and at >= self.deadline:
            expected = Status.TIMEOUT
            self.late_by = max(self.late_by, at - self.deadline)
        elif self.plan.flow is not None:
            expected = self._flow_ending()
            if not self.undoes and self._to_undo():
                self.wrong("undone once", f"ended although {self._to_undo()} had to be undone")
        elif any(g is False and gate.essential for g, gate in zip(self.gates, self.plan.gates, strict=True)):
            expected = Status.ERRO
        elif any(ticket.status in (Status.ERRO, Status.TIMEOUT) for ticket in self.tickets):
            expected = Status.PARCIAL
        else:
            expected = Status.CONCLUIDA
        if status is not expected:
            self.wrong("endings are explained", f"ended as {status.value}, expected {expected.value}")
        self.status, self.asked = status, False

    def _flow_ending(self) -> Status:
        asked = self.tickets[: self.undoes or len(self.tickets)]
        good = sum(1 for ticket in asked if ticket.status is Status.CONCLUIDA)
        if good == len(asked):
            return Status.CONCLUIDA
        return Status.ERRO if len(asked) - good > len(asked) // 2 else Status.PARCIAL

    def _notice(self, event: ev.Event, at: datetime) -> None:
        match event:
            case ev.NoticeSent(number, attempt):
                notice = self.notices[number]
                if self.status is None or attempt != notice.attempt + 1 or notice.phase in ("owed", "done"):
                    self.wrong("one notice per end", f"notice {number} try {attempt} while {notice.phase}")
                if notice.retry_at is not None:
                    if at < notice.retry_at:
                        self.wrong("deadlines are honest", f"notice {number} tried before {notice.retry_at}")
                    self.late_by = max(self.late_by, at - notice.retry_at)
                notice.attempt, notice.phase = attempt, "owed"
            case ev.NoticeDelivered(number, attempt) | ev.NoticeGivenUp(number, attempt):
                self._tried(number, attempt).phase = "done"
            case ev.NoticeFailed(number, attempt, _detail, retry_at):
                notice = self._tried(number, attempt)
                notice.phase, notice.retry_at = "backoff", retry_at

    def _tried(self, number: int, attempt: int) -> SeenNotice:
        notice = self.notices[number]
        if notice.phase != "owed" or notice.attempt != attempt:
            self.wrong("one notice per end", f"notice {number} outcome of try {attempt} while {notice.phase}")
        return notice

    # -- after every record ------------------------------------------------------------------------------------------

    def _quiet(self, at: datetime) -> None:
        """Whatever the new facts cause was caused in the same record."""
        if self.status is not None:
            if any(notice.phase == "quiet" for notice in self.notices):
                self.wrong("one notice per end", "ended without a notice")
            return
        for number, gate in enumerate(self.plan.gates):
            if self.gates[number] is None and self._verdict(gate) is not None:
                self.wrong("gates count right", f"gate {number} is decided and stays open")
            if self.gates[number] is True and any(self.tickets[p].phase == "waiting" for p in gate.releases):
                self.wrong("gates count right", f"gate {number} passed and released nothing")
        if all(ticket.phase == "closed" for ticket in self.tickets):
            self.wrong("one ending", "every ticket is closed and it goes on")
        if not self._woken:
            return
        if at >= self.deadline:
            self.wrong("deadlines are honest", "woken after its deadline and not ended")
        for number, ticket in enumerate(self.tickets):
            due = ticket.retry_at if ticket.phase == "backoff" else None
            if ticket.phase == "running" and ticket.confirmed_at is not None:
                due = ticket.confirmed_at + self.plan.tasks[number].timeout
            if due is not None and due <= at:
                self.wrong("deadlines are honest", f"ticket {number} was due at {due} and was not woken")
