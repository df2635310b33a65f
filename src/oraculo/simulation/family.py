"""What must hold between an orchestration and its children in worlds of the whole engine: none begins unasked or when
its parent needs it no longer, and a parent hears what its child really gave."""

from __future__ import annotations

import orjson

from oraculo.core.events import ChildrenCancelled
from oraculo.core.plan import Parent
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import Kind, Status
from oraculo.ports.journal import Recorded
from oraculo.simulation.child_rules import RULE
from oraculo.simulation.facts import Answer
from oraculo.simulation.invariants import CheckedJournal
from oraculo.simulation.scene import Scene

GOOD = (Status.CONCLUIDA, Status.PARCIAL)

Place = tuple[int, int, int]  # of a child: run, position and attempt of its parent


class FamilyWatch:
    """`journals`: run → its journal, as far as it is committed."""

    def __init__(self, scene: Scene, journals: dict[int, CheckedJournal]) -> None:
        self._scene = scene
        self._journals = journals
        self._children: dict[Place, CheckedJournal] = {}
        self._over: set[Place] = set()  # whose end was confirmed to the parent
        self.begun: set[str] = set()  # ids that their orders would have
        self._told: set[int] = set()  # children whose final document is known

    def committed(self, recorded: Recorded) -> None:
        journal = self._journals[recorded.run]
        parent = journal.plan.parent
        if parent is not None and recorded.first == 1:
            self._begun(journal, parent)
        for event in recorded.events:
            if isinstance(event, ChildrenCancelled):
                for position, attempt in event.tickets:
                    self._cancelled((recorded.run, position, attempt))

    def _begun(self, journal: CheckedJournal, parent: Parent) -> None:
        place = (parent.run, parent.position, parent.attempt)
        self._scene.count("children")
        of = self._journals.get(parent.run)
        if of is None or of.plan.tasks[parent.position].kind is not Kind.FILHA:
            self._scene.violate(RULE, f"{journal.name} is the child of nothing")
        elif parent.attempt > of.tickets[parent.position].attempt:
            self._scene.violate(RULE, f"{journal.name} began before its parent asked for it")
        if place in self._children:
            self._scene.violate(RULE, f"{journal.name} is the second child of one attempt")
        if place in self._over:
            self._scene.violate(RULE, f"{journal.name} began after its parent knew that it had ended")
        self._children[place] = journal
        self.begun.add(f"{ticket_id(parent.run, parent.position)}.{parent.attempt}")

    def _cancelled(self, place: Place) -> None:
        child = self._children.get(place)
        if child is not None and child.status is None:
            self._scene.violate(RULE, f"the parent of {child.name} was told that it ended, and it goes on")
        self._over.add(place)

    def untold(self, run: int) -> bool:
        """Return whether this is a child that has ended and whose document was not read yet."""
        journal = self._journals[run]
        return journal.plan.parent is not None and journal.status is not None and run not in self._told

    def ended(self, run: int, body: bytes | None) -> None:
        """Keep what a child gave, as an answer to its parent."""
        journal = self._journals[run]
        parent = journal.plan.parent
        assert parent is not None and journal.status is not None
        self._told.add(run)
        if body is None:
            self._scene.violate("results count once", f"{journal.name} ended without a result")
            return
        document = orjson.loads(body)
        ok = journal.status in GOOD
        said = document.get("saida") if journal.plan.profile.has_output else document
        ticket = ticket_id(parent.run, parent.position)
        self._scene.said(body, Answer(ticket, parent.attempt, ok, False, said if ok else None, True))
