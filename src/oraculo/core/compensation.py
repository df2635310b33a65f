"""When a ticket of Fluxo C fails for good, what was done before it is undone, in reverse order.

The tickets that undo are part of the same plan, behind all the others. One waits until everything that depended on what
it undoes is undone itself, whether that worked or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING
from zlib import crc32

from oraculo.core.flow import Flow, Spec
from oraculo.core.plan import Gate, Plan, Task
from oraculo.core.ticket import COMPENSATION_TIMEOUT_MS
from oraculo.core.vocabulary import FanIn, Kind, Status, TaskType

if TYPE_CHECKING:
    from oraculo.core.state import Orchestration

TASK_FAILED = "task_failed"

_ACTIONS = {
    TaskType.BUILD: "delete_artifacts",
    TaskType.DEPLOY: "rollback_deployment",
    TaskType.TEST: "cleanup_test_env",
    TaskType.VALIDATE: "revert_approval",
    TaskType.EXECUTE: "rollback_execution",
}
GENERIC = "generic_cleanup"


def action_of(task_type: TaskType) -> str:
    return _ACTIONS.get(task_type, GENERIC)


def needed(state: Orchestration) -> list[int]:
    """The positions that have to be undone, in reverse topological order: every ticket that failed and all that it
    depends on, as far as anything was done for them. Empty when nothing failed, or the plan does not want it."""
    flow = state.plan.flow
    if flow is None or not flow.compensate:
        return []
    tickets = state.tickets
    wanted: set[int] = set()
    stack = [p for p, one in enumerate(tickets) if one.status in (Status.ERRO, Status.TIMEOUT) and one.attempt]
    while stack:
        one = stack.pop()
        if one not in wanted:
            wanted.add(one)
            stack.extend(flow.specs[one].dependencies)
    return sorted((p for p in wanted if tickets[p].attempt), reverse=True)  # tasks stand in topological order


def extended(plan: Plan, undone: Sequence[int]) -> Plan:
    """The plan with one more task for each of those."""
    flow = plan.flow
    assert flow is not None
    first = len(plan.tasks)
    undoes = {position: first + number for number, position in enumerate(undone)}
    before: dict[int, list[int]] = {position: [] for position in undone}  # what is undone earlier
    for position in undone:
        for need in flow.specs[position].dependencies:
            if need in before:
                before[need].append(undoes[position])
    gates = list(plan.gates)
    after: dict[int, int] = {}
    feeds: dict[int, list[int]] = {number: [] for number in undoes.values()}
    for position in undone:
        if before[position]:
            number = len(gates)
            after[undoes[position]] = number
            for one in before[position]:
                feeds[one].append(number)
            gates.append(Gate(FanIn.TODOS, 0, tuple(before[position]), (undoes[position],), essential=False))
    tasks = [_task(plan.tasks[p], after.get(undoes[p]), tuple(feeds[undoes[p]])) for p in undone]
    specs = [_spec(flow, position) for position in undone]
    grown = replace(flow, specs=(*flow.specs, *specs))
    return replace(plan, tasks=(*plan.tasks, *tasks), gates=tuple(gates), flow=grown)


def _task(undone: Task, after: int | None, feeds: tuple[int, ...]) -> Task:
    timeout = timedelta(milliseconds=COMPENSATION_TIMEOUT_MS)
    return Task(Kind.EXECUCAO, undone.name, undone.queue, undone.parametros, timeout, undone.max_attempts, after, feeds)


def _spec(flow: Flow, position: int) -> Spec:
    undone = flow.specs[position]
    mark = crc32(f"{flow.plan_id}:{undone.task_id}".encode())
    return Spec(
        f"compensate-{mark:08x}",
        TaskType.COMPENSATE,
        f"{action_of(undone.task_type)}: {undone.description or undone.task_id}",
        COMPENSATION_TIMEOUT_MS,
        capabilities=undone.capabilities,
        metadata=undone.metadata,
        compensates=position,
    )


def ending(state: Orchestration) -> Status:
    """`concluida` when every ticket completed, `erro` when more than half did not, else `parcial`; those that undo
    others do not count."""
    asked = state.tickets[: state.asked]
    missing = sum(1 for one in asked if one.status is not Status.CONCLUIDA)
    if not missing:
        return Status.CONCLUIDA
    return Status.ERRO if missing > len(asked) // 2 else Status.PARCIAL
