"""The rules of retries, said again without the core: what is taken over had concluded, with this result; nothing that
had concluded runs again unless something that it depends on does; no map whose items are known is evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import orjson

from oraculo.core import events as ev
from oraculo.core.resolution import IdleItems
from oraculo.core.reuse import ReusedResult
from oraculo.core.vocabulary import Kind, Status
from oraculo.simulation.expression_rules import ASKED
from oraculo.simulation.facts import Seen

if TYPE_CHECKING:
    from oraculo.simulation.invariants import CheckedJournal

RULE = "a retry runs nothing that had concluded"
REAL = "what is reused had concluded"
_UNCHANGED = (Status.CONCLUIDA, Status.IGNORADA)


class RetryRules:
    """Follows the journal of a retry; `earlier` is that of the run that it tries again, None of any other run."""

    def __init__(self, journal: CheckedJournal) -> None:
        self._journal = journal
        self.earlier: CheckedJournal | None = None
        self.wanted: set[int] = set()  # tasks that were asked for anew
        self._results: dict[tuple[int, int | None], bytes] = {}
        self._rows: dict[int, list[tuple[bytes, ...]]] = {}
        self._idle: dict[int, list[IdleItems]] = {}
        self._restored: dict[int, int] = {}  # map → position of its first item
        self._anew: set[int] = set()  # tasks that did not end as they had

    def read(self, event: ev.Event, at: datetime) -> bool:
        """Check an event; return True when it needs no other check."""
        match event:
            case ev.ResultsReused():
                self._kept(event)
            case ev.TicketsReused(positions):
                for position in positions:
                    self._reused(position)
            case ev.MapRestored():
                self._restore(event, at)
            case ev.TicketsDispatched(positions, 1) if self.earlier is not None:
                for position in positions:
                    self._started(position)
                return False
            case ev.TasksAsked(positions) if self.earlier is not None:
                for position in positions:
                    if self._journal.plan.tasks[position].kind in (Kind.MAPA, Kind.REPETE):
                        self._started(position)
                return False
            case ev.WaitStarted(position):
                self._anew.add(position)
                return False
            case _:
                return False
        return True

    def _kept(self, event: ev.ResultsReused) -> None:
        for some in event.rows:
            self._rows.setdefault(some.owner, []).extend(some.rows)
            self._idle.setdefault(some.owner, []).extend(some.idle)
        for one in event.results:
            known = self._known(one.ticket, one.item)
            if known is None or known.status is not Status.CONCLUIDA or not self._gave(known, one):
                self._journal.wrong(REAL, f"ticket {one.ticket} item {one.item} had not, or gave something else")
            if self._undone(one.ticket, one.item):
                self._journal.wrong(REAL, f"ticket {one.ticket} was undone")
            self._results[one.ticket, one.item] = one.dados

    def _gave(self, known: Seen, one: ReusedResult) -> bool:
        """True when the ticket gave this; a loop gives what its last round gave."""
        earlier = self.earlier
        if earlier is not None and one.item is None and one.ticket in earlier.loops.by_owner:
            return bool(orjson.loads(one.dados) == earlier.loops.result(one.ticket, earlier.tickets))
        return known.dados == one.dados

    def _reused(self, position: int) -> None:
        journal, task = self._journal, self._journal.plan.tasks[position]
        if journal.tickets[position].phase != "waiting" or (
            task.after is not None and journal.gates[task.after] is not True
        ):
            journal.wrong("no dispatch before its gate", f"ticket {position} reused, gate {task.after}")
        dados = self._results.pop(self._of(position), None)
        if dados is None:
            journal.wrong(REAL, f"nothing is known of ticket {position}, or it was reused twice")
        journal.tickets[position].attempt = 1
        journal.close(position, Status.CONCLUIDA, dados or b"null")

    def _restore(self, event: ev.MapRestored, at: datetime) -> None:
        journal, earlier = self._journal, self.earlier
        rows = self._rows.pop(event.owner, [])
        if earlier is None or earlier.maps.by_owner[event.owner].rows != rows:
            journal.wrong(REAL, f"map {event.owner} has other rows than it had")
        journal.tickets[event.owner].phase = ASKED  # it needs no answer
        grown = ev.PlanGrown(event.owner, event.first, 0, event.total, event.total, rows, [], self._idle[event.owner])
        journal.maps.planned = journal.maps.planned or len(journal.tickets)
        journal.plan = journal.maps.grown(grown, journal.plan, journal.tickets, at)
        journal.gates += [None] * (len(journal.plan.gates) - len(journal.gates))
        self._restored[event.owner] = event.first

    def _started(self, position: int) -> None:
        """A ticket starts, or a map is evaluated: it had not concluded, or something that it depends on runs again."""
        if 0 < self._journal.undoes <= position or self._journal.loops.spec_of(position) is not None:
            return  # what undoes others, and rounds of loops, are of this run
        owner, item = self._of(position)
        inputs = self._inputs(position) if item is None else ()
        explained = position in self.wanted or any(self._is_anew(one) for one in inputs)
        if item is None:
            self._anew.add(position)
        elif owner not in self._restored:
            return
        earlier = self.earlier
        assert earlier is not None
        if item is None and self._journal.plan.tasks[position].kind is Kind.MAPA:
            known_map = earlier.maps.by_owner.get(position)
            if known_map is not None and known_map.complete and not explained:
                self._journal.wrong(RULE, f"map {position} is evaluated again")
            return
        known = self._known(owner, item)
        if known is not None and known.status is Status.CONCLUIDA and not explained and not self._undone(owner, item):
            self._journal.wrong(RULE, f"ticket {position}")

    def _is_anew(self, position: int) -> bool:
        """True of a task that need not end as it had: it runs again, or has yet to, as does something before it."""
        earlier = self.earlier
        assert earlier is not None
        for one in self._before(position, through_waits=False):
            changed = earlier.tickets[one].status not in _UNCHANGED or self._undone(one, None)
            if changed or one in self._anew:
                return True
        return not self.wanted.isdisjoint(self._before(position, through_waits=True))

    def _before(self, position: int, *, through_waits: bool) -> set[int]:
        """This task and all that it depends on; waits that had concluded are given again, whatever came before them."""
        found: set[int] = set()
        stack = [position]
        while stack:
            one = stack.pop()
            if one not in found:
                found.add(one)
                stack += () if self._is_over(one) and not through_waits else self._inputs(one)
        return found

    def _parts(self, position: int) -> Sequence[int]:
        """A task, and the items or rounds that it had in the run before."""
        earlier = self.earlier
        assert earlier is not None
        known_map, loop = earlier.maps.by_owner.get(position), earlier.loops.by_owner.get(position)
        return [position, *(known_map.items if known_map else ()), *(loop.rounds if loop else ())]

    def _inputs(self, position: int) -> Sequence[int]:
        after = self._journal.plan.tasks[position].after
        return () if after is None else self._journal.plan.gates[after].inputs

    def _is_over(self, position: int) -> bool:
        """True of a wait that had concluded."""
        earlier = self.earlier
        assert earlier is not None
        is_wait = self._journal.plan.profile.wait(position) is not None
        return is_wait and earlier.tickets[position].status is Status.CONCLUIDA

    def _undone(self, position: int, item: int | None) -> bool:
        """True of a task that was undone, itself or a part of it, or of an item of a map."""
        earlier = self.earlier
        if earlier is None:
            return False
        if item is None:
            return not set(earlier.undone).isdisjoint(self._parts(position))
        return position in earlier.undone or earlier.maps.by_owner[position].first + item in earlier.undone

    def _of(self, position: int) -> tuple[int, int | None]:
        known = self._journal.maps.map_of(position)
        return (position, None) if known is None else (known.owner, position - known.first)

    def _known(self, ticket: int, item: int | None) -> Seen | None:
        """How a ticket, or an item of a map, ended in the run before."""
        earlier = self.earlier
        if earlier is None:
            return None
        if item is None:
            return earlier.tickets[ticket]
        known = earlier.maps.by_owner.get(ticket)
        return None if known is None else earlier.tickets[known.first + item]
