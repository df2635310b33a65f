"""The journal as a workflow needs it to go on: who asked and what came of it, without what was collected.

The core never looks at data, parameters or documents, so they stay where they are; what is left fits into payloads, page
by page.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio import activity

from oraculo.core.events import Event, OrchestrationStarted
from oraculo.core.flow import EMPTY, Flow
from oraculo.errors import StoreUnavailableError
from oraculo.ports.store import Store
from oraculo.wire import records

AT_ONCE = 500  # steps in a page
NOTHING = b"null"
GIVEN_UP = timedelta(minutes=2)  # a workflow without a journal belongs to a request that was never accepted


async def page(store: Store, run: int, after: int, version: int) -> dict[str, Any] | None:
    recorded = [one for one in await store.events(run, after, AT_ONCE) if one.first <= version]
    if not recorded:
        began = activity.info().scheduled_time
        if after == 0 and datetime.now(UTC) - began > GIVEN_UP:
            return None
        raise StoreUnavailableError(f"the journal of {run} is not there yet")
    last = recorded[-1].first + len(recorded[-1].events) - 1
    return {"steps": [[one.at, records.encode(list(map(_lean, one.events)))] for one in recorded], "last": last}


def _lean(event: Event) -> Event:
    if isinstance(event, OrchestrationStarted):
        plan = event.plan
        tasks = tuple(replace(task, parametros=NOTHING) for task in plan.tasks)
        return replace(event, plan=replace(plan, tasks=tasks, flow=None if plan.flow is None else _lean_flow(plan.flow)))
    return replace(event, dados=NOTHING) if hasattr(event, "dados") else event


def _lean_flow(flow: Flow) -> Flow:
    specs = tuple(replace(spec, metadata=EMPTY, description="") for spec in flow.specs)
    return replace(flow, specs=specs, document=EMPTY)
