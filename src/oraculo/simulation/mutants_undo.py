"""Mutants of the rules for undoing plans with named tasks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from oraculo.core import advance, decide, endings, undoing
from oraculo.core import events as ev
from oraculo.core.commands import Cancel, Command
from oraculo.core.plan import Added, Plan
from oraculo.core.reasons import ReasonCode, because
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Ending, Phase, Status, Verdict
from oraculo.simulation.mutants import Mutant, patched

_UNDO = ("undo-masked", "undo-unmasked")
_was_done, _wanted, _before, _order = undoing._was_done, undoing.wanted, undoing._before, undoing.order
_by_absorption, _admitted, _following, _end = (
    endings._by_absorption,
    undoing.admitted,
    undoing.following,
    advance._end,
)


def undo_of_a_skipped_task() -> AbstractContextManager[None]:
    def done(s: Orchestration, position: int, closing: Status | None) -> bool:
        return s.tickets[position].status is Status.IGNORADA or _was_done(s, position, closing)

    return patched((undoing, "_was_done", done))


def undo_of_what_no_broker_took() -> AbstractContextManager[None]:
    return patched((undoing, "_was_taken", lambda _s, _position: True))


def failed_output_undoes() -> AbstractContextManager[None]:
    def ending(s: Orchestration) -> Status:
        return Status.ERRO if s.output_fault is not None else _by_absorption(s)

    return patched((endings, "_ENDINGS", {**endings._ENDINGS, Ending.ABSORBED: ending}))


def every_cancel_undoes() -> AbstractContextManager[None]:
    def end(*args: Any, undo: bool = False) -> list[ev.Event]:
        return _end(*args, undo=undo or args[1] is Status.CANCELADA)

    return patched((advance, "_end", end))


def a_deadline_does_not_undo() -> AbstractContextManager[None]:
    return patched((advance, "_end", lambda *args, undo=False: _end(*args)))


def all_at_once() -> AbstractContextManager[None]:
    """What was done first is undone first, or with all the others."""

    def order(s: Orchestration, units: Any, ending: Status, *, asked: bool = False) -> ev.CompensationStarted:
        event = _order(s, units, ending, asked=asked)
        assert event.added is not None
        return replace(event, added=Added((), (), (), event.added.windows))

    return patched((undoing, "order", order))


def rounds_at_once() -> AbstractContextManager[None]:
    """Rounds of a loop are undone together."""
    return patched((undoing, "_at_once", lambda _plan, _position: undoing.AT_ONCE_MAX_TICKETS))


def nothing_waits_past_others() -> AbstractContextManager[None]:
    def before(plan: Plan, ordered: Sequence[int], units: Any) -> dict[int, frozenset[int]]:
        found = _before(plan, ordered, units)
        for position in found:
            near = {p for number in plan.tasks[position].feeds for p in plan.gates[number].releases}
            found[position] = frozenset(found[position] & near)
        return found

    return patched((undoing, "_before", before))


def items_from_the_first_on() -> AbstractContextManager[None]:
    def wanted(s: Orchestration, closing: Status | None = None) -> Any:
        return {p: [sorted(unit) for unit in units] for p, units in _wanted(s, closing).items()}

    return patched((undoing, "wanted", wanted))


def one_item_too_many() -> AbstractContextManager[None]:
    def following(s: Orchestration, closing: Any) -> list[int]:
        for window in s.windows:
            window.at_once += 1
        try:
            return _following(s, closing)
        finally:
            for window in s.windows:
                window.at_once -= 1

    return patched((undoing, "following", following))


def the_ending_is_forgotten() -> AbstractContextManager[None]:
    def maybe(s: Orchestration) -> list[ev.Event]:
        if not s.open and s.ending is not None:
            return [ev.OrchestrationClosed(Status.CONCLUIDA)]
        return _maybe_end(s)

    return patched((advance, "_maybe_end", maybe))


def a_cancel_stops_undoing() -> AbstractContextManager[None]:
    def decided(s: Orchestration, command: Command, now: Any) -> Any:
        if isinstance(command, Cancel) and s.ending is not None and not s.status.final:
            left = [p for p, t in enumerate(s.tickets) if t.phase is not Phase.CLOSED]
            why = because(ReasonCode.CANCELLED, text="")
            return [ev.CancelRequested(""), ev.TicketsClosed(left, Status.CANCELADA, why)], Verdict.APPLIED
        return _decide(s, command, now)

    from oraculo.core import step

    return patched((step, "decide", decided))


_maybe_end, _decide = advance._maybe_end, decide.decide

MUTANTS = [
    Mutant("undo of a skipped task", undo_of_a_skipped_task, _UNDO, 300),
    Mutant("undo of what no broker took", undo_of_what_no_broker_took, _UNDO, 800),
    Mutant("a failed output undoes", failed_output_undoes, _UNDO, 300),
    Mutant("every cancel undoes", every_cancel_undoes, _UNDO, 400),
    Mutant("a deadline does not undo", a_deadline_does_not_undo, _UNDO, 200),
    Mutant("undone all at once", all_at_once, _UNDO, 200),
    Mutant(
        "nothing waits past what nothing undoes",
        nothing_waits_past_others,
        _UNDO,
        800,
    ),
    Mutant("items are undone from the first on", items_from_the_first_on, _UNDO, 300),
    Mutant("rounds are undone together", rounds_at_once, _UNDO, 300),
    Mutant("one item too many is undone at once", one_item_too_many, _UNDO, 800),
    Mutant("the ending is forgotten while undoing", the_ending_is_forgotten, _UNDO, 100),
    Mutant("a cancel stops undoing", a_cancel_stops_undoing, _UNDO, 800),
]
