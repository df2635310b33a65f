"""Mutants of pauses: what goes out meanwhile, how deadlines move, what is sent afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

from oraculo.core import events as ev
from oraculo.core import pausing, results, state, step, waiting
from oraculo.core.effects import Effect, Publish, Recall
from oraculo.core.state import Orchestration
from oraculo.runtime import leases
from oraculo.runtime.effects.runner import EffectRunner
from oraculo.runtime.kernel.states import States
from oraculo.simulation.mutants import Mutant, patched

_SMALL = ("core-masked", "core-unmasked", "waits-masked", "maps-masked")
_ENGINE = ("masked", "unmasked", "brokers-masked", "ceiling-unmasked")
_REPLICAS = ("replicas-unmasked", "replicas-masked")
_react, _restart, _evolve, _take = step.react, pausing.restart, state.evolve, EffectRunner.take


def goes_out_while_paused() -> AbstractContextManager[None]:
    def react(events: list[ev.Event], s: Orchestration) -> list[Effect]:
        paused, s.paused = s.paused, None
        try:
            return _react(events, s)
        finally:
            s.paused = paused

    return patched((step, "react", react))


def resuming_sends_nothing() -> AbstractContextManager[None]:
    def react(events: list[ev.Event], s: Orchestration) -> list[Effect]:
        return _react([one for one in events if not isinstance(one, ev.OrchestrationResumed)], s)

    return patched((step, "react", react))


def deadlines_do_not_move() -> AbstractContextManager[None]:
    def restart(s: Orchestration, at: datetime) -> None:
        assert s.paused is not None
        _restart(s, s.paused.since)

    return patched((pausing, "restart", restart))


def whole_deadline_does_not_move() -> AbstractContextManager[None]:
    def restart(s: Orchestration, at: datetime) -> None:
        deadline = s.deadline
        _restart(s, at)
        s.deadline = deadline

    return patched((pausing, "restart", restart))


def deadlines_move_twice_as_far() -> AbstractContextManager[None]:
    def restart(s: Orchestration, at: datetime) -> None:
        assert s.paused is not None
        _restart(s, at + (at - s.paused.since))

    return patched((pausing, "restart", restart))


def retry_is_counted_from_the_clock() -> AbstractContextManager[None]:
    return patched((results, "clock", lambda _s, now: now))


def wait_is_counted_from_the_clock() -> AbstractContextManager[None]:
    return patched((waiting, "clock", lambda _s, now: now))


def timers_run_on() -> AbstractContextManager[None]:
    def evolve(s: Orchestration, event: ev.Event, at: datetime) -> None:
        kept = list(s.timers)
        _evolve(s, event, at)
        if isinstance(event, ev.OrchestrationPaused):
            s.timers = kept

    return patched((state, "evolve", evolve), (step, "evolve", evolve))


def orders_are_not_recalled() -> AbstractContextManager[None]:
    def take(self: EffectRunner, s: Orchestration, effects: Any) -> None:
        _take(self, s, [one for one in effects if not isinstance(one, Recall)])

    return patched((EffectRunner, "take", take))


def resumed_orders_are_lost() -> AbstractContextManager[None]:
    def take(self: EffectRunner, s: Orchestration, effects: Any) -> None:
        _take(self, s, [one for one in effects if not (isinstance(one, Publish) and s.pauses)])

    return patched((EffectRunner, "take", take))


def leases_ignore_pauses() -> AbstractContextManager[None]:
    return patched((leases, "_is_paused", lambda _s: False))


def what_others_paused_is_not_looked_at() -> AbstractContextManager[None]:
    """What no broker confirmed is sent again by what is known in memory."""

    async def look_at(_self: States, _runs: Sequence[int]) -> None:
        return

    return patched((States, "look_at", look_at))


MUTANTS = [
    Mutant("an order goes out while it is paused", goes_out_while_paused, _SMALL, 50),
    Mutant("resuming sends nothing", resuming_sends_nothing, _SMALL, 50),
    Mutant("deadlines do not move with a pause", deadlines_do_not_move, _SMALL, 100),
    Mutant("the deadline of the whole does not move with a pause", whole_deadline_does_not_move, _SMALL, 300),
    Mutant("deadlines move twice as far as the pause", deadlines_move_twice_as_far, _SMALL, 300),
    Mutant("a retry is counted from the clock while it is paused", retry_is_counted_from_the_clock, _SMALL, 200),
    Mutant("a wait is counted from the clock while it is paused", wait_is_counted_from_the_clock, _SMALL, 200),
    Mutant("timers run on while it is paused", timers_run_on, _SMALL, 200),
    Mutant("a pause recalls no order", orders_are_not_recalled, _ENGINE, 200),
    Mutant("orders of a pause are lost in the runner", resumed_orders_are_lost, _ENGINE, 60),
    Mutant("leases do not know of pauses", leases_ignore_pauses, _ENGINE, 200),
    Mutant("a pause of another replica is not looked at", what_others_paused_is_not_looked_at, _REPLICAS, 20, 330),
]
