"""The rules of breakers, said again without the core that has them: when one may open, what may go while it is open.

What opens one is counted here from the journal as it is committed; what is open is what was written to the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta

from oraculo.core import events as ev
from oraculo.core.breaking import DestinationBreaker
from oraculo.core.plan import Plan
from oraculo.core.state import Orchestration
from oraculo.ports.journal import Recorded
from oraculo.simulation.scene import Scene

OPENING_RULE = "a breaker opens after failures in a row"
PROBE_RULE = "one probe at a time"
HELD_RULE = "nothing but the probe goes while a breaker is open"
CLOSING_RULE = "a probe that is answered closes its breaker"
ON_ITS_WAY_S = 0.1
SENDING_TIMEOUT = timedelta(seconds=10)  # after which a probe that no broker took is given up
Order = tuple[int, int, int]


class BreakerWatch:
    """`states`: run → its state, as far as it is committed. Without breakers in its world nothing is looked at."""

    def __init__(self, scene: Scene, states: Mapping[int, Orchestration]) -> None:
        self._scene = scene
        self._states = states
        self._failures: dict[str, list[tuple[int, int]]] = {}  # queue → (position, failures in a row after it)
        self._outcomes: dict[Order, str] = {}  # "worked", "failed" or "void"
        self._confirmed: set[Order] = set()
        self._rows: dict[str, DestinationBreaker] = {}
        self._since: dict[str, float] = {}  # queue → when its row was written
        self.several_processes = False

    def committed(self, recorded: Recorded) -> None:
        if self._scene.breaker is None:
            return
        plan = self._states[recorded.run].plan
        for event in recorded.events:
            for position, attempt, outcome in _outcomes(event, plan, self._states[recorded.run]):
                queue = plan.tasks[position].queue
                if outcome == "confirmed":
                    self._confirmed.add((recorded.run, position, attempt))
                    continue
                self._outcomes[recorded.run, position, attempt] = outcome
                counted = self._failures.setdefault(queue, [(0, 0)])
                if outcome != "void":
                    counted.append((recorded.position, counted[-1][1] + 1 if outcome == "failed" else 0))

    def written(self, row: DestinationBreaker) -> None:
        """A breaker was written."""
        at_most = 0 if self._scene.breaker is None else self._scene.breaker.failures
        before = self._rows.get(row.queue, DestinationBreaker(row.queue))
        self._rows[row.queue] = row
        self._since[row.queue] = self._scene.loop.time()
        if row.is_open and not before.is_open:
            self._scene.count("breakers opened")
            counts = [count for position, count in self._failures.get(row.queue, ()) if position <= row.position]
            if max(counts[-1:], default=0) < at_most and not self._once_reached(row, at_most):
                self._scene.violate(OPENING_RULE, f"{row.queue} opens after {counts[-3:]}, it takes {at_most}")
        if before.is_open and not row.is_open:
            self._scene.count("breakers closed")
            if self._outcomes.get(before.probe or (0, 0, 0)) != "worked":
                self._scene.violate(CLOSING_RULE, f"{row.queue} closes, and its probe {before.probe} was not answered")
        if row.probe is not None and row.probe != before.probe:
            self._scene.count("probes")
            if before.probe is not None and not self._is_over(before):
                self._scene.violate(PROBE_RULE, f"{row.queue}: {row.probe} goes while {before.probe} is out")

    def _once_reached(self, row: DestinationBreaker, at_most: int) -> bool:
        """A row may be written for several steps: it opened with one of them, and others came after it."""
        counts = self._failures.get(row.queue, ())
        return any(count >= at_most and position <= row.position for position, count in counts[-20:])

    def _is_over(self, before: DestinationBreaker) -> bool:
        """An outcome is there, or its time has passed: to be sent, or to be answered."""
        probe = before.probe
        if probe is None or probe in self._outcomes:
            return True
        waited = timedelta(seconds=self._scene.loop.time() - self._since.get(before.queue, 0.0))
        return waited >= SENDING_TIMEOUT - timedelta(seconds=1)

    def publishing(self, order: Order, queue: str) -> None:
        row = self._rows.get(queue)
        if row is None or self.several_processes or not row.is_open:
            return
        if order != row.probe and self._scene.loop.time() - self._since[queue] > ON_ITS_WAY_S:
            self._scene.violate(HELD_RULE, f"{order} goes to {queue}, open since {row.opened_at}, probe {row.probe}")

    def _answered(self) -> list[DestinationBreaker]:
        """Those that are open although their probe was answered."""
        return [
            row
            for row in self._rows.values()
            if row.is_open and row.probe is not None and self._outcomes.get(row.probe) == "worked"
        ]

    @property
    def settled(self) -> bool:
        """True when no breaker has to close any more: who reads the journal for them may have died a moment ago."""
        return not self._answered()

    def check_end(self) -> None:
        """A breaker that is open when all has ended has no probe that was answered."""
        for row in self._answered():
            self._scene.violate(CLOSING_RULE, f"{row.queue} is open, and its probe {row.probe} was answered")


def _outcomes(event: ev.Event, plan: Plan, state: Orchestration) -> Iterator[tuple[int, int, str]]:
    """(position, attempt, outcome) of orders."""
    match event:
        case ev.TicketConcluded():
            yield event.ticket, event.attempt, "worked"
        case ev.AttemptFailed():
            yield event.ticket, event.attempt, "failed"
        case ev.TicketFailed():
            refused = any(erro.get("codigo") == "mensagem_recusada" for erro in event.erros)
            yield event.ticket, event.attempt, "void" if refused else "worked" if event.definitivo else "failed"
        case ev.TicketsClosed():
            for position in event.tickets:
                yield position, state.tickets[position].attempt, "void"
        case ev.DispatchConfirmed():
            for position, attempt in event.tickets:
                yield position, attempt, "confirmed"
