"""The journal as a workflow needs it to go on: who asked and what came of it, without what was collected.

The core never looks at data, parameters or documents, so they stay where they are; what is left fits into payloads,
page by page.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from oraculo.core.events import (
    AttemptFailed,
    Event,
    LateAnswerKept,
    OrchestrationStarted,
    TicketConcluded,
    TicketFailed,
)
from oraculo.core.flow import EMPTY, Flow
from oraculo.core.plan import Plan
from oraculo.ports.store import Store
from oraculo.wire import records

AT_ONCE = 500  # steps in a page
NOTHING = b"null"


async def page(store: Store, run: int, after: int, version: int) -> dict[str, Any] | None:
    """Steps from `after` on, up to `version`; None when there are none."""
    recorded = [one for one in await store.events(run, after, AT_ONCE) if one.first <= version]
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
        case TicketConcluded() | AttemptFailed() | TicketFailed() | LateAnswerKept():
            return replace(event, dados=NOTHING)
        case _:
            return event


def _lean_plan(plan: Plan) -> Plan:
    tasks = tuple(replace(task, parametros=NOTHING) for task in plan.tasks)
    return replace(plan, tasks=tasks, flow=None if plan.flow is None else _lean_flow(plan.flow))


def _lean_flow(flow: Flow) -> Flow:
    specs = tuple(replace(spec, metadata=EMPTY, description="") for spec in flow.specs)
    return replace(flow, specs=specs, document=EMPTY)
