"""Mutants of choices of workers: what is given to whom, and what is kept of it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from oraculo.core import allocating
from oraculo.core.events import TicketAllocated
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Verdict
from oraculo.ports.work import Fate, Outcome, Work
from oraculo.runtime.scheduler.scheduler import LeaseScheduler
from oraculo.simulation.mutants import Mutant, patched

_CORE = ("core-masked", "core-unmasked")
_CHOSEN = ("chosen-masked", "chosen-unmasked")
_allocate, _recorded = allocating.allocate, LeaseScheduler._recorded


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


MUTANTS = [
    Mutant("tickets are given before it is written", tickets_are_given_before_it_is_written, _CHOSEN, 5),
    Mutant("choices that came too late count", choices_that_came_too_late_count, _CHOSEN, 30),
    Mutant("any attempt is given to a worker", any_attempt_is_given, _CORE, 300),
    Mutant("closed tickets are given to workers", closed_tickets_are_given, _CORE, 200),
    Mutant("choices are forgotten", choices_are_forgotten, _CORE, 200),
]
