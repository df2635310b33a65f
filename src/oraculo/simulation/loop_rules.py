"""The rules of loops, said again without the core: one round at a time, each behind a false condition and a pause,
never more of them than the plan allows, and how a loop ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import orjson

from oraculo.core import events as ev
from oraculo.core.named_tasks import LoopSpec, NamedTask, named_in
from oraculo.core.plan import Plan
from oraculo.core.vocabulary import Status
from oraculo.errors import ExpressionError
from oraculo.expressions import parse_template
from oraculo.simulation.expression_rules import ASKED, SPENT, STOPPED
from oraculo.simulation.facts import Seen
from oraculo.simulation.map_rules import GROWN

RULE = "a round follows a false condition"


@dataclass(slots=True)
class SeenLoop:
    """One loop as the records tell it."""

    owner: int
    spec: LoopSpec
    since: datetime
    rounds: list[int] = field(default_factory=list)


class LoopRules:
    """Follows one journal; `wrong` takes what is violated."""

    def __init__(self, wrong: Callable[[str, str], None]) -> None:
        self._wrong = wrong
        self.by_owner: dict[int, SeenLoop] = {}
        self._of_round: dict[int, SeenLoop] = {}

    def grown(self, event: ev.PlanGrown, plan: Plan, tickets: list[Seen], at: datetime) -> Plan:
        """The plan with one more round; its ticket is added."""
        spec, owner = loop_spec(plan, event.owner), tickets[event.owner]
        assert spec is not None
        known = self.by_owner.setdefault(event.owner, SeenLoop(event.owner, spec, at))
        number = len(known.rounds)
        if owner.phase != ASKED or event.first != len(tickets) or (event.offset, event.count) != (number, 1):
            self._wrong(RULE, f"round {event.offset} of {event.owner} at {event.first} while {owner.phase}")
        if number >= spec.at_most:
            self._wrong(RULE, f"round {number} of {event.owner}, which has {spec.at_most}")
        if number and self.condition(known, tickets) is not False:
            self._wrong(RULE, f"round {number} of {event.owner}: the condition is {self.condition(known, tickets)}")
        due_at = at + spec.pause if number and spec.pause else None
        if event.due_at != due_at:
            self._wrong("deadlines are honest", f"round {number} of {event.owner} at {event.due_at}, expected {due_at}")
        owner.phase, owner.attempt, owner.released_at = GROWN, 1, owner.released_at or at
        tickets.append(Seen() if due_at is None else Seen(phase="backoff", retry_at=due_at))
        known.rounds.append(event.first)
        self._of_round[event.first] = known
        task = replace(spec.task, after=None, feeds=())
        return replace(plan, tasks=(*plan.tasks, task))

    def condition(self, known: SeenLoop, tickets: Sequence[Seen]) -> bool | None:
        """What the condition of a loop gives behind its last round; None when it has no value."""
        last = tickets[known.rounds[-1]]
        if last.status not in (Status.CONCLUIDA, Status.PARCIAL):
            return None
        names: dict[str, Any] = {
            known.spec.item.name: {"resultado": orjson.loads(last.dados)},
            "indice": len(known.rounds) - 1,
        }
        template = parse_template(orjson.loads(known.spec.stop_when))
        assert template is not None
        try:
            value = template.measured(names, 10_000)[0]
        except ExpressionError:
            return None
        return value if isinstance(value, bool) else None

    def may_ask(self, position: int, tickets: Sequence[Seen]) -> bool:
        """A loop asks again when its last round went through."""
        known = self.by_owner.get(position)
        good = (Status.CONCLUIDA, Status.PARCIAL)
        return known is not None and tickets[position].phase == GROWN and tickets[known.rounds[-1]].status in good

    def spec_of(self, position: int) -> NamedTask | None:
        """What is said of a round; None when it is none."""
        known = self._of_round.get(position)
        return None if known is None else known.spec.item

    def is_round(self, position: int) -> bool:
        return position in self._of_round

    def may_cancel(self, position: int, tickets: Sequence[Seen]) -> bool:
        """The round of a loop that has ended is cancelled."""
        known = self._of_round.get(position)
        return known is not None and tickets[known.owner].phase == "closed"

    def ended(self, event: ev.LoopEnded, tickets: Sequence[Seen], at: datetime, clock: datetime | None) -> None:
        """Check the end of a loop; `clock` is what the clock shows at `at`, on which its rounds have closed."""
        known, phase = self.by_owner.get(event.ticket), tickets[event.ticket].phase
        if known is None or phase not in (GROWN, ASKED, STOPPED, SPENT):
            self._wrong(RULE, f"loop {event.ticket} ended while {phase}")
            return
        last = tickets[known.rounds[-1]]
        late = known.spec.limit is not None and at >= known.since + known.spec.limit
        if phase == STOPPED:
            expected = last.status
        elif phase == SPENT:
            expected = last.status if known.spec.continues else Status.ERRO
        elif last.status is Status.TIMEOUT:  # who looks late finds both out of time, round and loop
            expected = Status.TIMEOUT if late and last.closed_at == clock else Status.ERRO
        elif last.status is Status.ERRO:
            expected = event.status if late and last.closed_at == clock else Status.ERRO  # an answer that was quicker
        else:
            expected = Status.TIMEOUT
        wrongly = phase == STOPPED and self.condition(known, tickets) is not True
        wrongly = wrongly or (phase == SPENT and len(known.rounds) != known.spec.at_most)
        if event.status is not expected or wrongly or (expected is Status.TIMEOUT and not late):
            told = f"loop {event.ticket} ended as {event.status.value} after {len(known.rounds)} rounds, {phase}"
            self._wrong("endings are explained", told)

    def quiet(self, tickets: Sequence[Seen], at: datetime, woken: bool) -> None:
        """After every record."""
        for known in self.by_owner.values():
            owner, last = tickets[known.owner], tickets[known.rounds[-1]]
            if any(tickets[one].phase != "closed" for one in known.rounds[:-1]):
                self._wrong(RULE, f"loop {known.owner} has two rounds at once")
            if owner.phase == "closed" and last.phase != "closed":
                self._wrong(RULE, f"loop {known.owner} has ended and has an open round")
            if owner.phase == GROWN and last.phase == "closed":
                self._wrong(RULE, f"loop {known.owner} goes on and does nothing")
            limit = known.spec.limit
            if woken and owner.phase != "closed" and limit is not None and known.since + limit <= at:
                self._wrong("deadlines are honest", f"loop {known.owner} is out of time and was not woken")

    def result(self, owner: int, tickets: Sequence[Seen]) -> object:
        """What a loop gave; null when it failed."""
        known = self.by_owner[owner]
        good = tickets[owner].status in (Status.CONCLUIDA, Status.PARCIAL)
        return orjson.loads(tickets[known.rounds[-1]].dados) if good else None


def loop_spec(plan: Plan, position: int) -> LoopSpec | None:
    named = named_in(plan)
    return named.named[position].loop if named is not None and position < len(named.named) else None
