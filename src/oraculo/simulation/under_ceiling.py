"""What must hold of orders of plans with priorities while not all of them may go: how many are out, and who goes first.

Only what one life of the process can know is asked of it: orders that an earlier life sent and never heard of again are
not counted, and what it recovered comes in the order in which it was recovered. Of several processes that keep a
ceiling together more is asked: what any of them ever sent counts, whichever of them dies or stands still.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple, Protocol

from oraculo.core.events import OrchestrationResumed, PriorityChanged, TicketsDispatched
from oraculo.core.flow.allocation import score_of_plan
from oraculo.core.flow.outcome import flow_of
from oraculo.core.priority import score_of_priority, urgency
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Phase
from oraculo.ports.journal import Recorded
from oraculo.simulation.scene import Scene

PUBLISH_TOGETHER_S = 1.0  # within which orders that were let out together are published
STILL_MAX_S = 12.0  # without a commit or a message, while something could go: longer than any outage and its last pause
PUBLISH_DELAY_MAX_S = 2.0  # between the moment in which an order is let out and that in which it is published
Order = tuple[int, int, int]  # run, position, attempt


class Alive(Protocol):
    """A life of the process, as far as who watches it has to know."""

    number: int
    alive: bool
    blind_at: float


class WaitingOrder(NamedTuple):
    """What is released together has the same number, and may go in any order."""

    number: int
    owed_since: float  # a pause moves it not: the longer something waits, the more urgent it is
    free_since: float


class CeilingWatch:
    """`states` are the committed ones. Without a ceiling in its world nothing is looked at."""

    def __init__(self, scene: Scene, states: Mapping[int, Orchestration]) -> None:
        self._scene = scene
        self._states = states
        self._life: Alive | None = None
        self._moved_at = 0.0  # the last commit or message
        self._looks = False
        self._out: set[Order] = set()
        self._waiting: dict[Order, WaitingOrder] = {}  # committed in this life, not published
        self._numbers = 0
        self._priorities: dict[int, list[int]] = {}  # run → what its priority was changed to, in this life

    def begin(self, life: Alive) -> None:
        """A new life counts what is with workers already."""
        if self._scene.is_fleet:
            return
        self._life = life
        self._moved()
        self._waiting.clear()
        self._priorities.clear()
        self._out = {
            (run, position, ticket.attempt)
            for run, state in self._states.items()
            for position, ticket in enumerate(state.tickets)
            if ticket.phase is Phase.RUNNING
        }

    def committed(self, recorded: Recorded) -> None:
        if self._scene.ceiling is None or self._scene.is_fleet:
            return
        self._moved()
        for event in recorded.events:
            if isinstance(event, TicketsDispatched) and event.attempt == 1:
                self._numbers += 1
                now = self._scene.loop.time()
                for position in event.tickets:
                    self._waiting[recorded.run, position, 1] = WaitingOrder(self._numbers, now, now)
            elif isinstance(event, OrchestrationResumed | PriorityChanged):
                if isinstance(event, PriorityChanged):
                    self._priorities.setdefault(recorded.run, []).append(event.priority)
                self._numbers += 1  # they may go, or in another place, from now on
                for order, known in self._waiting.items():
                    if order[0] == recorded.run:
                        now = self._scene.loop.time()
                        self._waiting[order] = WaitingOrder(self._numbers, known.owed_since, now)

    def publishing(self, order: Order, life: Alive) -> None:
        limit = self._scene.ceiling
        self._moved()
        is_other_life = life is not self._life and not self._scene.is_fleet
        if limit is None or is_other_life or order in self._out or not self._wanted(order):
            return
        if not self._states[order[0]].plan.profile.has_ceiling:
            return
        self._out = {one for one in self._out if self._wanted(one)} | {order}
        self._scene.count("orders under a ceiling")
        if len(self._out) > limit:
            self._scene.violate("the ceiling holds", f"{len(self._out)} tickets are out, {limit} may be")
        known = self._waiting.pop(order, None)
        if known is None or self._scene.recalls:  # what no broker took goes when it is tried again, late or early
            return
        now = self._scene.loop.time()
        score = self._best_score(order, timedelta(seconds=now - known.owed_since))
        for other, there in self._waiting.items():
            was_there = there.number < known.number or now - there.free_since > PUBLISH_DELAY_MAX_S
            if was_there and self._owed(other) and self._score(other, None) > score:
                self._scene.loop.call_later(PUBLISH_TOGETHER_S, self._overtaken, order, other, life)

    def _overtaken(self, order: Order, other: Order, life: Alive) -> None:
        """An order went; one that is more urgent and was there must have gone by now, too."""
        if life.alive and life is self._life and other in self._waiting and self._owed(other):
            scores = f"{self._score(order, None)} before {self._score(other, None)}"
            self._scene.violate("the most urgent goes first", f"{scores}: {order} went, {other} was there and waits")

    def _moved(self) -> None:
        self._moved_at = self._scene.loop.time()
        if not self._looks and self._life is not None:
            self._looks = True
            self._scene.loop.call_later(STILL_MAX_S, self._look)

    def _look(self) -> None:
        """Nothing may stand still while an order is owed and there is a place that no worker has."""
        left = self._moved_at + STILL_MAX_S - self._scene.loop.time()
        if left > 0:
            self._scene.loop.call_later(left, self._look)
            return
        self._looks = False
        limited = [one for one in self._states.values() if one.plan.profile.has_ceiling]
        taken = sum(ticket.running for state in limited for ticket in state.tickets)
        waiting = [
            (state.run, position, ticket.attempt)
            for state in limited
            for position, ticket in enumerate(state.tickets)
            if self._owed((state.run, position, ticket.attempt))
        ]
        is_up = self._life is not None and self._life.alive
        if is_up and waiting and taken < (self._scene.ceiling or 0):
            self._scene.violate("free places are used", f"{taken} tickets are with workers, and {waiting} wait")

    def _wanted(self, order: Order) -> bool:
        run, position, attempt = order
        return self._states[run].wants_answer(position, attempt)

    def _owed(self, order: Order) -> bool:
        run, position, attempt = order
        return self._states[run].paused is None and self._states[run].owes_order(position, attempt)

    def _best_score(self, order: Order, waited: timedelta) -> float:
        """The highest that it had in this life: it may have been let out by any of them, and be published later."""
        given = self._priorities.get(order[0])
        if given is None:
            return self._score(order, waited)
        flow = flow_of(self._states[order[0]])
        asked = score_of_plan(flow.risk_band, flow.priority).at_urgency(1.0).value
        return max(asked, *(self._score(order, waited, priority) for priority in given))

    def _score(self, order: Order, waited: timedelta | None, priority: int | None = None) -> float:
        """As urgent as it is by its risk band and priority, and by the time that it has waited when that is given. The
        wall clock may have jumped since, and the process goes on by its own."""
        run, position, _ = order
        state = self._states[run]
        flow, since = flow_of(state), state.tickets[position].dispatched_at
        given = state.priority if priority is None else priority
        score = score_of_plan(flow.risk_band, flow.priority) if given is None else score_of_priority(given)
        if waited is None or since is None:
            return score.value
        return score.at_urgency(urgency(since, since + state.plan.tasks[position].timeout, since + waited)).value
