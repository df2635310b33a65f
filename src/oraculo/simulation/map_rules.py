"""The rules of maps, said again without the core: rows that never change, items that start once and in order, never
more of them than the window has room for, and how a map ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import orjson

from oraculo.core import events as ev
from oraculo.core.named_tasks import MapSpec, NamedTask, named_in
from oraculo.core.plan import Gate, Plan
from oraculo.core.vocabulary import FanIn, Status
from oraculo.simulation.expression_rules import AFTER, ASKED
from oraculo.simulation.facts import Seen

RULE = "items start once, in order, within the window"
GROWN = "grown"  # the phase of a map whose items are under way


@dataclass(slots=True)
class SeenMap:
    """One map as the records tell it."""

    owner: int
    spec: MapSpec
    first: int
    total: int
    gate: int
    since: datetime
    rows: list[tuple[bytes, ...]] = field(default_factory=list)

    @property
    def items(self) -> range:
        return range(self.first, self.first + len(self.rows))

    @property
    def complete(self) -> bool:
        return len(self.rows) == self.total


class MapRules:
    """Follows one journal; `wrong` takes what is violated."""

    def __init__(self, wrong: Callable[[str, str], None]) -> None:
        self._wrong = wrong
        self.planned = 0  # tickets before anything had grown
        self.by_owner: dict[int, SeenMap] = {}
        self._by_gate: dict[int, SeenMap] = {}
        self._of_item: dict[int, SeenMap] = {}
        self.reopened: set[int] = set()  # by an operator, who does not ask for room

    def grown(self, event: ev.PlanGrown, plan: Plan, tickets: list[Seen], at: datetime) -> Plan:
        """The plan with these items; their tickets are added."""
        known, spec = self.by_owner.get(event.owner), map_spec(plan, event.owner)
        if spec is None or event.first != len(tickets) or event.offset != (0 if known is None else len(known.rows)):
            self._wrong(RULE, f"a chunk of {event.owner} at {event.first}, {event.offset} before it")
        if spec is None:
            return plan
        if known is None:
            if tickets[event.owner].phase != ASKED:
                self._wrong(RULE, f"map {event.owner} has items while {tickets[event.owner].phase}")
            known = SeenMap(event.owner, spec, event.first, event.total, len(plan.gates), at)
            self.by_owner[event.owner] = self._by_gate[known.gate] = known
            tickets[event.owner].phase, tickets[event.owner].attempt = GROWN, 1
            tickets[event.owner].released_at = at
            wanted = range(event.first, event.first + event.total)
            gate = Gate(spec.join.mode, spec.join.minimo or 1, wanted, (), essential=False)
            plan = replace(plan, gates=(*plan.gates, gate))
        if event.total != known.total or len(event.rows) != event.count or len(known.rows) + event.count > known.total:
            self._wrong(RULE, f"map {event.owner}: {event.count} of {event.total} items, {known.total} were said")
        known.rows += event.rows
        for position in range(event.first, event.first + event.count):
            tickets.append(Seen())
            self._of_item[position] = known
        for some in event.idle:
            for number in some.items:
                tickets[known.first + number].phase = AFTER[some.why.outcome]
        task = replace(spec.task, after=None, feeds=(known.gate,))
        return replace(plan, tasks=(*plan.tasks, *[task] * event.count))

    def spec_of(self, position: int) -> NamedTask | None:
        """What is said of an item; None when it is none."""
        known = self._of_item.get(position)
        return None if known is None else known.spec.item

    def map_of(self, position: int) -> SeenMap | None:
        """The map that an item belongs to; None of any other ticket."""
        return self._of_item.get(position)

    def is_item(self, position: int) -> bool:
        return position in self._of_item

    def dispatched(self, position: int, tickets: Sequence[Seen]) -> None:
        """An item starts for the first time: all rows are known, and none before it waits."""
        known = self._of_item.get(position)
        if known is None:
            return
        if not known.complete or tickets[known.owner].phase != GROWN:
            self._wrong(RULE, f"item {position} starts while its map is {tickets[known.owner].phase}")
        if any(tickets[one].phase == "waiting" for one in range(known.first, position)):
            self._wrong(RULE, f"item {position} starts before one that stands before it")

    def verdict(self, number: int, tickets: Sequence[Seen], plain: bool | None) -> bool | None:
        """What the gate of a map decides, given what one over tasks would; a map without a failure goes through."""
        known = self._by_gate.get(number)
        if known is None:
            return plain
        if not known.complete or tickets[known.owner].phase == "closed":
            return None
        failed = any(_failed(tickets[one]) for one in known.items)
        unhurt = plain is False and not failed and known.spec.join.mode in (FanIn.TODOS, FanIn.TODAS_OK)
        return True if unhurt else plain

    def ended(self, event: ev.MapEnded, tickets: Sequence[Seen], gates: Sequence[bool | None], at: datetime) -> None:
        known = self.by_owner.get(event.ticket)
        if known is None or tickets[event.ticket].phase != GROWN:
            self._wrong(RULE, f"map {event.ticket} ended while {tickets[event.ticket].phase}")
            return
        passed = gates[known.gate]
        late = known.spec.limit is not None and at >= known.since + known.spec.limit
        failed = any(_failed(tickets[one]) for one in known.items)
        expected = {True: Status.PARCIAL if failed else Status.CONCLUIDA, False: Status.ERRO, None: Status.TIMEOUT}[
            passed
        ]
        if event.status is not expected or (passed is None and not late):
            self._wrong("endings are explained", f"map {event.ticket} ended as {event.status.value}, gate {passed}")

    def may_cancel(self, position: int, tickets: Sequence[Seen]) -> bool:
        """An item of a map that has ended is cancelled."""
        known = self._of_item.get(position)
        return known is not None and tickets[known.owner].phase == "closed"

    def quiet(self, tickets: Sequence[Seen], gates: Sequence[bool | None], at: datetime, woken: bool) -> None:
        """After every record."""
        for known in self.by_owner.values():
            owner = tickets[known.owner]
            if owner.phase != GROWN:
                if any(tickets[one].phase != "closed" for one in known.items):
                    self._wrong(RULE, f"map {known.owner} is {owner.phase} and has open items")
                continue
            if not known.complete:
                continue
            waiting = sum(1 for one in known.items if tickets[one].phase == "waiting")
            live = sum(1 for one in known.items if tickets[one].phase in ("owed", "running", "backoff"))
            room = known.total if known.spec.at_once is None else known.spec.at_once
            asked_for = sum(1 for one in known.items if one in self.reopened and tickets[one].phase != "closed")
            if live - asked_for > room:
                self._wrong(RULE, f"map {known.owner}: {live} items at once, {room} are allowed")
            if waiting and live < room and gates[known.gate] is None:
                self._wrong(RULE, f"map {known.owner}: {waiting} items wait, {live} of {room} run")
            limit = known.spec.limit
            if woken and limit is not None and known.since + limit <= at:
                self._wrong("deadlines are honest", f"map {known.owner} is out of time and was not woken")

    def results(self, owner: int, tickets: Sequence[Seen]) -> list[object] | None:
        """What a map that went through gave."""
        known = self.by_owner.get(owner)
        if known is None or tickets[owner].status not in (Status.CONCLUIDA, Status.PARCIAL):
            return None
        given = [tickets[one] for one in known.items]
        good = (Status.CONCLUIDA, Status.PARCIAL)
        return [orjson.loads(one.dados) if one.status in good else None for one in given]


def _failed(ticket: Seen) -> bool:
    return ticket.status in (Status.ERRO, Status.TIMEOUT)


def map_spec(plan: Plan, position: int) -> MapSpec | None:
    named = named_in(plan)
    return named.named[position].map if named is not None and position < len(named.named) else None
