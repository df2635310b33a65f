"""C1 and C2 of Fluxo C: a cognitive plan is checked, and becomes an ordinary plan.

Everything that can be wrong with it is found here and said at once: unknown and repeated ids, cycles named node by
node, what has expired, numbers that make no sense. The rest of the core never meets a plan that is not sound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType

from oraculo.core.flow import service_levels
from oraculo.core.flow.allocation import Offers, score_of_plan, suited
from oraculo.core.flow.profile import EMPTY, Flow, Spec
from oraculo.core.plan import NOTICE_WAITS, Backoff, Gate, NoticeTargets, Plan, Task, find_cycle, graph
from oraculo.core.vocabulary import Ending, FanIn, Kind, Priority, RiskBand, SecurityLevel, TaskType
from oraculo.errors import PlanError

TIPO = "fluxo_c"
SCHEMA_VERSION = 1
MAX_RETRIES = 99
MAX_DURATION_MS = 30 * 24 * 3600 * 1000
FLOW_SLA = timedelta(hours=4)

_LEGACY_TASK_TYPES = {
    "ANALYZE": TaskType.QUERY,
    "REVIEW": TaskType.VALIDATE,
    "GENERATE": TaskType.EXECUTE,
    "CODE_GENERATION": TaskType.EXECUTE,
}


@dataclass(frozen=True, slots=True)
class TaskNode:
    """`timeout_ms` and `max_retries` are None when the risk band decides; `worker` names a class of workers that has a
    queue of its own."""

    task_id: str
    task_type: str
    description: str = ""
    dependencies: tuple[str, ...] = ()
    estimated_duration_ms: int | None = None
    required_capabilities: tuple[str, ...] = ()
    parameters: bytes = EMPTY  # JSON object
    metadata: bytes = EMPTY  # JSON object of strings
    timeout_ms: int | None = None
    max_retries: int | None = None
    worker: str | None = None


@dataclass(frozen=True, slots=True)
class CognitivePlan:
    plan_id: str
    intent_id: str
    tasks: tuple[TaskNode, ...]
    execution_order: tuple[str, ...]
    risk_band: RiskBand
    decision_id: str = ""
    correlation_id: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    priority: Priority | None = None  # None: not said
    security_level: SecurityLevel = SecurityLevel.INTERNAL
    valid_until: datetime | None = None
    requires_approval: bool = False
    says_approved: bool = False  # the document says that it was approved before it came
    compensate: bool = True
    schema_version: int = SCHEMA_VERSION
    document: bytes = EMPTY


@dataclass(frozen=True, slots=True)
class FlowRules:
    """What settings decide. `topic` is where tickets are published that need no class of workers; `offers` is what the
    classes can do, empty when not declared: then workers look at capabilities themselves."""

    topic: str = "execution.tickets"
    sla: service_levels.SlaRules = field(default_factory=service_levels.SlaRules)
    timeout: timedelta = FLOW_SLA
    backoff: Backoff = service_levels.BACKOFF
    offers: Offers = field(default_factory=dict)
    undo: service_levels.CompensationRules = field(default_factory=service_levels.CompensationRules)


def task_type(text: str) -> TaskType:
    """The task type of a word in either spelling; EXECUTE for an unknown word."""
    name = text.strip().upper()
    return _LEGACY_TASK_TYPES.get(name) or (TaskType(name) if name in TaskType.__members__ else TaskType.EXECUTE)


def problems(plan: CognitivePlan, now: datetime, offers: Offers = MappingProxyType({})) -> list[str]:
    """List all that is wrong with a plan (C1), or that no class of workers can do (C3); empty when it can run."""
    found: list[str] = []
    if plan.schema_version != SCHEMA_VERSION:
        found.append(f"schema_version is {plan.schema_version}; this version understands {SCHEMA_VERSION}")
    if plan.valid_until is not None and plan.valid_until <= now:
        found.append(f"the plan expired at {plan.valid_until.isoformat()}")
    if not plan.tasks:
        found.append("tasks is empty; at least one task is needed")
    known = {task.task_id for task in plan.tasks}
    found += [f"task_id {name!r} is used more than once" for name in _repeated(task.task_id for task in plan.tasks)]
    found += [f"execution_order names {name!r} more than once" for name in _repeated(plan.execution_order)]
    found += [f"execution_order names {name!r}, which is no task" for name in plan.execution_order if name not in known]
    for task in plan.tasks:
        found += _task_problems(task, known)
        found += _unable(task, offers)
    cycle = find_cycle({task.task_id: [d for d in task.dependencies if d in known] for task in plan.tasks})
    if cycle:
        found.append("the dependencies form a cycle: " + " → ".join(cycle))
    return found


def _task_problems(task: TaskNode, known: set[str]) -> Iterable[str]:
    name = task.task_id
    for need in task.dependencies:
        if need not in known:
            yield f"task {name!r} depends on {need!r}, which is no task"
    for what, value, least, most in (
        ("estimated_duration_ms", task.estimated_duration_ms, 0, MAX_DURATION_MS),
        ("timeout_ms", task.timeout_ms, 1, MAX_DURATION_MS),
        ("max_retries", task.max_retries, 0, MAX_RETRIES),
    ):
        if value is not None and not least <= value <= most:
            yield f"task {name!r} has {what} {value}; allowed: {least} to {most}"


def _unable(task: TaskNode, offers: Offers) -> Iterable[str]:
    if not offers or not task.required_capabilities:
        return
    said = f"task {task.task_id!r} requires {', '.join(sorted(set(task.required_capabilities)))}"
    if task.worker is not None:
        lacks = set(task.required_capabilities) - offers.get(task.worker, frozenset())
        if lacks:
            yield f"{said}; the class of workers {task.worker!r} does not have {', '.join(sorted(lacks))}"
    elif suited(task.required_capabilities, offers) is None:
        known = "; ".join(f"{name}: {', '.join(sorted(can))}" for name, can in sorted(offers.items()))
        yield f"{said}; no class of workers has all of that ({known})"


def _repeated(names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    again: dict[str, None] = {}
    for name in names:
        if name in seen:
            again[name] = None
        seen.add(name)
    return list(again)


def ordered(plan: CognitivePlan) -> list[TaskNode]:
    """Topological, and as the plan's own execution_order where the dependencies leave that open."""
    wanted = {name: number for number, name in enumerate(plan.execution_order)}
    nodes = {task.task_id: task for task in plan.tasks}
    first = sorted(nodes, key=lambda name: wanted.get(name, len(wanted)))
    done: dict[str, TaskNode] = {}
    for start in first:
        stack = [(start, iter(nodes[start].dependencies))]
        while stack:
            name, needs = stack[-1]
            missing = next((need for need in needs if need not in done), None)
            if missing is not None:
                stack.append((missing, iter(nodes[missing].dependencies)))
            else:
                stack.pop()
                done.setdefault(name, nodes[name])
    return list(done.values())


