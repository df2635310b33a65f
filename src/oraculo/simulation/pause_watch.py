"""What must hold for the orders of paused orchestrations: none is sent, and none is handed to a worker over HTTP."""

from __future__ import annotations

from oraculo.core.events import OrchestrationPaused
from oraculo.core.ticket_id import parse_ticket_id
from oraculo.ports.journal import Batch, Recorded
from oraculo.simulation.invariants import CheckedJournal
from oraculo.simulation.scene import Scene
from oraculo.simulation.under_ceiling import Alive

RULE = "nothing goes out while it is paused"
ON_ITS_WAY_S = 0.1

Order = tuple[int, int, int]  # run, position, attempt


class PauseWatch:
    """`journals`: run → its journal, as far as it is committed."""

    def __init__(self, scene: Scene, journals: dict[int, CheckedJournal]) -> None:
        self._scene = scene
        self._journals = journals
        self._doubted: set[int] = set()
        self._since: dict[int, float] = {}  # run → when its latest pause was committed
        self._by: dict[int, int] = {}  # run → by which life
        self._sent: set[tuple[int, Order]] = set()  # (life, order): it was sent before, and not confirmed

    def committed(self, recorded: Recorded, life: Alive) -> None:
        if any(isinstance(event, OrchestrationPaused) for event in recorded.events):
            self._since[recorded.run] = self._scene.loop.time()
            self._by[recorded.run] = life.number

    def in_doubt(self, batch: Batch) -> None:
        """A commit of which the engine is told that it failed: it cannot know of a pause in it yet."""
        self._doubted |= {done.state.run for done in batch.steps}

    def publishing(self, order: Order, life: Alive, *, shared: bool) -> None:
        """An order is sent. What a broker without memory forgot is sent again, pause or not; what was on its way when
        the pause came arrives. What another process has in hand goes too, once: it looks again before it repeats."""
        run, position, _ = order
        has_in_hand = shared and self._by.get(run) != life.number and (life.number, order) not in self._sent
        self._sent.add((life.number, order))
        if self._is_on_its_way(run, life, shared) or has_in_hand:
            return
        if self._is_paused(run) and self._journals[run].tickets[position].phase == "owed":
            self._scene.violate(RULE, f"the order of ticket {position} of {self._journals[run].name} is sent")

    def leased(self, ticket: str, life: Alive, *, shared: bool) -> None:
        """An order is handed to a worker over HTTP; several of one call are looked at one after the other."""
        parsed = parse_ticket_id(ticket)
        if parsed is not None and self._is_on_its_way(parsed[0], life, shared):
            return
        if parsed is not None and self._is_paused(parsed[0]):
            self._scene.violate(RULE, f"ticket {parsed[1]} of {self._journals[parsed[0]].name} is handed out")

    def _is_on_its_way(self, run: int, life: Alive, shared: bool) -> bool:
        """Return whether the process cannot know of the pause yet: it was committed just now, or the process that
        learns of it from the store alone could not look."""
        latest = max(self._since.get(run, 0.0), life.blind_at if shared else 0.0)
        return self._scene.loop.time() - latest < ON_ITS_WAY_S

    def _is_paused(self, run: int) -> bool:
        journal = self._journals.get(run)
        return journal is not None and journal.pauses.paused and run not in self._doubted
