"""The rules of children, said again without the core: each begins once for an attempt and under one id, and a
parent that closes its ticket before it has ended owes its end until that is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oraculo.core import events as ev
from oraculo.core.plan import Plan
from oraculo.core.vocabulary import Kind, Status
from oraculo.simulation.facts import Seen

RULE = "a child ends with its parent"


class ChildRules:
    """Follows one journal; `wrong` takes what is violated. `left` are children that have to end: position → attempt."""

    def __init__(self, wrong: Callable[[str, str], None]) -> None:
        self._wrong = wrong
        self.left: dict[int, int] = {}
        self.ids: dict[tuple[int, int], str] = {}

    def closed(self, plan: Plan, position: int, ticket: Seen) -> None:
        """A ticket closes, without an answer, that was in this state before."""
        if plan.tasks[position].kind is Kind.FILHA and ticket.phase in ("owed", "running"):
            self.left[position] = ticket.attempt

    def ended(self, event: ev.ChildEnded, plan: Plan) -> None:
        if plan.tasks[event.ticket].kind is not Kind.FILHA or event.status not in (Status.CONCLUIDA, Status.PARCIAL):
            self._wrong(RULE, f"ticket {event.ticket} ended as a child, {event.status.value}")

    def cancelled(self, event: ev.ChildrenCancelled) -> None:
        for position, attempt in event.tickets:
            if self.left.pop(position, None) != attempt:
                self._wrong(RULE, f"child {position} attempt {attempt} was ended and had not to")

    def began(
        self, wanted: Sequence[tuple[int, int]], tickets: Sequence[Seen], id_of: Callable[[int, int], str]
    ) -> None:
        """These children are begun, for the first time or again after a crash."""
        for position, attempt in wanted:
            name = id_of(position, attempt)
            if tickets[position].phase != "owed" or tickets[position].attempt != attempt:
                self._wrong("no ghosts", f"child {position} attempt {attempt} begins while {tickets[position].phase}")
            if self.ids.setdefault((position, attempt), name) != name:
                self._wrong(RULE, f"child {position} attempt {attempt} has two ids")
        if len(set(self.ids.values())) != len(self.ids):
            self._wrong(RULE, "two children have one id")
