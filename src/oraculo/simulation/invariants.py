"""What must hold in every journal, said again without a line of the core.

A `CheckedJournal` reads one orchestration's records as they are committed and checks each event against rules written
here from the promises, not from the code: numbering, one ending, closed tickets that stay closed, gates, deadlines,
retries with a cause, answers that a worker really gave, notices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import orjson

from oraculo.core import events as ev
from oraculo.core.digests import content_of
from oraculo.core.flow.profile import flow_in
from oraculo.core.named_tasks import NamedTask, named_in
from oraculo.core.plan import Plan
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import Cause, Kind, Status
from oraculo.ports.journal import Recorded
from oraculo.simulation import allocation_rules, flow_rules, notice_rules, requeue_rules, task_rules, withdrawal_rules
from oraculo.simulation.child_rules import ChildRules
from oraculo.simulation.expression_rules import ExpressionRules
from oraculo.simulation.facts import AFTER_THE_END, NEVER, Knowledge, Seen, SeenNotice
from oraculo.simulation.loop_rules import LoopRules, loop_spec
from oraculo.simulation.map_rules import MapRules
from oraculo.simulation.pause_rules import PauseRules
from oraculo.simulation.retry_rules import RetryRules
from oraculo.simulation.undo_rules import UndoRules
from oraculo.simulation.wait_rules import WaitRules, is_of_a_task


class CheckedJournal:
    def __init__(self, knows: Knowledge, violate: Callable[[str, str], None]) -> None:
        self._knows = knows
        self._violate = violate
        self.version = self.run = 0
        self.name = ""
        self.plan: Plan
        self.deadline: datetime
        self.tickets, self.gates = list[Seen](), list[bool | None]()
        self.notices: list[SeenNotice] = []
        self.status: Status | None = None
        self.cancelled = self.asked = False  # asked: a human
        self.undoes = 0  # where the tickets begin that undo others
        self.undone: list[int] = []
        self.at: datetime | None = None
        self.late_by = timedelta()  # the latest that anything timed came, in the last record
        self.answers = self.late = self.conflicting = self.exhausted = 0  # answers that took effect, and that did not
        self._expressions = ExpressionRules(self.wrong)
        self.maps, self.loops, self.children = MapRules(self.wrong), LoopRules(self.wrong), ChildRules(self.wrong)
        self.waits = WaitRules(self)
        self.pauses = PauseRules(self.wrong)
        self.retry = RetryRules(self)
        self.undoing = UndoRules(self)
        self._woken = False
        self.first: ev.Event

    def wrong(self, rule: str, text: str) -> None:
        self._violate(rule, f"{self.name or self.run} event {self.version}: {text}")

    def read(self, recorded: Recorded) -> None:
        if recorded.first != self.version + 1:
            self.wrong("gap-free numbering", f"record starts at {recorded.first} after {self.version}")
        if self.at is not None and recorded.at < self.at:
            self.wrong("time only goes forward", f"{recorded.at} after {self.at}")
        self.at, self.late_by = recorded.at, timedelta()
        self.first = recorded.events[0]
        self._woken = isinstance(self.first, ev.Woken)
        for event in recorded.events:
            self.version += 1
            if not self.pauses.read(event, recorded.at):
                self._event(event, self.pauses.own_time(recorded.at))
        self._quiet(self.pauses.own_time(recorded.at))

    # -- one event ---------------------------------------------------------------------------------------------------

    def _event(self, event: ev.Event, at: datetime) -> None:
        if not self.tickets and not isinstance(event, ev.OrchestrationStarted):
            self.wrong("begins with its start", type(event).__name__)
            return
        if self.status is not None and not isinstance(event, AFTER_THE_END):
            self.wrong("one ending", f"{type(event).__name__} after the end")
        if self.retry.read(event, at) or self.waits.read(event, at):
            return
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
                self.close(position, Status.CONCLUIDA, dados)
            case ev.ChildEnded(position, attempt, status, dados, digest):
                self.children.ended(event, self.plan)
                self._answered(position, attempt, True, False, dados, digest)
                self.close(position, status, dados)
            case ev.ChildrenCancelled():
                self.children.cancelled(event)
            case ev.AttemptFailed():
                self._attempt_failed(event, at)
            case ev.TicketFailed():
                self._failed(event, at)
            case ev.TicketRequeued():
                requeue_rules.check(self, event)
            case ev.TicketWithdrawn():
                withdrawal_rules.check(self, event, at)
            case ev.TicketAllocated():
                allocation_rules.check(self, event)
            case ev.LateAnswerKept():
                self._late(event)
            case ev.ConflictingAnswerKept():
                self._conflicting(event)
            case ev.TicketsClosed(positions, status, _reason):
                for position in positions:
                    self._closed_without(position, status, at)
            case ev.FanInClosed(number, passed):
                if self.gates[number] is not None:
                    self.wrong("a gate closes once", f"gate {number}")
                if self._verdict(number) is not passed:
                    self.wrong("gates count right", f"gate {number} closed as passed={passed}")
                self.gates[number] = passed
            case ev.TasksAsked():
                self._expressions.asked(event, self.plan, self.tickets, self.gates, self.loops.may_ask)
                self.undoing.start(event.tickets)
            case ev.Resolved():
                self._expressions.resolved(event, self.tickets)
            case ev.PlanGrown():
                self.maps.planned = self.maps.planned or len(self.tickets)
                own_due = None if event.due_at is None else self.pauses.own_instant(event.due_at)
                grows = self.maps.grown if loop_spec(self.plan, event.owner) is None else self.loops.grown
                self.plan = grows(replace(event, due_at=own_due), self.plan, self.tickets, at)
                self.gates += [None] * (len(self.plan.gates) - len(self.gates))
            case ev.MapEnded(position, status):
                self.maps.ended(event, self.tickets, self.gates, at)
                self.close(position, status)
            case ev.LoopEnded(position, status):
                self.loops.ended(event, self.tickets, at, self.at)
                self.close(position, status)
            case ev.CancelRequested() | ev.ApprovalRefused():
                self.cancelled, self.asked = True, False
            case ev.ApprovalAsked() | ev.ApprovalGiven():
                self.asked = isinstance(event, ev.ApprovalAsked)
            case ev.CompensationStarted() if named_in(self.plan) is not None:
                self.undoing.began(event, self._expected(at))
            case ev.CompensationStarted():
                flow_rules.undoing(self, event)
            case ev.OrchestrationClosed(status):
                self._ended(status, at)
            case _ if not isinstance(event, ev.Woken):
                late_by = notice_rules.read(event, self.at or at, self.notices, self.status is not None, self.wrong)
                self.late_by = max(self.late_by, late_by)

    def _started(self, event: ev.OrchestrationStarted, at: datetime) -> None:
        if self.tickets:
            self.wrong("one start", "started twice")
        self.run, self.name, self.plan = event.run, event.correlation_id, event.plan
        self.deadline = NEVER if event.plan.timeout is None else at + event.plan.timeout
        if (event.deadline or NEVER) != self.deadline:
            self.wrong("deadlines are honest", f"deadline {event.deadline}, expected {self.deadline}")
        self.waits.began(event.plan)
        self.tickets, self.gates = [Seen() for _ in event.plan.tasks], [None for _ in event.plan.gates]
        targets = (event.plan.notify.webhook, event.plan.notify.queue)
        self.notices = [SeenNotice() for target in (*targets, event.plan.parent) if target]

    def grown_result(self, owner: int) -> object:
        """What a map or a loop gave."""
        found = self.loops.result if owner in self.loops.by_owner else self.maps.results
        return found(owner, self.tickets)

    def _spec(self, position: int) -> NamedTask | None:
        return self.maps.spec_of(position) or self.loops.spec_of(position) or task_rules.spec_of(self.plan, position)

    def _dispatched(self, position: int, attempt: int, at: datetime) -> None:
        ticket, task = self.tickets[position], self.plan.tasks[position]
        if self.asked:
            self.wrong("nothing before a human agrees", f"ticket {position} dispatched")
        if attempt == 1:
            if ticket.phase == "backoff" and self.loops.is_round(position):
                if ticket.retry_at is not None and at < ticket.retry_at:
                    self.wrong("deadlines are honest", f"round {position} starts before {ticket.retry_at}")
            elif not self.may_start(position):
                self.wrong("a closed ticket never moves", f"ticket {position} dispatched while {ticket.phase}")
            if task.after is not None and self.gates[task.after] is not True:
                self.wrong("no dispatch before its gate", f"ticket {position}, gate {task.after}")
            self.maps.dispatched(position, self.tickets)
            self.undoing.start([position])
        else:
            if ticket.phase != "backoff" or attempt != ticket.attempt + 1:
                self.wrong("explained attempts", f"ticket {position} attempt {attempt} while {ticket.phase}")
            elif ticket.retry_at is not None:
                self.pauses.timed_out(f"ticket {position} is tried again")
                if at < ticket.retry_at:
                    self.wrong("deadlines are honest", f"ticket {position} tried again before {ticket.retry_at}")
                self.late_by = max(self.late_by, at - ticket.retry_at)
        if ticket.used(attempt) > task.max_attempts and attempt - 1 not in ticket.withdrawn:
            self.wrong("explained attempts", f"ticket {position} attempt {attempt} of {task.max_attempts}")
        ticket.phase, ticket.attempt, ticket.confirmed_at = "owed", attempt, None
        ticket.released_at = ticket.released_at or self.at  # on the clock: what had closed by then is its data

    def _confirmed(self, position: int, attempt: int, at: datetime) -> None:
        ticket = self.tickets[position]
        if ticket.phase != "owed" or ticket.attempt != attempt:
            self.wrong("a closed ticket never moves", f"ticket {position} confirmed while {ticket.phase}")
        if not self._knows.confirmed(f"{ticket_id(self.run, position)}.{attempt}"):
            self.wrong("confirmed means confirmed", f"ticket {position} attempt {attempt}: no broker confirmed it")
        ticket.phase, ticket.confirmed_at, ticket.taken = "running", at, True

    def _answered(self, position: int, attempt: int, ok: bool, definitivo: bool, dados: bytes, digest: int) -> None:
        """An answer that takes effect: current attempt, first for it, and really given."""
        ticket = self.tickets[position]
        if attempt in ticket.answered:
            self.wrong("results count once", f"ticket {position} attempt {attempt} answered twice")
        current = ticket.phase in ("owed", "running") and attempt == ticket.attempt
        if not current and not withdrawal_rules.counts(self, position, attempt, ok=ok):
            self.wrong("a closed ticket never moves", f"ticket {position} attempt {attempt} while {ticket.phase}")
        ticket.answered.add(attempt)
        self.answers += self.plan.tasks[position].kind is not Kind.FILHA  # those come by no queue
        self._given(position, attempt, ok, definitivo, dados, digest)

    def _conflicting(self, event: ev.ConflictingAnswerKept) -> None:
        ticket, content = self.tickets[event.ticket], content_of(event.digest)
        if content in ticket.said.get(event.attempt, {content}):
            self.wrong("results count once", f"ticket {event.ticket}: the first answer, or the same again, conflicts")
        ticket.conflicts += 1
        self.conflicting += 1
        self._given(event.ticket, event.attempt, event.ok, event.definitivo, event.dados, event.digest)

    def _given(self, position: int, attempt: int, ok: bool, definitivo: bool, dados: bytes, digest: int) -> None:
        self.tickets[position].said.setdefault(attempt, set()).add(content_of(digest))
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
        self.pauses.timed_out(f"ticket {position} timed out")
        due = task_rules.due_of(self.plan.tasks[position], ticket)
        if due is None or at < due:
            self.wrong("deadlines are honest", f"ticket {position} timed out at {at}, before {due}")
        self.late_by = max(self.late_by, at - (due or at))
        if self._knows.honest_timeouts() and not 0 < self.undoes <= position:  # those have little time
            self.wrong("nothing is lost", f"ticket {position} attempt {attempt} timed out and nobody was to blame")

    def _attempt_failed(self, event: ev.AttemptFailed, at: datetime) -> None:
        ticket, task = self.tickets[event.ticket], self.plan.tasks[event.ticket]
        if event.cause is Cause.TIMEOUT:
            self._timed_out(event.ticket, event.attempt, at)
        else:
            self._answered(event.ticket, event.attempt, False, False, event.dados, event.digest)
        if ticket.used(event.attempt) >= task.max_attempts or (
            event.cause is Cause.TIMEOUT and task.kind is Kind.FILHA
        ):
            self.wrong("explained attempts", f"ticket {event.ticket}: no attempt is left after {event.attempt}")
        retry_at = self.pauses.own_instant(event.retry_at)
        if retry_at < at:
            self.wrong("deadlines are honest", f"ticket {event.ticket}: retry in the past")
        if task_rules.is_final(self._spec(event.ticket), task_rules.codes(event)):
            self.wrong("explained attempts", f"ticket {event.ticket}: its errors are not to be tried again")
        if retry_at > at + task_rules.longest_wait(self.plan, self._spec(event.ticket)):
            self.wrong("deadlines are honest", f"ticket {event.ticket}: retry beyond the cap")
        ticket.phase, ticket.retry_at, ticket.dados = "backoff", retry_at, event.dados

    def _failed(self, event: ev.TicketFailed, at: datetime) -> None:
        task = self.plan.tasks[event.ticket]
        if event.status is Status.TIMEOUT:
            self._timed_out(event.ticket, event.attempt, at)
        else:
            self._answered(event.ticket, event.attempt, False, event.definitivo, event.dados, event.digest)
        self.exhausted += requeue_rules.is_exhausted(task, self.tickets[event.ticket], event)
        final = event.definitivo or task_rules.is_final(self._spec(event.ticket), task_rules.codes(event))
        if event.status is Status.TIMEOUT:
            self.children.closed(self.plan, event.ticket, self.tickets[event.ticket])
            final = final or task.kind is Kind.FILHA  # its time is for all attempts
        if not final and self.tickets[event.ticket].used(event.attempt) < task.max_attempts:
            self.wrong(
                "explained attempts", f"ticket {event.ticket} given up at {event.attempt} of {task.max_attempts}"
            )
        self.close(event.ticket, event.status, event.dados)

    def _late(self, event: ev.LateAnswerKept) -> None:
        ticket = self.tickets[event.ticket]
        if event.attempt in ticket.answered:
            self.wrong("results count once", f"ticket {event.ticket} attempt {event.attempt} answered twice")
        if event.attempt == ticket.attempt and ticket.phase in ("owed", "running"):
            self.wrong("results count once", f"ticket {event.ticket}: an answer in time was called late")
        if withdrawal_rules.counts(self, event.ticket, event.attempt, ok=event.ok):
            self.wrong(withdrawal_rules.RULE, f"ticket {event.ticket}: withdrawn, done well and called late")
        ticket.answered.add(event.attempt)
        self.late += 1
        self._given(event.ticket, event.attempt, event.ok, event.definitivo, event.dados, event.digest)

    def may_start(self, position: int) -> bool:
        return self._expressions.may_start(self.plan, position, self.tickets[position])

    def close(self, position: int, status: Status, dados: bytes = b"null") -> None:
        ticket = self.tickets[position]
        if ticket.phase == "closed":
            self.wrong("a closed ticket never moves", f"ticket {position} closed again as {status.value}")
        ticket.phase, ticket.status, ticket.dados, ticket.closed_at = "closed", status, dados, self.at

    def _closed_without(self, position: int, status: Status, at: datetime) -> None:
        ticket, task = self.tickets[position], self.plan.tasks[position]
        out_of_time = self._woken and at >= self.deadline
        grown = self.maps.may_cancel(position, self.tickets) or self.loops.may_cancel(position, self.tickets)
        spare = grown or task_rules.is_spare(self.plan, position, self.gates)
        doomed = task.after is not None and self.gates[task.after] is False
        if self._expressions.may_close(ticket, status):
            pass
        elif status is Status.TIMEOUT:
            if not out_of_time or ticket.phase == "waiting" or (ticket.phase == "asked" and not ticket.attempt):
                self.wrong("deadlines are honest", f"ticket {position} closed as timeout before {self.deadline}")
            if self._knows.honest_timeouts():
                self.wrong("nothing is lost", f"ticket {position} ran out of time and nobody was to blame")
        else:
            failed = any(g is False and gate.essential for g, gate in zip(self.gates, self.plan.gates, strict=True))
            if status is Status.IGNORADA:
                if not task_rules.may_be_skipped(self.plan, position, self.tickets):
                    self.wrong("skipped for a reason", f"ticket {position} has a dependency that was not skipped")
            elif status is not Status.CANCELADA or not (self.cancelled or out_of_time or spare or doomed or failed):
                self.wrong("endings are explained", f"ticket {position} closed as {status.value} for no reason")
        if ticket.phase == "closed":
            self.wrong("a closed ticket never moves", f"ticket {position} closed again as {status.value}")
        self.children.closed(self.plan, position, ticket)
        ticket.phase, ticket.status, ticket.closed_at, ticket.spare = "closed", status, self.at, spare and not doomed

    # -- gates, endings, notices -------------------------------------------------------------------------------------

    def _verdict(self, number: int) -> bool | None:
        gate = self.plan.gates[number]
        if len(gate.inputs) and gate.inputs[-1] >= len(self.tickets):
            return None  # a map that is growing
        return self.maps.verdict(number, self.tickets, task_rules.verdict(self.plan, gate, self.tickets))

    def _ended(self, status: Status, at: datetime) -> None:
        if self.status is not None:
            self.wrong("one ending", f"{status.value} after {self.status.value}")
        still_open = [n for n, ticket in enumerate(self.tickets) if ticket.phase != "closed"]
        if still_open:
            self.wrong("one ending", f"ended with open tickets {still_open}")
        expected = self.undoing.ending or self._expected(at)
        if self.undoing.fails(expected) and self.undoing.expected():
            self.wrong("undone once", f"ended although {sorted(self.undoing.expected())} had to be undone")
        if status is not expected:
            self.wrong("endings are explained", f"ended as {status.value}, expected {expected.value}")
        self.status, self.asked = status, False

    def _expected(self, at: datetime) -> Status:
        """How the run has to end now."""
        if isinstance(self.first, ev.CancelRequested | ev.ApprovalRefused) and not is_of_a_task(self.first):
            return Status.CANCELADA
        if self._woken and at >= self.deadline:
            self.late_by = max(self.late_by, at - self.deadline)
            return Status.TIMEOUT
        if flow_in(self.plan) is not None:
            return flow_rules.ended(self)
        if named_in(self.plan) is not None:
            planned = self.tickets[: self.maps.planned or None]
            ended = task_rules.ending(self.plan, planned, self.gates, self.waits.refused)
            return self._expressions.ending(self.plan, ended)
        if any(g is False and gate.essential for g, gate in zip(self.gates, self.plan.gates, strict=True)):
            return Status.ERRO
        partial = any(ticket.status in (Status.ERRO, Status.TIMEOUT) for ticket in self.tickets)
        return Status.PARCIAL if partial else Status.CONCLUIDA

    # -- after every record ------------------------------------------------------------------------------------------

    def _quiet(self, at: datetime) -> None:
        """Whatever the new facts cause was caused in the same record."""
        if self.status is not None:
            if any(notice.phase == "quiet" for notice in self.notices):
                self.wrong("one notice per end", "ended without a notice")
            return
        for number, gate in enumerate(self.plan.gates):
            if number < self.undoing.gates:
                continue
            if self.gates[number] is None and self._verdict(number) is not None:
                self.wrong("gates count right", f"gate {number} is decided and stays open")
            if self.gates[number] is True and not self.undoing.released(gate.releases):
                self.wrong("gates count right", f"gate {number} passed and released nothing")
        self.maps.quiet(self.tickets, self.gates, at, self._woken)
        self.loops.quiet(self.tickets, at, self._woken)
        self._expressions.quiet(self.tickets)
        self.waits.quiet(at, self._woken)
        self.undoing.quiet()
        if all(ticket.phase == "closed" for ticket in self.tickets) and not self._expressions.waits_for_output:
            self.wrong("one ending", "every ticket is closed and it goes on")
        if not self._woken or self.pauses.paused:
            return
        if at >= self.deadline:
            self.wrong("deadlines are honest", "woken after its deadline and not ended")
        for number, ticket in enumerate(self.tickets):
            due = task_rules.next_of(self.plan.tasks[number], ticket)
            if due is not None and due <= at:
                self.wrong("deadlines are honest", f"ticket {number} was due at {due} and was not woken")
