"""Worlds for the pure core alone: one orchestration, random commands, virtual time. Fast, so there can be many.

Commands come in any order, twice, late, for tickets and attempts that do not exist; timers fire early and late; now and
then the state is thrown away and folded from the journal, which passes through its JSON form every time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from typing import Any

import orjson

from oraculo.core.children import child_id
from oraculo.core.commands import (
    Approve,
    Cancel,
    Command,
    ConfirmCancel,
    ConfirmDispatch,
    Grow,
    RecordDelivery,
    RecordResult,
    RequeueTicket,
    Resolve,
    Start,
    Wake,
)
from oraculo.core.digests import content_of, digest_of
from oraculo.core.effects import Begin, EndChildren, Publish, owed_effects
from oraculo.core.maps import growing_in
from oraculo.core.replay import rebuild, replay_step
from oraculo.core.results import CONFLICTS_MAX
from oraculo.core.state import Orchestration
from oraculo.core.step import step
from oraculo.core.ticket_id import parse_ticket_id, ticket_id
from oraculo.core.vocabulary import Kind, Status, Verdict
from oraculo.ports.journal import Recorded
from oraculo.runtime.evaluation import evaluate_inline
from oraculo.simulation import core_people as people
from oraculo.simulation import grown_results, plans, requeue_rules, withdrawal_rules
from oraculo.simulation.child_rules import RULE
from oraculo.simulation.facts import Answer
from oraculo.simulation.invariants import CheckedJournal
from oraculo.simulation.loop import EPOCH
from oraculo.simulation.pauser import Pauser
from oraculo.simulation.task_rules import unique_name
from oraculo.simulation.trace import Report, Trace
from oraculo.simulation.wait_rules import HELD
from oraculo.wire import records

MAX_STEPS = 2000


@dataclass(slots=True)
class _Sent:
    command: RecordResult
    answer: Answer


class CoreWorld:
    """`what`: core, flow, tasks, maps, loops, children, waits or undo, the plans that it is about."""

    def __init__(self, seed: int, *, masked: bool, what: str = "core", keep: bool = False) -> None:
        self.rng = Random(f"{what} {seed} {masked}")
        self._operator = Random(f"operator {what} {seed} {masked}")  # of his own: other worlds stay as they were
        self._lost = people.losses(f"{what} {seed} {masked}")
        self._chosen = people.allocations(f"{what} {seed} {masked}")
        self.what, self.masked = what, masked
        self.trace = Trace(keep)
        self.now = datetime.fromtimestamp(EPOCH, UTC)
        self.journal = CheckedJournal(self, self.trace.violate)
        self.records: list[Recorded] = []
        self.answers: dict[int, Answer] = {}
        self.given: list[_Sent] = []
        self.sent: list[tuple[int, int]] = []  # every (position, attempt) that was ever to be sent
        self._pauser = Pauser(self, Random(f"pauser {what} {seed} {masked}"))
        self.state: Orchestration
        self.replayed: Orchestration | None = None

    # -- what the journal asks ---------------------------------------------------------------------------------------

    def answer(self, digest: int) -> Answer | None:
        return self.answers.get(digest)

    def confirmed(self, message_id: str) -> bool:
        return True

    def honest_timeouts(self) -> bool:
        return not self.masked

    # -- one command -------------------------------------------------------------------------------------------------

    def do(self, command: Command, expected: Verdict | None = None) -> None:
        before = self.state if self.records else None
        done = step(before, command, self.now)
        self.state = done.state
        self.trace.tally["steps"] += 1
        self.trace.tally[f"verdict {done.verdict.value}"] += 1
        self.trace.log(f"{type(command).__name__} → {done.verdict.value}: {_names(done.events)}")
        if expected is not None and done.verdict is not expected:
            self.trace.violate("every answer has its verdict", f"{done.verdict.value}, expected {expected.value}")
        if not done.events:
            if done.effects:
                self.trace.violate("no ghosts", "effects without events")
            return
        body = records.encode(done.events)
        self.trace.mix(body)
        recorded = Recorded(self.state.run, done.first, self.now, records.decode(body))
        self.records.append(recorded)
        self.journal.read(recorded)
        self._pauser.check_sent(done.events, done.effects)
        for effect in done.effects:
            if isinstance(effect, Begin):
                self.sent += effect.tickets
                self.journal.children.began(effect.tickets, self.journal.tickets, self._child_id)
            if isinstance(effect, Publish):
                self.sent += effect.tickets
                for position, attempt in effect.tickets:
                    seen = self.journal.tickets[position]
                    child = self.state.plan.tasks[position].kind is Kind.FILHA
                    if seen.attempt != attempt or seen.phase != "owed" or child:
                        self.trace.violate("no ghosts", f"message for ticket {position} attempt {attempt}")
        self._replay(recorded)

    def _replay(self, recorded: Recorded) -> None:
        again = replay_step(self.replayed, recorded)
        self.replayed = again.state
        if again.events != recorded.events:
            self.trace.violate("replay gives the same", f"{_names(again.events)}, journal {_names(recorded.events)}")
        if again.state != self.state:
            self.trace.violate("fold(journal) == state", f"after event {self.state.version}")
        if again.state.wake_at() != self.state.wake_at() or again.state.owes != self.state.owes:
            self.trace.violate("fold(journal) == state", "wake_at or owes differ")
        owed = {p for p, seen in enumerate(self.journal.tickets) if seen.phase == "owed"}
        if self.journal.children.left != self.state.to_end:
            self.trace.violate(RULE, f"{self.state.to_end} have to end, expected {self.journal.children.left}")
        if owed != self.state.owed:
            self.trace.violate("no orphans", f"owed {sorted(self.state.owed)}, expected {sorted(owed)}")

    # -- the story ---------------------------------------------------------------------------------------------------

    def run(self) -> None:
        rng = self.rng
        self.begin()
        actions = [self._confirm, self._answer, self._wake, self._repeat, self._strange, self._restart, self._notice]
        weights = [5, 6, 4 if self.masked else 1, 2, 1, 1, 1]
        if self.what in ("tasks", "maps", "loops", "children", "waits", "undo"):
            actions, weights = [*actions, self._evaluate], [*weights, 6]
        if self.what in ("waits", "undo"):
            told = [partial(people.signal, self), partial(people.decide_task, self)]
            actions, weights = [*actions, *told], [*weights, 3, 2]
        if self.what == "children":
            actions, weights = [*actions, partial(people.end_children, self)], [*weights, 1]
        for _ in range(rng.randint(10, 60)):
            if self.trace.violations:
                return
            rng.choices(actions, weights)[0]()
            if self._operator.random() < 0.2:
                self._requeue()
            people.lose_worker(self, self._lost)
            people.choose_worker(self, self._chosen)
            self._pauser.act()
            if rng.random() < 0.01:
                self.do(Cancel("porque sim", undo=self.what == "undo" and rng.random() < 0.7))
            if self.what == "flow" and rng.random() < 0.1:
                self._decide()
        self._drain()

    def begin(self) -> None:
        plan = plans.BY_WORLD[self.what](self.rng, self.masked)
        run = int(EPOCH * 1000) << 20 | self.rng.randrange(1 << 19)
        self.do(Start(run, "core", plan, "f"), Verdict.APPLIED)

    def _child_id(self, position: int, attempt: int) -> str:
        return child_id(self.state, position, attempt)

    def _decide(self) -> None:
        """A human, who may not even be asked."""
        asked = self.journal.asked
        approve = Approve(self.rng.random() < 0.8, "ana", "visto")
        self.do(approve, Verdict.APPLIED if asked else Verdict.IDLE)

    def _requeue(self) -> None:
        """An operator gives tickets that failed another attempt, and sometimes others."""
        seen = self.journal.tickets
        failed = [p for p, one in enumerate(seen) if one.status in (Status.ERRO, Status.TIMEOUT)]
        some = failed if failed and self._operator.random() < 0.9 else list(range(len(seen)))
        position = self._operator.choice(some)
        attempt = max(0, seen[position].attempt - (self._operator.random() < 0.1))
        self.do(RequeueTicket(position, attempt), requeue_rules.expected(self.journal, position, attempt))

    def _evaluate(self) -> None:
        """All that is asked, or some of it; and the same again, which is nothing new."""
        for found in self._in_chunks(evaluate_inline(self.state)):
            if isinstance(found, Resolve) and self.rng.random() < 0.3:
                found.resolutions = found.resolutions[: self.rng.randint(0, len(found.resolutions))]
            if isinstance(found, Grow):  # unless what came before it has ended its map, or a map has to grow first
                looped = self.state.plan.tasks[found.owner].kind is Kind.REPETE
                some = self.journal.tickets[found.owner].phase in (("asked",) if looped else ("asked", "grown"))
                some = some and not (looped and growing_in(self.state) is not None)
            else:
                some = bool(found.resolutions) or found.output is not None
            again = deepcopy(found)
            self.do(found, Verdict.APPLIED if some else Verdict.IDLE)
            if self.rng.random() < 0.3:
                self.do(again, Verdict.IDLE)

    def _in_chunks(self, commands: Sequence[Resolve | Grow]) -> Iterator[Resolve | Grow]:
        """Some maps come in two parts."""
        for one in commands:
            if isinstance(one, Grow) and one.count > 1 and self.rng.random() < 0.5:
                cut = self.rng.randint(1, one.count - 1)
                yield replace(one, count=cut, rows=one.rows[:cut], idle=[])
                yield replace(one, offset=cut, count=one.count - cut, rows=one.rows[cut:], template=None, idle=one.idle)
            else:
                yield one

    def _advance(self, most: float) -> None:
        self.now += timedelta(seconds=round(self.rng.uniform(0, most), 6))
        self.trace.now = self.now.timestamp() - EPOCH

    def _confirm(self) -> None:
        tickets = list(self.rng.sample(self.sent, min(len(self.sent), self.rng.randint(1, 4))))
        if tickets:
            self.do(ConfirmDispatch(tickets))
        self._advance(1.0)

    def _answer(self) -> None:
        """Of any attempt that was ever made, mostly of a current one."""
        rng = self.rng
        current = [(p, t.attempt) for p, t in enumerate(self.journal.tickets) if t.phase in ("owed", "running")]
        if not self.sent:
            return
        position, attempt = rng.choice(current if current and rng.random() < 0.8 else self.sent)
        ok = rng.random() < 0.65
        definitivo = not ok and rng.random() < 0.25
        value: Any = {"v": len(self.given)} if ok else None
        erros: list[dict[str, object]] = [] if ok else [{"codigo": "x", "mensagem": "y", "definitivo": definitivo}]
        echoed = not (unique_name(self.state.plan, position) and rng.random() < 0.15 and not self.state.undoes)
        dados = orjson.dumps(value)
        digest = digest_of(b"%d" % len(self.given), ok, dados, erros)
        answer = Answer(ticket_id(self.state.run, position), attempt, ok, definitivo, value, echoed)
        command = RecordResult(ok, dados, erros, definitivo, digest=digest)
        if self.state.plan.tasks[position].kind is Kind.FILHA:
            command.position, command.attempt, command.definitivo = position, attempt, definitivo
            command.child = rng.choice((Status.CONCLUIDA, Status.CONCLUIDA, Status.PARCIAL)) if ok else None
        elif echoed:
            command.ticket, command.attempt = answer.ticket, attempt
        else:
            task = self.state.plan.tasks[position]
            command.kind, command.name = task.kind, task.name
        self.answers[digest] = answer
        self.given.append(_Sent(command, answer))
        self.do(command, self._expected(position, attempt, digest, ok=ok) if echoed else None)
        self._advance(1.0)

    def _expected(self, position: int, attempt: int, digest: int, *, ok: bool) -> Verdict:
        seen = self.journal.tickets[position]
        if attempt in seen.answered:
            if content_of(digest) in seen.said[attempt]:
                return Verdict.DUPLICATE
            return Verdict.CONFLICTING if seen.conflicts < CONFLICTS_MAX else Verdict.TOO_MANY_ANSWERS
        if withdrawal_rules.counts(self.journal, position, attempt, ok=ok):
            return Verdict.APPLIED
        if attempt != seen.attempt or seen.phase not in ("owed", "running"):
            return Verdict.IDLE if self.state.plan.tasks[position].kind is Kind.FILHA else Verdict.LATE
        return Verdict.APPLIED

    def _repeat(self) -> None:
        """The same bytes again."""
        if self.given:
            sent = self.rng.choice(self.given)
            parsed = parse_ticket_id(sent.answer.ticket)
            assert parsed is not None
            expected = self._expected(parsed[1], sent.answer.attempt, sent.command.digest, ok=sent.command.ok)
            self.do(sent.command, expected if sent.answer.echoed else None)

    def _wake(self) -> None:
        wake_at = self.state.wake_at()
        choice = self.rng.random()
        early = timedelta(milliseconds=self.rng.choice((1, 20, 300)))
        if wake_at is not None and (self.masked or wake_at - self.now < timedelta(days=1)) and choice < 0.8:
            self.now = max(self.now, wake_at if choice < 0.5 else wake_at - early)
        else:  # in an unmasked world the deadlines are never reached
            self._advance(3.0)
        self.trace.now = self.now.timestamp() - EPOCH
        self.do(Wake())

    def _strange(self) -> None:
        """Send answers that belong to no ticket."""
        rng = self.rng
        position = rng.randrange(len(self.state.tickets))
        command = RecordResult(True, b"1", [], ticket=ticket_id(self.state.run, position), digest=7)
        expected = Verdict.WRONG_ATTEMPT
        choice = rng.randrange(4)
        kind = self.state.plan.tasks[position].kind
        if choice < 1 and (kind.grows or kind is Kind.FILHA):
            expected = Verdict.UNKNOWN_TICKET
        elif choice == 0:
            command.attempt = self.journal.tickets[position].attempt + rng.randint(1, 5)
        elif choice == 1:
            command.ticket, expected = ticket_id(self.state.run + 1, position), Verdict.UNKNOWN_TICKET
        elif choice == 2:
            command.ticket, expected = "garbage", Verdict.UNKNOWN_TICKET
        else:
            self.do(Start(self.state.run, "core", self.state.plan, "f"), Verdict.DUPLICATE)
            return
        self.do(command, expected)

    def _restart(self) -> None:
        self.trace.tally["restarts"] += 1
        folded = rebuild(self.records)
        if folded != self.state:
            self.trace.violate("fold(journal) == state", "after a restart")
        self.state = folded
        found = owed_effects(folded)
        owed = sorted(pair for effect in found if isinstance(effect, Publish | Begin) for pair in effect.tickets)
        ends = [pair for effect in found if isinstance(effect, EndChildren) for pair in effect.tickets]
        if dict(ends) != self.journal.children.left:
            self.trace.violate(RULE, f"recovery ends {ends}, expected {self.journal.children.left}")
        expected = self._pauser.to_be_sent()
        if owed != expected:
            self.trace.violate("no orphans", f"recovery owes {owed}, expected {expected}")

    def _notice(self) -> None:
        if self.state.notices:
            number = self.rng.randrange(len(self.state.notices))
            attempt = max(1, self.state.notices[number].attempt - self.rng.randint(0, 1))
            later = timedelta(seconds=self.rng.randint(0, 40)) if self.rng.random() < 0.3 else None
            report = RecordDelivery(number, attempt, self.rng.random() < 0.4, self.rng.random() < 0.2, "d", later)
            self.do(report)

    def _drain(self) -> None:
        """The faults are over: everything must end by itself."""
        for _ in range(MAX_STEPS):
            if self.trace.violations:
                return
            state = self.state
            if self._pauser.ends_pause():
                continue
            if self.journal.asked:
                self._decide()
                continue
            if state.asks_anything:
                self._evaluate()
                continue
            if state.to_end:
                self.do(ConfirmCancel(list(state.to_end.items())), Verdict.APPLIED)
                continue
            if state.owed:
                self.do(ConfirmDispatch([(p, state.tickets[p].attempt) for p in sorted(state.owed)]))
                continue
            owed = [n for n, notice in enumerate(self.journal.notices) if notice.phase == "owed"]
            if owed:
                self.do(RecordDelivery(owed[0], self.journal.notices[owed[0]].attempt, True, False, "ok"))
                continue
            running = [p for p, t in enumerate(self.journal.tickets) if t.phase == "running"]
            if running and not self.masked:
                self._finish(running[0])
                continue
            held = [p for p, t in enumerate(self.journal.tickets) if t.phase == HELD and t.retry_at is None]
            if held:
                people.end_wait(self, held[0])
                continue
            wake_at = state.wake_at()
            if wake_at is None:
                break
            self.now = max(self.now, wake_at)
            self.trace.now = self.now.timestamp() - EPOCH
            self.do(Wake(), Verdict.APPLIED)
        if self.state.closed_at is None or self.state.owes or self.state.wake_at() is not None or self.state.open:
            self.trace.violate("no orphans", f"still {self.state.status.value}, owes {self.state.owes}")
        grown_results.check(self.state, self.journal, self.trace.violate)
        self._restart()

    def _finish(self, position: int) -> None:
        attempt = self.journal.tickets[position].attempt
        value = 1000 + len(self.given)
        dados = b"%d" % value
        digest = digest_of(dados, True, dados, [])
        answer = Answer(ticket_id(self.state.run, position), attempt, True, False, value)
        command = RecordResult(True, dados, [], False, answer.ticket, attempt, digest=digest)
        if self.state.plan.tasks[position].kind is Kind.FILHA:
            command.ticket, command.position, command.child = None, position, Status.CONCLUIDA
        self.answers[digest] = answer
        self.given.append(_Sent(command, answer))
        self.do(command, Verdict.APPLIED)


def _names(events: list[Any]) -> str:
    return " ".join(type(event).__name__ for event in events) or "nothing"


def run_core(seed: int, *, masked: bool, what: str = "core", keep: bool = False) -> Report:
    world = CoreWorld(seed, masked=masked, what=what, keep=keep)
    world.trace.tally["worlds"] += 1
    world.run()
    return world.trace.report(f"{what}-{'masked' if masked else 'unmasked'}", seed)
