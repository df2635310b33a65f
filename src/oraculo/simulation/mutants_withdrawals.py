"""Mutants of attempts that are taken back from their workers."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

from oraculo.core import results, withdrawing
from oraculo.core.state import Orchestration
from oraculo.core.ticket_state import Ticket
from oraculo.core.vocabulary import Cause
from oraculo.simulation.mutants import Mutant, patched

_CORE, _FLOW = ("core-masked", "core-unmasked"), ("flow-masked", "flow-unmasked")
_take_back, _withdraw = withdrawing.take_back, withdrawing.withdraw


def withdrawn_attempt_is_used_up() -> AbstractContextManager[None]:
    return patched((Ticket, "used", property(lambda ticket: ticket.attempt)))


def withdrawn_order_is_not_owed() -> AbstractContextManager[None]:
    def take_back(state: Orchestration, event: Any, at: datetime) -> None:
        _take_back(state, event, at)
        state.owed.discard(event.ticket)

    return patched((withdrawing, "take_back", take_back))


def withdrawn_whatever_the_attempt() -> AbstractContextManager[None]:
    """Which attempt is to be taken back is not looked at: the one of another worker is."""

    def careless(state: Orchestration, command: Any) -> Any:
        known = 0 <= command.position < len(state.tickets)
        attempt = state.tickets[command.position].attempt if known else 0
        fields = (command.cause, command.worker, command.wait, command.actor, command.by)
        return _withdraw(state, type(command)(command.position, attempt, *fields))

    return patched((withdrawing, "withdraw", careless))


def withdrawn_work_is_thrown_away() -> AbstractContextManager[None]:
    return patched((results, "counts_after_all", lambda _state, _position, _attempt: False))


def withdrawn_work_counts_for_ever() -> AbstractContextManager[None]:
    def always(state: Orchestration, position: int, attempt: int) -> bool:
        return bool(state.tickets[position].withdrawn >> attempt & 1)

    return patched((results, "counts_after_all", always))


def tickets_make_room_for_ever() -> AbstractContextManager[None]:
    return patched((withdrawing, "PREEMPTIONS_MAX", 99))


def lapsed_offers_use_up_withdrawals() -> AbstractContextManager[None]:
    """Offers that were not taken count as often withdrawn as tickets whose workers died."""

    def is_left(ticket: Ticket, _cause: Cause) -> bool:
        return ticket.withdrawn.bit_count() < withdrawing.WITHDRAWALS_MAX

    return patched((withdrawing, "_is_left", is_left))


def offers_lapse_for_ever() -> AbstractContextManager[None]:
    return patched((withdrawing, "LAPSES_MAX", 999))


def what_undoes_makes_room() -> AbstractContextManager[None]:
    def may_preempt(state: Orchestration, position: int) -> bool:
        causes = state.tickets[position].causes or []
        return causes.count(Cause.PREEMPTADO) < withdrawing.PREEMPTIONS_MAX

    return patched((withdrawing, "may_preempt", may_preempt))


def whatever_made_room_is_used_up() -> AbstractContextManager[None]:
    """An attempt that made room for another counts as one of those that its ticket has."""

    def take_back(state: Orchestration, event: Any, at: datetime) -> None:
        _take_back(state, event, at)
        if event.cause is Cause.PREEMPTADO:
            state.tickets[event.ticket].withdrawn &= ~(1 << event.attempt)

    return patched((withdrawing, "take_back", take_back))


MUTANTS = [
    Mutant("a ticket makes room for others for ever", tickets_make_room_for_ever, _CORE, 1500),
    Mutant("offers that lapsed use up withdrawals", lapsed_offers_use_up_withdrawals, _CORE, 300),
    Mutant("offers lapse for ever", offers_lapse_for_ever, _CORE, 300),
    Mutant("what undoes another makes room", what_undoes_makes_room, _FLOW, 1500),
    Mutant("an attempt that made room is used up", whatever_made_room_is_used_up, _CORE, 300),
    Mutant("a withdrawn attempt is used up", withdrawn_attempt_is_used_up, _CORE, 300),
    Mutant("a withdrawn order is not owed", withdrawn_order_is_not_owed, _CORE, 200),
    Mutant("any attempt is withdrawn", withdrawn_whatever_the_attempt, _CORE, 200),
    Mutant("work of a withdrawn attempt is thrown away", withdrawn_work_is_thrown_away, _CORE, 300),
    Mutant("work of a withdrawn attempt counts for ever", withdrawn_work_counts_for_ever, _CORE, 300),
]
