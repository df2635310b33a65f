"""When an orchestration will end: what its open tickets have still to do, along its gates, by what was seen of them.

Tickets that stand alike (behind the same gate, with the same distribution, running for about as long) are one group, so
the work is that of the shape of a plan, not of its width; a very wide one is judged by its progress so far. Chance is
drawn from the numbers of trial and group: the same state at the same instant gives the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from oraculo.core.blocks import Block
from oraculo.core.durations.history import Estimate, TaskKey, size_class
from oraculo.core.durations.sketch import DurationQuantiles, bin_of
from oraculo.core.flow.profile import flow_in
from oraculo.core.state import Orchestration
from oraculo.core.tenants import local_name, tenant_of
from oraculo.core.vocabulary import FanIn, Kind, Phase

MAX_OPEN_TICKETS = 2_000  # beyond, a run is judged by its progress
MOST_TRIALS, LEAST_TRIALS, DRAWS = 64, 8, 6_000
PROGRESS_SPREAD = 1.6  # p90 over p50 of a run that is judged by its progress
_NOW = -1  # the gate that is open already
Estimator = Callable[[TaskKey, float | None], Estimate | None]


class Unforeseen(StrEnum):
    """Why it cannot be said when a run ends."""

    NO_HISTORY = "sem_historico"  # nothing was seen yet of a task that it waits for
    HUMAN = "espera_externa"  # it waits for a signal or a decision that may come at any time
    PAUSED = "pausada"


class Risk(StrEnum):
    """Whether the deadline will be missed."""

    NONE = "nenhum"
    POSSIBLE = "possivel"  # one of ten or more such runs miss it
    LIKELY = "provavel"  # more than half of them do
    MISSED = "perdido"


@dataclass(frozen=True, slots=True)
class RunForecast:
    """Half of such runs end by `p50`, nine of ten by `p90`."""

    p50: datetime
    p90: datetime

    def risk(self, deadline: datetime | None, now: datetime) -> Risk:
        if deadline is None:
            return Risk.NONE
        if now >= deadline:
            return Risk.MISSED
        return Risk.LIKELY if self.p50 > deadline else Risk.POSSIBLE if self.p90 > deadline else Risk.NONE


@dataclass(slots=True)
class _Group:
    """`count` tickets that start when gate `after` opens, `wait` later, and have run for `elapsed` ms by now."""

    after: int
    wait: float
    found: DurationQuantiles | None  # None: it ends after `wait`
    elapsed: float
    waves: float = 1.0
    count: int = 0

    def draw(self, chance: float) -> float:
        """Milliseconds until the last of them ends, after the gate opened."""
        if self.found is None:
            return self.wait
        last = self.found.remaining(self.elapsed, chance ** (1.0 / self.count))
        return self.wait + last + (self.waves - 1) * self.found.quantile(0.5)


def key_of(state: Orchestration, position: int) -> TaskKey:
    """What the task of a ticket is, as far as its duration goes."""
    task = state.plan.tasks[position]  # parameters as the plan has them: what they become is known too late
    size = size_class(len(task.parametros)) if task.kind.is_sent else 0
    return TaskKey(tenant_of(state.correlation_id), task.kind, local_name(task.name), size)


def planned_ms(state: Orchestration, position: int) -> float | None:
    """The estimate that a plan of Fluxo C has of its own."""
    flow = flow_in(state.plan)
    return float(flow.specs[position].estimated_ms) if flow is not None and position < len(flow.specs) else None


def foresee(state: Orchestration, now: datetime, estimator: Estimator) -> RunForecast | Unforeseen | None:
    """When an open orchestration ends, or why that cannot be said; None when it has ended."""
    if state.closed_at is not None:
        return None
    if state.paused is not None:
        return Unforeseen.PAUSED
    if state.awaits_approval:
        return Unforeseen.HUMAN
    if state.open > MAX_OPEN_TICKETS:
        return _by_progress(state, now)
    made = _Foresight(state, now, estimator)
    return made.unforeseen or made.ending()


def _by_progress(state: Orchestration, now: datetime) -> RunForecast | Unforeseen:
    closed, passed = len(state.tickets) - state.open, now - state.started_at
    if not closed or passed <= timedelta():
        return Unforeseen.NO_HISTORY
    left = passed * (state.open / closed)
    return RunForecast(now + left, now + left * PROGRESS_SPREAD)


class _Foresight:
    def __init__(self, state: Orchestration, now: datetime, estimator: Estimator) -> None:
        self._state = state
        self._now = now
        self._estimator = estimator
        self._known: dict[TaskKey, Estimate | None] = {}
        self._groups: dict[tuple[object, ...], _Group] = {}
        self.unforeseen: Unforeseen | None = None
        of = {position: self._group(position) for position in self._open()}
        self._of = {position: group for position, group in of.items() if group is not None}

    def _open(self) -> Iterator[int]:
        """Tickets that are open and stand for themselves: an item of a map or a round of a loop stands in its owner."""
        blocks = self._state.blocks
        for position, ticket in enumerate(self._state.tickets):
            if ticket.phase is not Phase.CLOSED and (blocks is None or blocks.of(position) is None):
                yield position

    def _estimate(self, position: int) -> Estimate | None:
        key = key_of(self._state, position)
        if key not in self._known:
            self._known[key] = self._estimator(key, planned_ms(self._state, position))
        return self._known[key]

    def _group(self, position: int) -> _Group | None:
        ticket, task = self._state.tickets[position], self._state.plan.tasks[position]
        phase = ticket.phase
        after = task.after if phase is Phase.WAITING and task.after is not None else _NOW
        if after != _NOW and self._state.gates[after].passed:
            after = _NOW
        wait = elapsed = 0.0
        if phase in (Phase.BACKOFF, Phase.HELD) and ticket.due_at is not None:
            wait = max(0.0, _ms(ticket.due_at - self._now))
        elif phase in (Phase.RUNNING, Phase.GROWN) and ticket.started_at is not None:
            elapsed = max(0.0, _ms(self._now - ticket.started_at))
        if task.kind is Kind.ESPERA:
            if phase is Phase.HELD and ticket.due_at is not None:
                return self._put(_Group(after, wait, None, 0.0))
            self.unforeseen = Unforeseen.HUMAN
            return None
        waves = 1.0
        found = self._estimate(position)
        if found is None and phase is Phase.GROWN:
            found, waves = self._of_items(position)
            elapsed = 0.0
        if found is None:
            self.unforeseen = self.unforeseen or Unforeseen.NO_HISTORY
            return None
        return self._put(_Group(after, wait, found.distribution, elapsed, waves))

    def _of_items(self, owner: int) -> tuple[Estimate | None, float]:
        """How long one item or round takes, and how many times that is to come one after the other."""
        grown = None if self._state.blocks is None else self._state.blocks.grown_of(owner)
        if grown is None or not grown.positions:
            return None, 1.0
        found = self._estimate(grown.positions[-1])
        if not isinstance(grown, Block):
            return found, 1.0
        tickets = self._state.tickets
        left = sum(tickets[position].phase is not Phase.CLOSED for position in grown.positions)
        return found, max(1.0, left / grown.at_once) if grown.at_once else 1.0

    def _put(self, one: _Group) -> _Group:
        about = bin_of(one.elapsed + 1), bin_of(one.wait + 1)
        group = self._groups.setdefault((one.after, id(one.found), one.waves, *about), one)
        group.count += 1
        return group

    # -- along the gates -----------------------------------------------------------------------------------------------

    def ending(self) -> RunForecast:
        groups = list(self._groups.values())
        if not groups:
            return RunForecast(self._now, self._now)
        inputs = self._inputs()
        order = _order(inputs)
        trials = max(LEAST_TRIALS, min(MOST_TRIALS, DRAWS // len(groups)))
        ends = sorted(self._trial(number, groups, inputs, order) for number in range(trials))
        p50, p90 = ends[trials // 2], ends[min(trials - 1, (trials * 9) // 10)]
        return RunForecast(self._now + timedelta(milliseconds=p50), self._now + timedelta(milliseconds=p90))

    def _inputs(self) -> dict[int, dict[int, tuple[_Group, int]]]:
        """Open gates: which groups feed each, and how many tickets of each."""
        found: dict[int, dict[int, tuple[_Group, int]]] = {}
        gates = self._state.gates
        for position, group in self._of.items():
            for gate in self._state.plan.tasks[position].feeds:
                if gates[gate].passed is None:
                    feeding = found.setdefault(gate, {})
                    feeding[id(group)] = (group, feeding.get(id(group), (group, 0))[1] + 1)
        return found

    def _trial(
        self,
        number: int,
        groups: list[_Group],
        inputs: dict[int, dict[int, tuple[_Group, int]]],
        order: list[int],
    ) -> float:
        drawn = {id(group): group.draw(_chance(number, index)) for index, group in enumerate(groups)}
        opened: dict[int, float] = {_NOW: 0.0}
        last = 0.0
        plan = self._state.plan
        for gate in order:
            ends = [
                (opened.get(group.after, 0.0) + drawn[identity], group, count)
                for identity, (group, count) in inputs[gate].items()
            ]
            opened[gate] = at = self._passes(gate, ends)
            if not plan.gates[gate].releases:
                last = max(last, at)
        unfed = (group for position, group in self._of.items() if not plan.tasks[position].feeds)
        return max([last, *(opened.get(group.after, 0.0) + drawn[id(group)] for group in unfed)])

    def _passes(self, number: int, ends: list[tuple[float, _Group, int]]) -> float:
        """When a gate passes: with its last input, or with the one that makes enough."""
        gate, count = self._state.plan.gates[number], self._state.gates[number]
        if gate.mode not in (FanIn.QUORUM, FanIn.PRIMEIRO):
            return max(end for end, _, _ in ends)
        missing = gate.needed - count.ok
        for end, group, tickets in sorted(ends, key=lambda one: one[0]):
            if missing <= tickets:
                share = max(0.0, missing / (tickets + 1))
                return (
                    end if group.found is None else min(end, group.wait + group.found.remaining(group.elapsed, share))
                )
            missing -= tickets
        return max(end for end, _, _ in ends)


def _order(inputs: dict[int, dict[int, tuple[_Group, int]]]) -> list[int]:
    """Gates in an order in which each comes after those that its inputs wait for."""
    needs = {gate: {group.after for group, _ in feeding.values()} & inputs.keys() for gate, feeding in inputs.items()}
    behind: dict[int, list[int]] = {}
    for gate, before in needs.items():
        for one in before:
            behind.setdefault(one, []).append(gate)
    ready = [gate for gate, before in needs.items() if not before]
    for gate in ready:  # grows while it is read
        for one in behind.get(gate, ()):
            needs[one].discard(gate)
            if not needs[one]:
                ready.append(one)
    return ready


def _ms(span: timedelta) -> float:
    return span / timedelta(milliseconds=1)


def _chance(trial: int, group: int) -> float:
    """A number between 0 and 1 that is as good as drawn: the same for the same trial and group."""
    mixed = (trial * 0x9E3779B97F4A7C15 + group * 0xBF58476D1CE4E5B9 + 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return ((mixed ^ (mixed >> 31)) >> 11) / (1 << 53)
