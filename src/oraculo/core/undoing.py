"""Undoing a run that failed: what has to be undone, and in which order (docs/adr/0041).

What was done is undone in the reverse of its dependencies: a task when everything that depended on it is undone,
whether that worked or not, also where tasks stand between that nothing undoes. A map is undone itself, then its items,
the last one first, no more of them at once than were done; so is a loop, and its rounds one by one.
`CompensationStarted` records the order; folding decides nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from oraculo.core.blocks import with_room
from oraculo.core.compensation import grown
from oraculo.core.events import CompensationStarted
from oraculo.core.fan_in import GateCount
from oraculo.core.named_tasks import GrownTasks, NamedTask, named_in
from oraculo.core.plan import Added, Gate, Plan, Task, UndoWindow
from oraculo.core.ticket_state import Ticket
from oraculo.core.vocabulary import FanIn, Kind, Phase, Status, UndoCause

if TYPE_CHECKING:
    from oraculo.core.state import Orchestration

AT_ONCE_MAX_TICKETS = 500  # that undo items of one map, where the plan says nothing
Units = Mapping[int, Sequence[Sequence[int]]]  # task → what is undone of it: itself, then its items or rounds
_NOTHING: Mapping[int, int] = {}
_DONE = (Status.CONCLUIDA, Status.PARCIAL)
_CAUSES = {Status.ERRO: UndoCause.TASK_FAILED, Status.TIMEOUT: UndoCause.OUT_OF_TIME}


def nothing_undone() -> Mapping[int, int]:
    """The same for all runs that undo nothing, since most never do: it is replaced, not changed."""
    return _NOTHING


# -- what --------------------------------------------------------------------------------------------------------------


def wanted(state: Orchestration, closing: Status | None = None) -> Units:
    """What has to be undone of a plan that says how; `closing` is what becomes of tickets that are still open."""
    named = named_in(state.plan)
    if named is None or not named.undoable or state.undoes:
        return {}
    found: dict[int, list[Sequence[int]]] = {}
    for position in named.undoable:
        spec, units = named.named[position], list[Sequence[int]]()
        if spec.undo is not None and _was_done(state, position, closing):
            units.append([position])
        body = spec.map or spec.loop
        if body is not None and body.item.undo is not None:
            units.append([item for item in reversed(state.items(position)) if _was_done(state, item, closing)])
        left = [unit for unit in units if unit]
        if left:
            found[position] = left
    return found


def _was_done(state: Orchestration, position: int, closing: Status | None) -> bool:
    """Whether it concluded, or may have: it ran out of time after a broker took its order."""
    ticket = state.tickets[position]
    if ticket.phase is Phase.CLOSED and ticket.status in _DONE:
        return True
    status = ticket.status if ticket.phase is Phase.CLOSED else closing
    return status is Status.TIMEOUT and _was_taken(state, position)


def _was_taken(state: Orchestration, position: int) -> bool:
    if state.plan.tasks[position].kind.grows:
        return any(state.tickets[item].confirmed for item in state.items(position))
    return state.tickets[position].confirmed != 0


# -- in which order ----------------------------------------------------------------------------------------------------


def order(state: Orchestration, units: Units, ending: Status, *, asked: bool = False) -> CompensationStarted:
    """The event that undoes these; `asked`: a cancel asked for it."""
    plan = state.plan
    cause = UndoCause.CANCELLED if asked else _CAUSES.get(ending, UndoCause.REFUSED)
    ordered = _topological(plan)
    before = _before(plan, ordered, units)
    first, undone = len(plan.tasks), list[int]()
    tickets: dict[int, list[range]] = {}  # task → those that undo it, unit by unit
    for position in reversed(ordered):
        for unit in units.get(position, ()):
            begin = first + len(undone)
            tickets.setdefault(position, []).append(range(begin, begin + len(unit)))
            undone += unit
    return CompensationStarted(undone, cause, _added(plan, units, tickets, before), ending)


def _topological(plan: Plan) -> list[int]:
    """The tasks of the plan itself, each behind all that it depends on."""
    named = named_in(plan)
    assert named is not None
    planned = len(named.named)
    left = {number: len(gate.inputs) for number, gate in enumerate(plan.gates)}
    found = [position for position in range(planned) if plan.tasks[position].after is None]
    for position in found:  # it grows while we go through it
        for number in plan.tasks[position].feeds:
            left[number] -= 1
            if not left[number]:
                found.extend(plan.gates[number].releases)
    return found


def _before(plan: Plan, ordered: Sequence[int], units: Units) -> dict[int, frozenset[int]]:
    """Task → the next tasks behind it that are undone, which has to be before; tasks that are not are passed over."""
    behind: dict[int, frozenset[int]] = {}  # gate → the next tasks behind it that are undone
    found: dict[int, frozenset[int]] = {}
    for position in reversed(ordered):
        feeds = plan.tasks[position].feeds
        for number in feeds:
            if number not in behind:
                sets = [frozenset((p,)) if p in units else found[p] for p in plan.gates[number].releases]
                behind[number] = sets[0] if len(sets) == 1 else frozenset[int]().union(*sets)
        found[position] = behind[feeds[0]] if len(feeds) == 1 else frozenset[int]().union(*(behind[n] for n in feeds))
    return found


def _added(
    plan: Plan, units: Units, tickets: Mapping[int, Sequence[range]], before: Mapping[int, frozenset[int]]
) -> Added:
    gates: list[Gate] = []
    waiting: dict[frozenset[int], list[int]] = {}  # tasks that are undone after the same ones wait at the same gate
    windows: list[UndoWindow] = []
    for position, ranges in tickets.items():
        if before[position]:
            waiting.setdefault(before[position], []).extend(ranges[0])
        for done, following in pairwise(ranges):
            gates.append(_gate(done, following))
        for unit, held in zip(units[position], ranges, strict=True):
            if unit[0] != position:
                windows.append(UndoWindow(held.start, len(held), _at_once(plan, position)))
    for others, releases in waiting.items():
        gates.append(_gate([ticket for one in sorted(others) for ticket in tickets[one][-1]], releases))
    return Added((), tuple(gates), (), tuple(windows))


def _gate(inputs: Iterable[int], releases: Iterable[int]) -> Gate:
    return Gate(FanIn.TODOS, 0, tuple(inputs), tuple(releases), essential=False)


def _at_once(plan: Plan, position: int) -> int:
    named = named_in(plan)
    if named is not None and named.named[position].loop is not None:
        return 1
    spec = None if named is None else named.named[position].map
    said = None if spec is None else spec.at_once
    return AT_ONCE_MAX_TICKETS if said is None else min(AT_ONCE_MAX_TICKETS, said)


# -- folding -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Window:
    """Tickets that undo items of a map: `next` is the first that has not started, `live` how many are under way."""

    first: int
    end: int
    at_once: int
    next: int
    live: int = 0


def begin(state: Orchestration, event: CompensationStarted) -> None:
    """Make the event true: there is a ticket for each that is undone, and from now on nothing else counts."""
    state.undoes, state.undo_reason, state.ending = len(state.tickets), event.reason, event.ending
    state.undone = {position: number for number, position in enumerate(event.undone, len(state.tickets))}
    if event.ending is not None and event.added is not None:
        state.undoing = event.undone
        state.plan = _with_undoing(state.plan, event.undone, event.added)
        state.deadline = None
        state.windows = [Window(w.first, w.first + w.count, w.at_once, w.first) for w in event.added.windows]
    else:
        state.plan = grown(state.plan, event)
    state.tickets += [Ticket() for _ in event.undone]
    state.gates += [GateCount() for _ in range(len(state.plan.gates) - len(state.gates))]
    state.open += len(event.undone)
    state.by_name = None


def _with_undoing(plan: Plan, undone: Sequence[int], added: Added) -> Plan:
    """The plan with the tasks that undo these; those of one map share theirs."""
    plan = with_room(plan)
    profile, tasks, gates = plan.profile, plan.tasks, plan.gates
    assert isinstance(profile, GrownTasks) and isinstance(tasks, list) and isinstance(gates, list)
    after: dict[int, int] = {}
    feeds: dict[int, tuple[int, ...]] = {}
    for number, gate in enumerate(added.gates, len(gates)):
        after.update(dict.fromkeys(gate.releases, number))
        for ticket in gate.inputs:
            feeds[ticket] = (*feeds.get(ticket, ()), number)
    made: dict[tuple[int, int | None, tuple[int, ...]], Task] = {}
    specs: list[NamedTask] = []
    first = len(tasks)
    for number, position in enumerate(undone, first):
        spec = profile.spec(position).undo
        assert spec is not None, "only what says how is undone"
        key = (id(spec), after.get(number), feeds.get(number, ()))
        if key not in made:
            made[key] = replace(spec.task, after=key[1], feeds=key[2])
        tasks.append(made[key])
        specs.append(spec.spec)
    profile.items.extend(specs)
    gates.extend(added.gates)
    return plan


def _window(state: Orchestration, position: int) -> Window | None:
    at = bisect_right(state.windows, position, key=lambda one: one.first) - 1
    return state.windows[at] if at >= 0 and position < state.windows[at].end else None


def started(state: Orchestration, positions: Iterable[int]) -> None:
    """Count those that begin; one that asked for its parameters has begun already."""
    for position in positions:
        window = _window(state, position)
        if window is not None and position >= window.next:
            window.next = position + 1
            window.live += 1


def closed(state: Orchestration, position: int) -> None:
    window = _window(state, position)
    if window is not None and position < window.next:
        window.live -= 1


def reopened(state: Orchestration, position: int) -> None:
    """One gets another attempt: it takes its place again, even if another one has it now."""
    window = _window(state, position)
    if window is not None:
        window.live += 1


def by_name(state: Orchestration) -> dict[tuple[Kind, str], list[int]]:
    """The tickets of each destination. What undoes others is among them where no other ticket has that destination:
    otherwise an answer without a ticket_id may be a late one of what is undone."""
    found: dict[tuple[Kind, str], list[int]] = {}
    past = None if state.blocks is None else state.blocks.is_past
    for position, task in enumerate(state.plan.tasks[: state.asked]):
        if past is not None and past(position):
            continue  # they have no answer to come
        found.setdefault((task.kind, task.name), []).append(position)
    if state.ending is not None:
        known = set(found)
        for position in range(state.asked, len(state.tickets)):
            task = state.plan.tasks[position]
            if (task.kind, task.name) not in known:
                found.setdefault((task.kind, task.name), []).append(position)
    return found


# -- which may begin ---------------------------------------------------------------------------------------------------


def admitted(state: Orchestration, positions: Sequence[int]) -> list[int]:
    """Those of these released tickets that may begin now: of a window the first few."""
    if not state.windows:
        return list(positions)
    found: list[int] = []
    for position in positions:
        window = _window(state, position)
        if window is None or position < window.first + window.at_once:
            found.append(position)
    return found


def following(state: Orchestration, closing: Iterable[int]) -> list[int]:
    """The tickets that begin because others of their windows have closed."""
    touched = {id(one): one for position in closing if (one := _window(state, position)) is not None}
    found: list[int] = []
    for window in touched.values():
        room = window.at_once - window.live
        found += range(window.next, min(window.end, window.next + room))
    return found