def plan_of(
    plan: CognitivePlan,
    rules: FlowRules,
    now: datetime,
    queue_of: Callable[[str], str],
    *,
    name: str,
    timeout: timedelta | None = None,
    notify: NoticeTargets = NoticeTargets(),
) -> Plan:
    """The ordinary plan of a sound cognitive plan; PlanError, with every reason, when it is not sound. `queue_of` gives
    the queue of a class of workers; `name` is the correlation_id that its tickets carry."""
    wrong = problems(plan, now, rules.offers)
    if wrong:
        raise PlanError("; ".join(wrong[:20]) + (f"; and {len(wrong) - 20} more" if len(wrong) > 20 else ""), "plan")
    nodes = ordered(plan)
    index = {node.task_id: number for number, node in enumerate(nodes)}
    tasks = {node.task_id: _task(node, plan.risk_band, rules, queue_of) for node in nodes}
    depends = {node.task_id: node.dependencies for node in nodes}
    waits = service_levels.QUICK_NOTICE_WAITS + NOTICE_WAITS
    made = graph(
        tasks,
        depends,
        timeout=timeout or rules.timeout,
        backoff=rules.backoff,
        notify=notify.on_schedule(waits),
        closing=Gate(FanIn.TODOS, 0, ()),  # how many concluded says how it ends, not a gate
    )
    priority = service_levels.priority(plan.risk_band, plan.priority)
    flow = Flow(
        plan.plan_id,
        plan.intent_id,
        plan.decision_id,
        plan.risk_band,
        priority,
        plan.security_level,
        tuple(_spec(node, index) for node in nodes),
        plan.correlation_id or name,
        plan.trace_id,
        plan.span_id,
        plan.document,
        score_of_plan(plan.risk_band, priority),
    )
    return replace(
        made,
        tipo=TIPO,
        approval=plan.requires_approval,
        undo=rules.undo.timeout if plan.compensate and rules.undo.enabled else None,
        undo_attempts=rules.undo.attempts,
        undo_strict=rules.undo.strict,
        ending=Ending.MAJORITY,
        profile=flow,
    )


def _task(node: TaskNode, band: RiskBand, rules: FlowRules, queue_of: Callable[[str], str]) -> Task:
    timeout = node.timeout_ms or service_levels.timeout_ms(node.estimated_duration_ms, rules.sla)
    retries = service_levels.max_retries(band) if node.max_retries is None else node.max_retries
    worker = node.worker or (suited(node.required_capabilities, rules.offers) if node.required_capabilities else None)
    return Task(
        Kind.EXECUCAO,
        worker or task_type(node.task_type).value.lower(),
        queue_of(worker) if worker else rules.topic,
        node.parameters,
        timedelta(milliseconds=timeout),
        retries + 1,
    )


def _spec(node: TaskNode, index: Mapping[str, int]) -> Spec:
    return Spec(
        node.task_id,
        task_type(node.task_type),
        node.description,
        service_levels.DEFAULT_ESTIMATE_MS if node.estimated_duration_ms is None else node.estimated_duration_ms,
        tuple(dict.fromkeys(index[need] for need in node.dependencies)),
        node.required_capabilities,
        node.metadata,
        undo=service_levels.undo_action(task_type(node.task_type)),
    )
