"""The journal as a workflow needs it to go on: who asked and what came of it, without what was collected.

The core never looks at data, parameters or documents, so they stay where they are; what is left fits into payloads,
page by page.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from oraculo.core.events import (
    AnswerHeld,
    AttemptFailed,
    ChildEnded,
    CompensationStarted,
    ConflictingAnswerKept,
    Event,
    LateAnswerKept,
    OrchestrationStarted,
    PlanGrown,
    Resolved,
    ResultsReused,
    SignalReceived,
    TicketConcluded,
    TicketFailed,
)
from oraculo.core.flow.profile import EMPTY, Spec, flow_in
from oraculo.core.named_tasks import ChildSpec, NamedTask, named_in
from oraculo.core.plan import Added, Plan, Task
from oraculo.core.vocabulary import Kind
from oraculo.ports.store import Store
from oraculo.wire import records

PAGE_STEPS = 500  # steps in a page
NOTHING = b"null"


async def page(store: Store, run: int, after: int, version: int) -> dict[str, Any] | None:
    """Steps from `after` on, up to `version`; None when there are none."""
    recorded = [one for one in await store.events(run, after, PAGE_STEPS) if one.first <= version]
    if not recorded:
        return None
    last = recorded[-1].first + len(recorded[-1].events) - 1
    return {
        "steps": [[one.at, records.encode([lean(event) for event in one.events])] for one in recorded],
        "last": last,
    }


def lean(event: Event) -> Event:
    match event:
        case OrchestrationStarted():
            return replace(event, plan=_lean_plan(event.plan))
        case CompensationStarted(added=Added(tasks, gates, specs, windows)):
            lean_specs = tuple(_lean_spec(spec) for spec in specs if isinstance(spec, Spec))
            return replace(event, added=Added(_lean_tasks(tasks), gates, lean_specs, windows))
        case TicketConcluded() | AttemptFailed() | TicketFailed() | LateAnswerKept() | ConflictingAnswerKept():
            return replace(event, dados=NOTHING)
        case ChildEnded() | AnswerHeld():
            return replace(event, dados=NOTHING)
        case SignalReceived():
            return replace(event, dados=NOTHING)
        case Resolved(resolutions, output):
            lean_output = None if output is None else replace(output, value=NOTHING)
            return Resolved([replace(one, value=NOTHING) for one in resolutions], lean_output)
        case PlanGrown():
            return replace(event, rows=[], template=None)
        case ResultsReused(results=results, rows=rows):
            return replace(
                event,
                results=[replace(one, dados=NOTHING, erros=[]) for one in results],
                rows=[replace(one, rows=[], template=None) for one in rows],
            )
        case _:
            return event


def _lean_plan(plan: Plan) -> Plan:
    flow, named = flow_in(plan), named_in(plan)
    profile = plan.profile
    if flow is not None:
        profile = replace(flow, specs=tuple(map(_lean_spec, flow.specs)), document=EMPTY)
    elif named is not None:
        profile = replace(named, document=EMPTY, input=EMPTY, named=tuple(map(_lean_named, named.named)))
    return replace(plan, tasks=_lean_tasks(plan.tasks), profile=profile)


def _lean_tasks(tasks: Iterable[Task]) -> tuple[Task, ...]:
    """Without parameters, but for waits: theirs say until when."""
    return tuple(task if task.kind is Kind.ESPERA else replace(task, parametros=NOTHING) for task in tasks)


def _lean_named(one: NamedTask) -> NamedTask:
    """A map without its list and without the parameters of its items, a loop without those of its rounds, a child
    without its request; what undoes them without those, too."""
    if one.undo is not None:
        (undo,) = _lean_tasks((one.undo.task,))
        one = replace(one, undo=replace(one.undo, task=undo))
    if one.child is not None:
        return replace(one, child=ChildSpec(NOTHING))
    if one.loop is not None:
        (task,) = _lean_tasks((one.loop.task,))
        return replace(one, loop=replace(one.loop, task=task, item=_lean_named(one.loop.item)))
    if one.map is None:
        return one
    (task,) = _lean_tasks((one.map.task,))
    return replace(one, map=replace(one.map, items=NOTHING, task=task, item=_lean_named(one.map.item)))


def _lean_spec(spec: Spec) -> Spec:
    return replace(spec, metadata=EMPTY, description="")
