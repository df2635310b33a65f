"""What is to be done: tasks, and the gates between them.

A gate is a fan-in: it counts the outcomes of its inputs and, when its rule is met, releases the tasks behind it. Tasks
feed gates and gates release tasks, so a plan is a graph with two kinds of nodes, and a result costs the number of gates
its task feeds, however wide the plan is. Collect → execute is one shape (`stages`); any DAG is another (`graph`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from oraculo.core.flow import Flow
from oraculo.core.vocabulary import FanIn, Kind
from oraculo.errors import PlanError

RULES = 2  # the version of the rules in this folder; recorded with every orchestration

MAX_TASKS = 50_000
MAX_EDGES = 100_000


@dataclass(slots=True)
class Task:
    """One unit of work for one destination. `parametros` is JSON text; the core never looks inside. Complete, and never
    changed again, once it is part of a plan."""

    kind: Kind
    name: str
    queue: str
    parametros: bytes
    timeout: timedelta
    max_attempts: int
    after: int | None = None  # the gate that releases it; None: at once
    feeds: tuple[int, ...] = ()  # the gates that count its outcome


@dataclass(frozen=True, slots=True)
class Gate:
    mode: FanIn
    needed: int  # successes that let it pass
    inputs: tuple[int, ...]
    releases: tuple[int, ...] = ()
    essential: bool = True  # when it fails, the orchestration fails


@dataclass(frozen=True, slots=True)
class Backoff:
    """Wait between attempts: full jitter below `base * 2**(attempt-1)`, never above `cap`."""

    base: timedelta = timedelta(seconds=1)
    cap: timedelta = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Notify:
    webhook: str | None = None
    queue: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    tasks: tuple[Task, ...]
    gates: tuple[Gate, ...]
    timeout: timedelta
    backoff: Backoff = Backoff()
    notify: Notify = Notify()
    tipo: str | None = None  # the task type it was made from
    rules: int = RULES
    flow: Flow | None = None  # of Fluxo C: what its tickets say beyond this


def stages(
    coletas: Sequence[Task],
    execucoes: Sequence[Task],
    *,
    mode: FanIn,
    minimo: int | None,
    timeout: timedelta,
    backoff: Backoff,
    notify: Notify,
    tipo: str | None = None,
) -> Plan:
    """The plan of a collect → execute request. The fan-in rule is that of the first stage there is; the executions
    behind a fan-in go through when at least one of them concludes."""
    if not coletas and not execucoes:
        raise PlanError("coletas and execucoes are both empty; at least one task is needed", "coletas")
    first, second = (coletas, execucoes) if coletas else (execucoes, ())
    if len(first) + len(second) > MAX_TASKS:
        raise PlanError(f"{len(first) + len(second)} tasks; at most {MAX_TASKS} are allowed", "coletas")
    needed = _needed(mode, minimo, len(first))
    width = len(first)
    for task in first:
        task.feeds = (0,)
    for task in second:
        task.after, task.feeds = 0, (1,)
    tasks = (*first, *second)
    gates = [Gate(mode, needed, tuple(range(width)), tuple(range(width, len(tasks))))]
    if second:
        gates.append(Gate(FanIn.TODOS, 1, tuple(range(width, len(tasks)))))
    return Plan(tasks, tuple(gates), timeout, backoff, notify, tipo)


def _needed(mode: FanIn, minimo: int | None, width: int) -> int:
    if mode is FanIn.QUORUM:
        if minimo is None:
            raise PlanError("fan_in.modo quorum needs fan_in.minimo", "fan_in.minimo")
        if not 1 <= minimo <= width:
            raise PlanError(f"fan_in.minimo is {minimo}; allowed: 1 to {width}, the number of tasks", "fan_in.minimo")
        return minimo
    if minimo is not None:
        raise PlanError(f"fan_in.minimo goes with modo quorum, not with {mode.value}", "fan_in.minimo")
    return width if mode is FanIn.TODAS_OK else 1


def graph(
    tasks: Mapping[str, Task],
    depends: Mapping[str, Sequence[str]],
    *,
    timeout: timedelta,
    backoff: Backoff,
    notify: Notify,
) -> Plan:
    """The plan of any DAG: a task starts when everything it depends on concluded. A task whose dependency failed is
    cancelled; the orchestration goes through when at least one task concludes."""
    if not tasks:
        raise PlanError("a plan needs at least one task", "tasks")
    if len(tasks) > MAX_TASKS:
        raise PlanError(f"{len(tasks)} tasks; at most {MAX_TASKS} are allowed", "tasks")
    if sum(len(d) for d in depends.values()) > MAX_EDGES:
        raise PlanError(f"more than {MAX_EDGES} dependencies", "tasks")
    for name, needs in depends.items():
        if name not in tasks:
            raise PlanError(f"dependencies are given for {name!r}, which does not exist", "tasks")
        for need in needs:
            if need not in tasks:
                raise PlanError(f"task {name!r} depends on {need!r}, which does not exist", "tasks")
    cycle = find_cycle({name: depends.get(name, ()) for name in tasks})
    if cycle:
        raise PlanError("the dependencies form a cycle: " + " → ".join(cycle), "tasks")
    index = {name: number for number, name in enumerate(tasks)}
    behind: dict[tuple[int, ...], list[int]] = {}  # tasks that wait for the same tasks share a gate
    for name, needs in depends.items():
        inputs = tuple(sorted({index[need] for need in needs}))
        if inputs:
            behind.setdefault(inputs, []).append(index[name])
    gates = [
        Gate(FanIn.TODAS_OK, len(inputs), inputs, tuple(releases), essential=False)
        for inputs, releases in behind.items()
    ]
    after = {task: number for number, gate in enumerate(gates) for task in gate.releases}
    gates.append(Gate(FanIn.TODOS, 1, tuple(range(len(tasks)))))
    feeds: list[list[int]] = [[] for _ in tasks]
    for number, gate in enumerate(gates):
        for task in gate.inputs:
            feeds[task].append(number)
    for number, task_ in enumerate(tasks.values()):
        task_.after, task_.feeds = after.get(number), tuple(feeds[number])
    return Plan(tuple(tasks.values()), tuple(gates), timeout, backoff, notify)


def find_cycle(depends: Mapping[str, Sequence[str]]) -> list[str]:
    """The nodes of one cycle in order, the first repeated at the end; empty when there is none. Linear time."""
    done: set[str] = set()
    for start in depends:
        if start in done:
            continue
        path: list[str] = []
        on_path: set[str] = set()
        stack: list[tuple[str, int]] = [(start, 0)]
        while stack:
            node, edge = stack.pop()
            if edge == 0:
                path.append(node)
                on_path.add(node)
            needs = depends.get(node, ())
            if edge < len(needs):
                stack.append((node, edge + 1))
                need = needs[edge]
                if need in on_path:
                    return [*path[path.index(need) :], need]
                if need not in done:
                    stack.append((need, 0))
            else:
                done.add(node)
                on_path.discard(node)
                path.pop()
    return []
