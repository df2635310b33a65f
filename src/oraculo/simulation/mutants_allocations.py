"""Mutants of choices of workers: what is given to whom, and what is kept of it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from oraculo.core import allocating
from oraculo.core.events import TicketAllocated
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Verdict
from oraculo.ports.broker import Settle
from oraculo.ports.work import Fate, Outcome, Work
from oraculo.runtime.scheduler.offers import BrokerOffers
from oraculo.runtime.scheduler.scheduler import LeaseScheduler
from oraculo.simulation.mutants import Mutant, patched

_CORE = ("core-masked", "core-unmasked")
_CHOSEN = ("chosen-masked", "chosen-unmasked")
_allocate, _recorded = allocating.allocate, LeaseScheduler._recorded
_end_lapsed, _offer = BrokerOffers._end_lapsed, BrokerOffers._offer


def any_attempt_is_given() -> AbstractContextManager[None]:
    """Which attempt a worker was chosen for is not looked at."""

    def careless(state: Orchestration, command: Any) -> Any:
        known = 0 <= command.position < len(state.tickets)
        attempt = state.tickets[command.position].attempt if known else 0
        return _allocate(state, type(command)(command.position, attempt, command.allocation))

    return patched((allocating, "allocate", careless))


def closed_tickets_are_given() -> AbstractContextManager[None]:
    def careless(state: Orchestration, command: Any) -> Any:
        return TicketAllocated(command.position, command.attempt, command.allocation), Verdict.APPLIED

    return patched((allocating, "allocate", careless))


def choices_are_forgotten() -> AbstractContextManager[None]:
    return patched((allocating, "note", lambda _state, _event, _at: None))


def tickets_are_given_before_it_is_written() -> AbstractContextManager[None]:
    async def recorded(_self: Any, _gateway: Any, pairs: list[Any]) -> list[Any]:
        return pairs

    return patched((LeaseScheduler, "_recorded", recorded))


def choices_that_came_too_late_count() -> AbstractContextManager[None]:
    """What became of writing a choice down is not looked at."""

    async def recorded(self: Any, gateway: Any, pairs: list[Any]) -> list[Any]:
        submit = self._submit

        async def careless(works: list[Work]) -> list[Outcome]:
            return [Outcome(Fate.APPLIED) for _ in await submit(works)]

        self._submit = careless
        try:
            return await _recorded(self, gateway, pairs)
        finally:
            self._submit = submit

    return patched((LeaseScheduler, "_recorded", recorded))


def lapsed_offers_are_not_withdrawn() -> AbstractContextManager[None]:
    """What was not taken goes back to its queue, and the journal says nothing."""

    async def fence(*_args: Any) -> Settle:
        return Settle.RETRY

    return patched((BrokerOffers, "_fence", fence))


def lapsed_offers_are_forgotten() -> AbstractContextManager[None]:
    async def fence(*_args: Any) -> Settle:
        return Settle.ACK

    return patched((BrokerOffers, "_fence", fence))


def offers_end_at_once() -> AbstractContextManager[None]:
    async def end_lapsed(self: Any) -> None:
        for given in self._given.values():
            given.until = 0.0
        await _end_lapsed(self)

    return patched((BrokerOffers, "_end_lapsed", end_lapsed))


def workers_that_began_are_not_believed() -> AbstractContextManager[None]:
    return patched((BrokerOffers, "began", lambda _self, _key, _running: None))


def lost_offers_are_not_missed() -> AbstractContextManager[None]:
    """The message of the common queue is done with as soon as it is offered."""
    return patched((BrokerOffers, "_offer", _settled_at_once))


async def _settled_at_once(self: Any, one: Any, leases: Any) -> None:
    await _offer(self, one, leases)
    for given in [each for each in self._given.values() if each.lease in leases]:
        self._took(given)


MUTANTS = [
    Mutant("offers that lapsed are not withdrawn", lapsed_offers_are_not_withdrawn, _CHOSEN, 60),
    Mutant("offers that lapsed are forgotten", lapsed_offers_are_forgotten, ("chosen-unmasked",), 60),
    Mutant("offers end at once", offers_end_at_once, _CHOSEN, 30),
    Mutant("workers that began are not believed", workers_that_began_are_not_believed, _CHOSEN, 60),
    Mutant("offers are taken without a word", lost_offers_are_not_missed, ("chosen-unmasked",), 60),
    Mutant("tickets are given before it is written", tickets_are_given_before_it_is_written, _CHOSEN, 5),
    Mutant("choices that came too late count", choices_that_came_too_late_count, _CHOSEN, 30),
    Mutant("any attempt is given to a worker", any_attempt_is_given, _CORE, 300),
    Mutant("closed tickets are given to workers", closed_tickets_are_given, _CORE, 200),
    Mutant("choices are forgotten", choices_are_forgotten, _CORE, 200),
]
