"""What is to be done: tasks, and the gates between them.

A gate is a fan-in: it counts the outcomes of its inputs and, when its rule is met, releases the tasks behind it. Tasks
feed gates and gates release tasks, so a plan is a graph with two kinds of nodes, and a result costs the number of gates
its task feeds, however wide the plan is. Collect → execute is one shape (`stages`); any DAG is another (`graph`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from types import MappingProxyType

from oraculo.core import fan_in
from oraculo.core.policies import PolicyPoint
from oraculo.core.profile import PLAIN, Profile, TaskSpec
from oraculo.core.uniqueness import Uniqueness
from oraculo.core.vocabulary import Ending, FanIn, Kind
from oraculo.errors import PlanError

RULES = 4  # the version of the rules in this folder; recorded with every orchestration

MAX_TASKS = 50_000
MAX_EDGES = 100_000
# The schedule of Standard Webhooks.
NOTICE_WAITS = tuple(timedelta(seconds=wait) for wait in (5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400))


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


@dataclass(slots=True)
class Gate:
    """Never changed once it is part of a plan, like a task; frozen classes take three times as long to make."""

    mode: FanIn
    needed: int  # successes that let it pass
    inputs: Sequence[int]
    releases: tuple[int, ...] = ()
    essential: bool = True  # when it fails, the orchestration fails


DOUBLING = 2.0  # what the wait between attempts grows by when nothing else is said


@dataclass(frozen=True, slots=True)
class Backoff:
    """Wait between attempts: full jitter below `base * factor**(attempt-1)`, never above `cap`."""

    base: timedelta = timedelta(seconds=1)
    cap: timedelta = timedelta(seconds=60)
    factor: float = DOUBLING


@dataclass(frozen=True, slots=True)
class NoticeTargets:
    """Where to send the result. `waits` are the pauses after the first, second, … try that failed; a notice is given up
    after the try that follows the last of them."""

    webhook: str | None = None
    queue: str | None = None
    waits: tuple[timedelta, ...] = ()

    def on_schedule(self, waits: tuple[timedelta, ...] = NOTICE_WAITS) -> NoticeTargets:
        """The same with these pauses, unless it has none to make, or pauses of its own."""
        asked = self.webhook is not None or self.queue is not None
        return replace(self, waits=waits) if asked and not self.waits else self


@dataclass(frozen=True, slots=True)
class Parent:
    """The orchestration that a child belongs to: its number and id, the ticket that the child is, which attempt of it,
    and how many orchestrations stand above the child."""

    run: int
    correlation_id: str
    position: int
    attempt: int
    depth: int


@dataclass(slots=True)
class Plan:
    """Never changed: a plan that grows is replaced by another one."""

    tasks: Sequence[Task]  # a list once it has grown, which is then added to
    gates: Sequence[Gate]
    timeout: timedelta | None  # None: no deadline
    backoff: Backoff = Backoff()
    notify: NoticeTargets = NoticeTargets()
    tipo: str | None = None  # the task type it was made from
    rules: int = RULES
    approval: bool = False  # a human has to agree before anything is published
    undo: timedelta | None = None  # how long undoing a task may take; None: nothing is undone when a task fails
    ending: Ending = Ending.ESSENTIAL
    profile: Profile = PLAIN  # what it is beyond this
    labels: tuple[str, ...] = ()  # what users look for it by
    parent: Parent | None = None  # of a child
    policies: tuple[PolicyPoint, ...] = ()  # when policies are asked about it
    unique: Uniqueness | None = None  # of a request that exists once
    undo_attempts: int | None = None  # of what undoes a task; None: as many as the task has
    undo_strict: bool = False  # what a task depended on is not undone where undoing the task failed

    @property
    def queues(self) -> set[str]:
        """The queues that its tasks are sent to."""
        return {task.queue for task in self.tasks if task.queue}


@dataclass(frozen=True, slots=True)
class UndoWindow:
    """Tickets from `first` on that undo items of a map, of which `at_once` may be under way."""

    first: int
    count: int
    at_once: int


@dataclass(frozen=True, slots=True)
class Added:
    """What a compensation adds to its plan: a task for each ticket that is undone, in that order, and gates. The tasks
    of a plan that says how each is undone are not repeated."""

    tasks: tuple[Task, ...]
    gates: tuple[Gate, ...]
    specs: tuple[TaskSpec, ...] = ()
    windows: tuple[UndoWindow, ...] = ()


def stages(
    coletas: Sequence[Task],
    execucoes: Sequence[Task],
    *,
    mode: FanIn,
    minimo: int | None,
    timeout: timedelta,
    backoff: Backoff,
    notify: NoticeTargets,
    tipo: str | None = None,
    labels: tuple[str, ...] = (),
) -> Plan:
    """The plan of a collect → execute request. The fan-in rule is that of the first stage there is; the executions
    behind a fan-in go through when at least one of them concludes."""
    if not coletas and not execucoes:
        raise PlanError("coletas and execucoes are both empty; at least one task is needed", "coletas")
    first, second = (coletas, execucoes) if coletas else (execucoes, ())
    if len(first) + len(second) > MAX_TASKS:
        raise PlanError(f"{len(first) + len(second)} tasks; at most {MAX_TASKS} are allowed", "coletas")
    needed = fan_in.needed(mode, minimo, len(first))
    width = len(first)
    for task in first:
        task.feeds = (0,)
    for task in second:
        task.after, task.feeds = 0, (1,)
    tasks = (*first, *second)
    gates = [Gate(mode, needed, tuple(range(width)), tuple(range(width, len(tasks))))]
    if second:
        gates.append(Gate(FanIn.TODOS, 1, tuple(range(width, len(tasks)))))
    return Plan(tasks, tuple(gates), timeout, backoff, notify.on_schedule(), tipo, labels=labels)


@dataclass(frozen=True, slots=True)
class Join:
    """The fan-in over what a task depends on."""

    mode: FanIn = FanIn.TODAS_OK
    minimo: int | None = None


ALL_OK = Join()


def graph(
    tasks: Mapping[str, Task],
    depends: Mapping[str, Sequence[str]],
    *,
    timeout: timedelta | None,
    backoff: Backoff,
    notify: NoticeTargets,
    joins: Mapping[str, Join] = MappingProxyType({}),
    closing: Gate | None = Gate(FanIn.TODOS, 1, ()),
) -> Plan:
    """The plan of any DAG: a task starts when its join over what it depends on passes, by default when everything
    concluded, and is cancelled when it cannot pass any more. `closing`: the gate over all tasks, without its inputs."""
    _check_graph(tasks, depends)
    index = {name: number for number, name in enumerate(tasks)}
    behind: dict[tuple[Join, tuple[int, ...]], list[int]] = {}  # tasks that wait for the same tasks share a gate
    for name, needs in depends.items():
        inputs = tuple(sorted({index[need] for need in needs}))
        if inputs:
            behind.setdefault((joins.get(name, ALL_OK), inputs), []).append(index[name])
    gates = [
        Gate(join.mode, fan_in.needed(join.mode, join.minimo, len(inputs)), inputs, tuple(releases), essential=False)
        for (join, inputs), releases in behind.items()
    ]
    after = {task: number for number, gate in enumerate(gates) for task in gate.releases}
    if closing is not None:
        gates.append(replace(closing, inputs=tuple(range(len(tasks)))))
    feeds: list[list[int]] = [[] for _ in tasks]
    for number, gate in enumerate(gates):
        for task in gate.inputs:
            feeds[task].append(number)
    for number, task_ in enumerate(tasks.values()):
        task_.after, task_.feeds = after.get(number), tuple(feeds[number])
    return Plan(tuple(tasks.values()), tuple(gates), timeout, backoff, notify.on_schedule())


def _check_graph(tasks: Mapping[str, Task], depends: Mapping[str, Sequence[str]]) -> None:
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
