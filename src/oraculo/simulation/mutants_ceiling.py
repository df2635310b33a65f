"""Mutants of the ceiling: how many may be out, and who goes first; and of several processes that keep it together."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from typing import Any

from oraculo.core.effects import Effect
from oraculo.core.events import Event, TicketsDispatched
from oraculo.core.flow.allocation import score_of_plan
from oraculo.core.flow.outcome import flow_of
from oraculo.core.flow.profile import Flow
from oraculo.core.priority import urgency
from oraculo.core.state import Orchestration
from oraculo.core.step import react
from oraculo.errors import FencedError
from oraculo.ports.clock import Clock
from oraculo.runtime.effects import runner
from oraculo.runtime.effects.runner import EffectRunner
from oraculo.runtime.kernel.ceiling import journal
from oraculo.runtime.kernel.ceiling.ceiling import ConcurrencyCeiling, Order, Score
from oraculo.runtime.kernel.ceiling.journal import JournalCeiling
from oraculo.simulation.mutants import Mutant, patched
from oraculo.simulation.shared_store import ModelSharedStore

_KINDS = ("ceiling-unmasked", "ceiling-masked")
_FLEETS = ("fleet-unmasked", "fleet-masked")
_let_out = ConcurrencyCeiling.let_out


def priority_does_not_count() -> AbstractContextManager[None]:
    """As before priorities counted: of plans of the same risk band, the one that came first goes first."""

    def score_of(state: Orchestration, _position: int, _since: datetime, _clock: Clock, *_: Any) -> Score:
        return lambda: score_of_plan(flow_of(state).risk_band, None).value

    return patched((runner, "score_of", score_of))


def first_come_first_served() -> AbstractContextManager[None]:
    return patched((runner, "score_of", lambda *_: lambda: 0.5))


def least_urgent_first() -> AbstractContextManager[None]:
    def score_of(state: Orchestration, _position: int, _since: datetime, _clock: Clock, *_: Any) -> Score:
        return lambda: -flow_of(state).fresh_score.value

    return patched((runner, "score_of", score_of))


def a_changed_priority_does_not_count() -> AbstractContextManager[None]:
    """As long as the process lives: what waits stays where it was."""

    def score_of(state: Orchestration, position: int, since: datetime, clock: Clock, *_: Any) -> Score:
        fresh, timeout = flow_of(state).score_of(position), state.plan.tasks[position].timeout
        return lambda: fresh.at_urgency(urgency(since, since + timeout, clock.now())).value

    return patched((runner, "score_of", score_of))


def one_more_than_may() -> AbstractContextManager[None]:
    def due(self: ConcurrencyCeiling[Any], wanted: Any) -> list[Any]:
        self.limit += 1
        try:
            return _due(self, wanted)
        finally:
            self.limit -= 1

    _due = ConcurrencyCeiling.due
    return patched((ConcurrencyCeiling, "due", due))


def a_retry_takes_no_place() -> AbstractContextManager[None]:
    def let_out(self: ConcurrencyCeiling[Any], order: Order) -> None:
        if order[2] == 1:
            _let_out(self, order)

    return patched((ConcurrencyCeiling, "let_out", let_out))


def a_restart_counts_nothing() -> AbstractContextManager[None]:
    return patched((ConcurrencyCeiling, "with_workers", lambda *_: None))


def places_are_never_given_back() -> AbstractContextManager[None]:
    return patched((ConcurrencyCeiling, "settle", lambda *_: None))


def what_is_unwanted_takes_a_place() -> AbstractContextManager[None]:
    """An order whose ticket was closed while it waited is counted for ever."""

    def due(self: ConcurrencyCeiling[Any], wanted: Any) -> list[Any]:
        found = _due(self, lambda _what: True)
        return [what for what in found if wanted(what)]

    _due, _settle = ConcurrencyCeiling.due, ConcurrencyCeiling.settle

    def settle(self: ConcurrencyCeiling[Any], state: Orchestration) -> None:
        if state.closed_at is None:
            _settle(self, state)

    return patched((ConcurrencyCeiling, "due", due), (ConcurrencyCeiling, "settle", settle))


def what_a_pause_recalled_waits_for_its_own_place() -> AbstractContextManager[None]:
    """Orders that hold all places wait until there is a place."""

    def add(self: ConcurrencyCeiling[Any], order: Order, score: Score, what: Any) -> bool:
        out, self._out = self._out, {}
        try:
            return _add(self, order, score, what)
        finally:
            self._out = out

    _add = ConcurrencyCeiling.add
    return patched((ConcurrencyCeiling, "add", add), (ConcurrencyCeiling, "take_back", lambda *_: None))


def every_process_has_the_duty() -> AbstractContextManager[None]:
    async def claim_duty(self: ModelSharedStore, name: str) -> str | None:
        note = await _claim_duty(self, name)
        return "" if note is None else note

    async def note_duty(self: ModelSharedStore, name: str, note: str) -> None:
        with suppress(FencedError):
            await _note_duty(self, name, note)

    _claim_duty, _note_duty = ModelSharedStore.claim_duty, ModelSharedStore.note_duty
    return patched((ModelSharedStore, "claim_duty", claim_duty), (ModelSharedStore, "note_duty", note_duty))


def a_successor_reads_no_note() -> AbstractContextManager[None]:
    """What was let out and is not confirmed takes no place."""

    async def take_over(self: JournalCeiling, _note: str) -> None:
        await _take_over(self, "")

    _take_over = JournalCeiling._take_over
    return patched((JournalCeiling, "_take_over", take_over))


def only_what_is_dispatched_is_owed() -> AbstractContextManager[None]:
    """Another attempt that an operator gave, or that was taken back from a worker, waits for ever."""

    def only_dispatched(events: Sequence[Event], state: Orchestration) -> list[Effect]:
        return react([one for one in events if isinstance(one, TicketsDispatched)], state)

    return patched((journal, "react", only_dispatched))


def only_fluxo_c_has_the_ceiling_of_the_fleet() -> AbstractContextManager[None]:
    def take(self: EffectRunner, state: Orchestration, tickets: Any) -> None:
        self._fleet_ceiling = isinstance(state.plan.profile, Flow)
        _take(self, state, tickets)

    _take = EffectRunner._take_orders
    return patched((EffectRunner, "_take_orders", take))


MUTANTS = [
    Mutant("priority does not count", priority_does_not_count, _KINDS, 150),
    Mutant("first come, first served", first_come_first_served, _KINDS, 60),
    Mutant("the least urgent goes first", least_urgent_first, _KINDS, 60),
    Mutant("a changed priority does not count", a_changed_priority_does_not_count, _KINDS, 150),
    Mutant("one more than may", one_more_than_may, _KINDS, 30),
    Mutant("a retry takes no place", a_retry_takes_no_place, _KINDS, 100),
    Mutant("a restart counts nothing", a_restart_counts_nothing, _KINDS, 100),
    Mutant("places are never given back", places_are_never_given_back, _KINDS, 30),
    Mutant("what is unwanted takes a place", what_is_unwanted_takes_a_place, _KINDS, 100),
    Mutant("what a pause recalled waits for its own place", what_a_pause_recalled_waits_for_its_own_place, _KINDS, 80),
    Mutant("a fleet lets out one more than may", one_more_than_may, _FLEETS, 30),
    Mutant("every process has the duty of the ceiling", every_process_has_the_duty, _FLEETS, 60),
    Mutant("a successor reads no note", a_successor_reads_no_note, _FLEETS, 200),
    Mutant("a fleet owes only what is dispatched", only_what_is_dispatched_is_owed, _FLEETS, 60),
    Mutant("only Fluxo C has the ceiling of a fleet", only_fluxo_c_has_the_ceiling_of_the_fleet, _FLEETS, 60),
]
