"""The rules of Fluxo C for endings and for what is undone, said again without the core."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from oraculo.core import events as ev
from oraculo.core.compensation import grown
from oraculo.core.flow.profile import specs_in
from oraculo.core.plan import Plan
from oraculo.core.vocabulary import Status
from oraculo.simulation.facts import Seen

if TYPE_CHECKING:
    from oraculo.simulation.invariants import CheckedJournal


def to_undo(plan: Plan, tickets: Sequence[Seen]) -> list[int]:
    """What failed and what it needed, as far as it was ever tried, the last first."""
    if plan.undo is None:
        return []
    specs = specs_in(plan)
    wanted: set[int] = set()
    for position in reversed(range(len(tickets))):  # nothing depends on what comes later
        failed = tickets[position].status in (Status.ERRO, Status.TIMEOUT)
        if failed or any(position in specs[other].dependencies for other in wanted):
            wanted.add(position)
    return sorted((p for p in wanted if tickets[p].attempt), reverse=True)


def ending(asked: Sequence[Seen]) -> Status:
    """By how many of the tickets that the plan asked for concluded."""
    good = sum(1 for ticket in asked if ticket.status is Status.CONCLUIDA)
    if good == len(asked):
        return Status.CONCLUIDA
    return Status.ERRO if len(asked) - good > len(asked) // 2 else Status.PARCIAL


def undoing(journal: CheckedJournal, event: ev.CompensationStarted) -> None:
    """What failed and what it needed, as far as it was ever tried, the last first; once, when all else is over."""
    journal.undone = undone = event.undone
    expected = to_undo(journal.plan, journal.tickets)
    if journal.undoes:
        journal.wrong("undone once", "undone twice")
    if any(one.phase != "closed" for one in journal.tickets):
        journal.wrong("undone once", "undone while tickets are open")
    if undone != expected:
        journal.wrong("undone in reverse", f"{undone}, expected {expected}")
    journal.undoes = len(journal.tickets)
    if event.added is None:
        journal.wrong("the journal stands alone", "a compensation does not say what it adds to the plan")
    journal.plan = grown(journal.plan, event)
    journal.tickets += [Seen() for _ in undone]
    journal.gates += [None] * (len(journal.plan.gates) - len(journal.gates))
    for number, position in enumerate(undone, journal.undoes):
        _check_undoing(journal, number, position, undone)


def _check_undoing(journal: CheckedJournal, number: int, position: int, undone: list[int]) -> None:
    """It waits for what undoes everything that needed it."""
    specs = specs_in(journal.plan)
    needed = {journal.undoes + n for n, other in enumerate(undone) if position in specs[other].dependencies}
    after = journal.plan.tasks[number].after
    if (set() if after is None else set(journal.plan.gates[after].inputs)) != needed:
        journal.wrong("undone in reverse", f"ticket {number} does not wait for {sorted(needed)}")


def ended(journal: CheckedJournal) -> Status:
    """How a plan ends now; what has to be undone was."""
    left = [] if journal.undoes else to_undo(journal.plan, journal.tickets)
    if left:
        journal.wrong("undone once", f"ended although {left} had to be undone")
    return ending(journal.tickets[: journal.undoes or len(journal.tickets)])
