"""What must hold for the orders of paused orchestrations: none is sent, and none is handed to a worker over HTTP."""

from __future__ import annotations

from oraculo.core.events import OrchestrationPaused
from oraculo.core.ticket_id import parse_ticket_id
from oraculo.ports.journal import Batch, Recorded
from oraculo.simulation.invariants import CheckedJournal
from oraculo.simulation.scene import Scene

RULE = "nothing goes out while it is paused"
ON_ITS_WAY_S = 0.1


class PauseWatch:
    """`journals`: run → its journal, as far as it is committed."""

    def __init__(self, scene: Scene, journals: dict[int, CheckedJournal]) -> None:
        self._scene = scene
        self._journals = journals
        self._doubted: set[int] = set()
        self._since: dict[int, float] = {}  # run → when its latest pause was committed

    def committed(self, recorded: Recorded) -> None:
        if any(isinstance(event, OrchestrationPaused) for event in recorded.events):
            self._since[recorded.run] = self._scene.loop.time()

    def in_doubt(self, batch: Batch) -> None:
        """A commit of which the engine is told that it failed: it cannot know of a pause in it yet."""
        self._doubted |= {done.state.run for done in batch.steps}

    def publishing(self, run: int, position: int) -> None:
        """An order is sent. What a broker without memory forgot is sent again, pause or not; what was on its way when
        the pause came arrives."""
        if self._scene.loop.time() - self._since.get(run, 0.0) < ON_ITS_WAY_S:
            return
        if self._is_paused(run) and self._journals[run].tickets[position].phase == "owed":
            self._scene.violate(RULE, f"the order of ticket {position} of {self._journals[run].name} is sent")

    def leased(self, ticket: str) -> None:
        """An order is handed to a worker over HTTP."""
        parsed = parse_ticket_id(ticket)
        if parsed is not None and self._is_paused(parsed[0]):
            self._scene.violate(RULE, f"ticket {parsed[1]} of {self._journals[parsed[0]].name} is handed out")

    def _is_paused(self, run: int) -> bool:
        journal = self._journals.get(run)
        return journal is not None and journal.pauses.paused and run not in self._doubted
