"""The rules of undoing plans with named tasks, said again without the core: only what was done, once, in reverse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from oraculo.core import events as ev
from oraculo.core.named_tasks import GrownTasks, NamedTask, UndoSpec, named_in
from oraculo.core.plan import Plan
from oraculo.core.vocabulary import Kind, Status
from oraculo.simulation.facts import NEVER, Seen

if TYPE_CHECKING:
    from oraculo.simulation.invariants import CheckedJournal

RULE = "undone in reverse"
LIVE = ("asked", "resolved", "owed", "running", "backoff")


class UndoRules:
    """Follows one journal."""

    def __init__(self, journal: CheckedJournal) -> None:
        self._journal = journal
        self.ending: Status | None = None
        self.gates = 0  # of the plan before; they are not looked at any more
        self._undone: list[int] = []

    # -- what --------------------------------------------------------------------------------------------------------

    def expected(self) -> set[int]:
        """What has to be undone now, if the run fails."""
        found = set[int]()
        for position in range(len(self._journal.tickets)):
            spec = self._spec(position)
            if spec is not None and self._was_done(position):
                found.add(position)
        return found

    def _spec(self, position: int) -> UndoSpec | None:
        named, item = named_in(self._journal.plan), self._item(position)
        if item is not None:
            return item.undo
        return named.named[position].undo if named is not None and position < len(named.named) else None

    def _item(self, position: int) -> NamedTask | None:
        """What is said of an item of a map or a round of a loop; None of any other ticket."""
        return self._journal.maps.spec_of(position) or self._journal.loops.spec_of(position)

    def _items(self, owner: int) -> Sequence[int] | None:
        """The items of a map or the rounds of a loop; None of any other task."""
        over, loop = self._journal.maps.by_owner.get(owner), self._journal.loops.by_owner.get(owner)
        return over.items if over is not None else None if loop is None else loop.rounds

    def fails(self, ending: Status) -> bool:
        """Whether a run that ends like this is undone first, unless it was. A cancel is, if it says so."""
        if self.ending is not None or named_in(self._journal.plan) is None:
            return False
        first = self._journal.first
        if isinstance(first, ev.CancelRequested):
            return first.undo
        return ending in (Status.ERRO, Status.TIMEOUT, Status.CANCELADA)

    def _was_done(self, position: int) -> bool:
        ticket = self._journal.tickets[position]
        if ticket.status in (Status.CONCLUIDA, Status.PARCIAL):
            return True
        items = self._items(position)
        taken = ticket.taken if items is None else any(self._journal.tickets[one].taken for one in items)
        return ticket.status is Status.TIMEOUT and taken

    # -- how ---------------------------------------------------------------------------------------------------------

    def began(self, event: ev.CompensationStarted, expected_ending: Status | None) -> None:
        """Once, when all else is over; what it adds to the plan is all in the event."""
        journal, undone = self._journal, event.undone
        journal.undone = undone
        if self._undone:
            journal.wrong("undone once", "undone twice")
        if any(one.phase != "closed" for one in journal.tickets):
            journal.wrong("undone once", "undone while tickets are open")
        if len(set(undone)) != len(undone) or set(undone) != self.expected():
            journal.wrong(RULE, f"{sorted(undone)}, expected {sorted(self.expected())}")
        if isinstance(journal.first, ev.CancelRequested) and not journal.first.undo:
            journal.wrong("undone once", "cancelled, and nobody wanted it undone")
        if event.added is None or event.ending is None:
            journal.wrong("the journal stands alone", "it does not say in which order, or how it ends")
            return
        if expected_ending is not None and event.ending is not expected_ending:
            journal.wrong("endings are explained", f"ends as {event.ending.value}, expected {expected_ending.value}")
        self.ending, self._undone, self.gates = event.ending, undone, len(journal.gates)
        journal.undoes, journal.deadline = len(journal.tickets), NEVER
        journal.plan = self._grown(event)
        journal.tickets += [Seen() for _ in undone]
        journal.gates += [None] * len(event.added.gates)

    def _grown(self, event: ev.CompensationStarted) -> Plan:
        plan, named, added = self._journal.plan, named_in(self._journal.plan), event.added
        assert named is not None and added is not None
        specs = [self._spec(position) for position in event.undone]
        items = [self._item(p) for p in range(len(named.named), len(self._journal.tickets))]
        profile = GrownTasks.of(named)
        profile.items.extend(one for one in (*items, *(s.spec for s in specs if s is not None)) if one is not None)
        tasks = []
        for number, spec in enumerate(specs, len(self._journal.tickets)):
            after = [n for n, gate in enumerate(added.gates, self.gates) if number in gate.releases]
            feeds = tuple(n for n, gate in enumerate(added.gates, self.gates) if number in gate.inputs)
            if spec is None or len(after) > 1:
                self._journal.wrong(RULE, f"ticket {number} undoes nothing, or waits at {after}")
                continue
            tasks.append(replace(spec.task, after=after[0] if after else None, feeds=feeds))
        return replace(plan, tasks=(*plan.tasks, *tasks), gates=(*plan.gates, *added.gates), profile=profile)

    def start(self, positions: Sequence[int]) -> None:
        for position in positions:
            self._starts(position)

    def _starts(self, position: int) -> None:
        """All that depended on what it undoes is undone; a map is before its items, a later item before an earlier, and
        of a loop only when that is over."""
        journal = self._journal
        if self.ending is None or position < journal.undoes:
            return
        undone = self._undone[position - journal.undoes]
        for number, other in enumerate(self._undone, journal.undoes):
            phase = journal.tickets[number].phase
            if phase != "closed" and self._owner(undone) in self._needed_by(self._owner(other)):
                journal.wrong(RULE, f"ticket {undone} is undone before {other}, which needed it")
            if self._owner(other) == self._owner(undone) and other != undone:
                if other == self._owner(undone) and phase != "closed":
                    journal.wrong(RULE, f"item {undone} is undone before its map")
                late = phase != "closed" if self._owner(undone) in journal.loops.by_owner else phase == "waiting"
                if undone != self._owner(undone) and other > undone and late:
                    journal.wrong(RULE, f"item {undone} is undone before {other}")

    def _owner(self, position: int) -> int:
        owners = (*self._journal.maps.by_owner, *self._journal.loops.by_owner)
        return next((owner for owner in owners if position in (self._items(owner) or ())), position)

    def _needed_by(self, position: int) -> set[int]:
        """All that a task depends on."""
        plan, found, stack = self._journal.plan, set[int](), [position]
        while stack:
            after = plan.tasks[stack.pop()].after
            new = [] if after is None else [one for one in plan.gates[after].inputs if one not in found]
            found.update(new)
            stack += new
        return found

    def quiet(self) -> None:
        """No more items of a map are undone at once than were done; what may begin has begun."""
        journal = self._journal
        if self.ending is None:
            return
        for owner, known in journal.maps.by_owner.items():
            numbers = [n for n, one in enumerate(self._undone, journal.undoes) if one in known.items]
            phases = [journal.tickets[number].phase for number in numbers]
            live = sum(phase in LIVE for phase in phases)
            again = sum(number in journal.maps.reopened for number in numbers)
            if known.spec.at_once is not None and live - again > known.spec.at_once:
                journal.wrong(RULE, f"map {owner}: {live} items are undone at once, {known.spec.at_once} are allowed")
            if numbers and "waiting" in phases and not live and self._may_begin(numbers[0]):
                journal.wrong(RULE, f"map {owner}: items wait to be undone and none is")

    def _may_begin(self, number: int) -> bool:
        after = self._journal.plan.tasks[number].after
        return after is None or self._journal.gates[after] is True

    def released(self, positions: tuple[int, ...]) -> bool:
        """Whether a gate that passed let go what it had to: of the items of a map some may have to wait."""
        waiting = [p for p in positions if self._journal.tickets[p].phase == "waiting"]
        if self.ending is None or not waiting or waiting[0] < self._journal.undoes:
            return not waiting
        return all(
            self._journal.plan.tasks[self._undone[p - self._journal.undoes]].kind is not Kind.MAPA
            and self._owner(self._undone[p - self._journal.undoes]) != self._undone[p - self._journal.undoes]
            for p in waiting
        )
