"""Worlds for the pure core alone: one orchestration, random commands, virtual time. Fast, so there can be many.

Commands come in any order, twice, late, for tickets and attempts that do not exist; timers fire early and late; now and
then the state is thrown away and folded from the journal, which passes through its JSON form every time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import orjson

from oraculo.core.commands import Approve, Cancel, Command, ConfirmDispatch, RecordDelivery, RecordResult, Start, Wake
from oraculo.core.effects import Publish, owed_effects
from oraculo.core.state import Orchestration, fold
from oraculo.core.step import step
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import Verdict
from oraculo.ports.store import Recorded
from oraculo.simulation import plans
from oraculo.simulation.facts import Answer
from oraculo.simulation.invariants import Journal
from oraculo.simulation.loop import EPOCH
from oraculo.simulation.trace import Report, Trace
from oraculo.wire import records

MOST_STEPS = 2000


@dataclass(slots=True)
class _Sent:
    command: RecordResult
    answer: Answer


class CoreWorld:
    def __init__(self, seed: int, *, masked: bool, flow: bool = False, keep: bool = False) -> None:
        self.rng = Random(f"{'flow' if flow else 'core'} {seed} {masked}")
        self.flow = flow
        self.trace = Trace(keep)
        self.masked = masked
        self.now = datetime.fromtimestamp(EPOCH, UTC)
        self.journal = Journal(self, self.trace.violate)
        self.records: list[Recorded] = []
        self.answers: dict[int, Answer] = {}
        self.given: list[_Sent] = []
        self.sent: list[tuple[int, int]] = []  # every (position, attempt) that was ever dispatched
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
        for effect in done.effects:
            if isinstance(effect, Publish):
                self.sent += effect.tickets
                for position, attempt in effect.tickets:
                    seen = self.journal.tickets[position]
                    if seen.attempt != attempt or seen.phase != "owed":
                        self.trace.violate("no ghosts", f"message for ticket {position} attempt {attempt}")
        self._replay(recorded)

    def _replay(self, recorded: Recorded) -> None:
        again = step(self.replayed, records.cause_of(recorded.run, recorded.events), recorded.at)
        self.replayed = again.state
        if again.events != recorded.events:
            self.trace.violate("replay gives the same", f"{_names(again.events)}, journal {_names(recorded.events)}")
        if again.state != self.state:
            self.trace.violate("fold(journal) == state", f"after event {self.state.version}")
        if again.state.wake_at() != self.state.wake_at() or again.state.owes != self.state.owes:
            self.trace.violate("fold(journal) == state", "wake_at or owes differ")
        owed = {p for p, seen in enumerate(self.journal.tickets) if seen.phase == "owed"}
        if owed != self.state.owed:
            self.trace.violate("no orphans", f"owed {sorted(self.state.owed)}, expected {sorted(owed)}")

    # -- the story ---------------------------------------------------------------------------------------------------

    def run(self) -> None:
        rng = self.rng
        plan = plans.flow(rng, self.masked) if self.flow else plans.any_plan(rng, self.masked)
        run = int(EPOCH * 1000) << 20 | rng.randrange(1 << 19)
        self.do(Start(run, "core", plan, "f"), Verdict.APPLIED)
        actions = [self._confirm, self._answer, self._wake, self._repeat, self._strange, self._restart, self._notice]
        weights = [5, 6, 4 if self.masked else 1, 2, 1, 1, 1]
        for _ in range(rng.randint(10, 60)):
            if self.trace.violations:
                return
            rng.choices(actions, weights)[0]()
            if rng.random() < 0.01:
                self.do(Cancel("porque sim"))
            if self.flow and rng.random() < 0.1:
                self._decide()
        self._drain()

    def _decide(self) -> None:
        """A human, who may not even be asked."""
        asked = self.journal.asked
        approve = Approve(self.rng.random() < 0.8, "ana", "visto")
        self.do(approve, Verdict.APPLIED if asked else Verdict.IDLE)

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
        echoed = not (plans.unique_name(self.state.plan, position) and rng.random() < 0.15 and not self.state.undoes)
        digest = 1000 + len(self.given)
        answer = Answer(ticket_id(self.state.run, position), attempt, ok, definitivo, value, echoed)
        command = RecordResult(ok, orjson.dumps(value), erros, definitivo, digest=digest)
        if echoed:
            command.ticket, command.attempt = answer.ticket, attempt
        else:
            task = self.state.plan.tasks[position]
            command.kind, command.name = task.kind, task.name
        self.answers[digest] = answer
        self.given.append(_Sent(command, answer))
        self.do(command, self._expected(position, attempt) if echoed else None)
        self._advance(1.0)

    def _expected(self, position: int, attempt: int) -> Verdict:
        seen = self.journal.tickets[position]
        if attempt in seen.answered:
            return Verdict.DUPLICATE
        if attempt != seen.attempt or seen.phase not in ("owed", "running"):
            return Verdict.LATE
        return Verdict.APPLIED

    def _repeat(self) -> None:
        """The same bytes again."""
        if self.given:
            sent = self.rng.choice(self.given)
            self.do(sent.command, Verdict.DUPLICATE if sent.answer.echoed else None)

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
        """What belongs to nobody."""
        rng = self.rng
        position = rng.randrange(len(self.state.tickets))
        command = RecordResult(True, b"1", [], ticket=ticket_id(self.state.run, position), digest=7)
        expected = Verdict.WRONG_ATTEMPT
        choice = rng.randrange(4)
        if choice == 0:
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
        folded = fold((recorded.at, recorded.events) for recorded in self.records)
        if folded != self.state:
            self.trace.violate("fold(journal) == state", "after a restart")
        self.state = folded
        owed = [pair for effect in owed_effects(folded) if isinstance(effect, Publish) for pair in effect.tickets]
        expected = [(p, t.attempt) for p, t in enumerate(self.journal.tickets) if t.phase == "owed"]
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
        for _ in range(MOST_STEPS):
            if self.trace.violations:
                return
            state = self.state
            if self.journal.asked:
                self._decide()
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
            wake_at = state.wake_at()
            if wake_at is None:
                break
            self.now = max(self.now, wake_at)
            self.trace.now = self.now.timestamp() - EPOCH
            self.do(Wake(), Verdict.APPLIED)
        if self.state.closed_at is None or self.state.owes or self.state.wake_at() is not None or self.state.open:
            self.trace.violate("no orphans", f"still {self.state.status.value}, owes {self.state.owes}")
        self._restart()

    def _finish(self, position: int) -> None:
        attempt = self.journal.tickets[position].attempt
        digest = 1000 + len(self.given)
        answer = Answer(ticket_id(self.state.run, position), attempt, True, False, digest)
        command = RecordResult(True, b"%d" % digest, [], False, answer.ticket, attempt, digest=digest)
        self.answers[digest] = answer
        self.given.append(_Sent(command, answer))
        self.do(command, Verdict.APPLIED)


def _names(events: list[Any]) -> str:
    return " ".join(type(event).__name__ for event in events) or "nothing"


def run_core(seed: int, *, masked: bool, flow: bool = False, keep: bool = False) -> Report:
    world = CoreWorld(seed, masked=masked, flow=flow, keep=keep)
    world.trace.tally["worlds"] += 1
    world.run()
    return world.trace.report(f"{'flow' if flow else 'core'}-{'masked' if masked else 'unmasked'}", seed)
