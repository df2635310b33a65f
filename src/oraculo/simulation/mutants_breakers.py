"""Mutants of breakers: what is counted, what goes while one is open, what closes it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta

from oraculo.core import breaking
from oraculo.core.breaking import BreakerRules, DestinationBreaker, Order, OrderSign, Sign
from oraculo.runtime import breakers
from oraculo.runtime.breakers import BreakerBook
from oraculo.runtime.effects.held import HeldOrders
from oraculo.simulation.mutants import Mutant, patched

_WORLDS = ("breaker-masked", "breaker-unmasked")
_counted, _probed, _heard, _probing = breaking._counted, breaking._probed, breaking.heard, breaking.probing


def lets_all_through() -> AbstractContextManager[None]:
    return patched((BreakerBook, "lets_through", lambda _self, _queue, _order: True))


def success_does_not_reset() -> AbstractContextManager[None]:
    def counted(one: DestinationBreaker, said: OrderSign, at: datetime, rules: BreakerRules) -> DestinationBreaker:
        return one if said.sign is Sign.WORKED else _counted(one, said, at, rules)

    return patched((breaking, "_counted", counted))


def steps_count_twice() -> AbstractContextManager[None]:
    def heard(
        one: DestinationBreaker, signs: list[OrderSign], position: int, at: datetime, rules: BreakerRules
    ) -> DestinationBreaker:
        return _heard(one, [*signs, *signs], position, at, rules)

    return patched((breakers, "heard", heard))


def any_answer_closes() -> AbstractContextManager[None]:
    def probed(one: DestinationBreaker, said: OrderSign, at: datetime, rules: BreakerRules) -> DestinationBreaker:
        order = said.order if one.probe is None else one.probe
        return _probed(replace(one, probe=order), replace(said, order=order), at, rules)

    return patched((breaking, "_probed", probed))


def answered_probe_does_not_close() -> AbstractContextManager[None]:
    def probed(one: DestinationBreaker, said: OrderSign, at: datetime, rules: BreakerRules) -> DestinationBreaker:
        return one if said.sign is Sign.WORKED else _probed(one, said, at, rules)

    return patched((breaking, "_probed", probed))


def probes_do_not_wait_for_each_other() -> AbstractContextManager[None]:
    def probing(one: DestinationBreaker, order: Order, now: datetime) -> DestinationBreaker | None:
        after = _probing(one, order, now)
        return None if after is None else replace(after, probe_at=now)

    return patched((breakers, "probing", probing), (breaking, "PROBE_SEND_TIMEOUT", timedelta()))


def no_probe_goes_out() -> AbstractContextManager[None]:
    return patched((breakers, "probing", lambda _one, _order, _now: None))


def released_orders_are_lost() -> AbstractContextManager[None]:
    release = HeldOrders.release

    def lose(self: HeldOrders) -> list[object]:
        release(self)
        return []

    return patched((HeldOrders, "release", lose))


MUTANTS = [
    Mutant("an open breaker lets all orders through", lets_all_through, _WORLDS, 60),
    Mutant("an answer does not end a row of failures", success_does_not_reset, _WORLDS, 100),
    Mutant("a breaker counts failures twice", steps_count_twice, _WORLDS, 60),
    Mutant("any answer decides for the probe", any_answer_closes, _WORLDS, 200),
    Mutant("an answered probe does not close its breaker", answered_probe_does_not_close, _WORLDS, 100),
    Mutant("probes do not wait for each other", probes_do_not_wait_for_each_other, _WORLDS, 100),
    Mutant("an open breaker sends no probe", no_probe_goes_out, _WORLDS, 60),
    Mutant("orders that a breaker held are lost", released_orders_are_lost, _WORLDS, 60),
]
