"""Mutants of dead letters of exhausted orders, and of requeueing them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from oraculo.core import requeue, state
from oraculo.core.state import Orchestration
from oraculo.core.step import Step
from oraculo.runtime.kernel import exhausted
from oraculo.simulation.mutants import Mutant, patched

_CORE = ("core-masked", "core-unmasked")
_ENGINE = ("masked",)
_reopen, _letters = requeue.reopen, exhausted.letters


def requeued_after_the_decision() -> AbstractContextManager[None]:
    return patched((requeue, "_has_consequence", lambda _state, _position: False))


def requeued_ticket_counts_as_closed() -> AbstractContextManager[None]:
    def reopen(s: Orchestration, position: int, attempt: int) -> None:
        _reopen(s, position, attempt)
        for number in s.plan.tasks[position].feeds:
            s.gates[number].closed += 1

    return patched((state, "reopen", reopen))


def requeued_order_is_not_owed() -> AbstractContextManager[None]:
    def reopen(s: Orchestration, position: int, attempt: int) -> None:
        _reopen(s, position, attempt)
        s.owed.discard(position)

    return patched((state, "reopen", reopen))


def requeued_twice() -> AbstractContextManager[None]:
    """Which attempt the letter is about is not looked at."""
    _requeue = requeue.requeue

    def careless(s: Orchestration, command: Any) -> Any:
        known = 0 <= command.position < len(s.tickets)
        attempt = s.tickets[command.position].attempt if known else 0
        return _requeue(s, type(command)(command.position, attempt, command.actor))

    return patched((requeue, "requeue", careless))


def no_letter_for_a_timeout() -> AbstractContextManager[None]:
    def letters(done: Step) -> Iterator[Any]:
        return (one for one in _letters(done) if "no answer" not in one.detail)

    return patched((exhausted, "letters", letters))


MUTANTS = [
    Mutant("requeued after the fan-in decided", requeued_after_the_decision, _CORE, 200),
    Mutant("a requeued ticket counts as closed", requeued_ticket_counts_as_closed, _CORE, 200),
    Mutant("a requeued order is not owed", requeued_order_is_not_owed, _CORE, 200),
    Mutant("requeued twice for one letter", requeued_twice, _CORE, 200),
    Mutant("a timeout leaves no dead letter", no_letter_for_a_timeout, _ENGINE, 60),
]
