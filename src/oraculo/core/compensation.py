"""When a task fails for good, what was done before it is undone, in reverse order.

The tasks that undo are part of the same plan, behind all the others. One waits until everything that depended on what
it undoes is undone itself, whether that worked or not, unless the plan is strict about that. `CompensationStarted`
records what it adds to the plan; nothing here is read to fold a journal of rules 3 or later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

from oraculo.core.events import CompensationStarted
from oraculo.core.plan import Added, Gate, Plan, Task
from oraculo.core.vocabulary import FanIn, Kind, UndoCause


def dependencies(plan: Plan, position: int) -> Sequence[int]:
    """The tasks that a task waits for."""
    after = plan.tasks[position].after
    return () if after is None else plan.gates[after].inputs


def upstream(plan: Plan, positions: Iterable[int]) -> set[int]:
    """These tasks and all that they depend on, directly or not."""
    found: set[int] = set()
    stack = list(positions)
    while stack:
        one = stack.pop()
        if one not in found:
            found.add(one)
            stack.extend(dependencies(plan, one))
    return found


def started(plan: Plan, undone: list[int]) -> CompensationStarted:
    """The event that undoes these tasks, in this order. Rules before 3 did not record what it adds to the plan."""
    return CompensationStarted(undone, UndoCause.TASK_FAILED, None if plan.rules < 3 else additions(plan, undone))


def completed(plan: Plan, event: CompensationStarted) -> CompensationStarted:
    """The event with what it adds taken from this plan: for one that was decided on a plan without its parameters."""
    if event.ending is not None:  # the plan says how each is undone, and the event only in which order
        return event
    return event if event.added is None else replace(event, added=additions(plan, event.undone))


def grown(plan: Plan, event: CompensationStarted) -> Plan:
    """The plan with what a compensation added to it."""
    added = event.added or additions(plan, event.undone)
    return replace(
        plan,
        tasks=(*plan.tasks, *added.tasks),
        gates=(*plan.gates, *added.gates),
        profile=plan.profile.grown(added.specs),
    )


def additions(plan: Plan, undone: Sequence[int]) -> Added:
    """One more task for each of these, with the gates between them."""
    first = len(plan.tasks)
    undoes = {position: first + number for number, position in enumerate(undone)}
    before: dict[int, list[int]] = {position: [] for position in undone}  # what is undone earlier
    for position in undone:
        for need in dependencies(plan, position):
            if need in before:
                before[need].append(undoes[position])
    gates: list[Gate] = []
    after: dict[int, int] = {}
    feeds: dict[int, list[int]] = {number: [] for number in undoes.values()}
    for position in undone:
        if before[position]:
            number = len(plan.gates) + len(gates)
            after[undoes[position]] = number
            for one in before[position]:
                feeds[one].append(number)
            needed = len(before[position]) if plan.undo_strict else 0
            gates.append(Gate(FanIn.TODOS, needed, tuple(before[position]), (undoes[position],), essential=False))
    limit = plan.undo or timedelta()
    tasks = [
        _task(plan.tasks[p], limit, plan.undo_attempts, after.get(undoes[p]), tuple(feeds[undoes[p]])) for p in undone
    ]
    return Added(tuple(tasks), tuple(gates), plan.profile.undoing(undone, limit))


def _task(undone: Task, limit: timedelta, attempts: int | None, after: int | None, feeds: tuple[int, ...]) -> Task:
    most = undone.max_attempts if attempts is None else attempts
    return Task(Kind.EXECUCAO, undone.name, undone.queue, undone.parametros, limit, most, after, feeds)
