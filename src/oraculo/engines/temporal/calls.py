"""What an engine says to Temporal: begin this workflow, tell it that, ask it this."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple

from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.common import (
    RawValue,
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
)
from temporalio.service import RPCError, RPCStatusCode

from oraculo.core.plan import Plan
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Status
from oraculo.engines.temporal.codec import LARGE, compressed
from oraculo.engines.temporal.link import ATTRIBUTES, CALL
from oraculo.engines.temporal.parcels import Begin
from oraculo.errors import EngineUnavailableError
from oraculo.runtime.work import Work
from oraculo.wire import trace_context

WORKFLOW, SIGNAL, UPDATE = "OrchestrationWorkflow", "tickets_completed", "command"
AT_ONCE = 512 * 1024  # bytes of answers in one signal
MOST_PAYLOAD = 1_000_000  # bytes; Temporal takes 2 MB
TASK = timedelta(seconds=5)  # after which a workflow task whose process died is given to another


class Known(NamedTuple):
    """A workflow, and the context of its orchestration's span."""

    identity: str
    traceparent: str | None


def known(state: Orchestration) -> Known:
    trace = state.traceparent
    inside = None if trace is None else trace_context.child(trace, trace_context.workflow_span(state.run))
    return Known(workflow_id(state), inside)


def workflow_id(state: Orchestration) -> str:
    flow = state.plan.flow
    return f"orch-{state.correlation_id}" if flow is None else flow.workflow_id


async def begin(
    state: Orchestration,
    how: Begin,
    task_queue: str,
    client: Client,
    *,
    here: bool,
    conflict: WorkflowIDConflictPolicy = WorkflowIDConflictPolicy.FAIL,
) -> None:
    """`here`: a worker of this process may have its first task at once. A server that does not know the search
    attributes yet gets them as a memo."""
    attributes = _attributes(state.plan, state.correlation_id)
    pairs = [SearchAttributePair(SearchAttributeKey.for_keyword(name), attributes[name]) for name in attributes]
    try:
        await client.start_workflow(
            WORKFLOW,
            how.pack(),
            id=workflow_id(state),
            task_queue=task_queue,
            id_conflict_policy=conflict,
            search_attributes=TypedSearchAttributes(pairs) if how.marked else None,
            memo=None if how.marked else attributes,
            task_timeout=TASK,
            rpc_timeout=CALL,
            request_eager_start=here,
        )
    except RPCError as error:
        if not how.marked or error.status is not RPCStatusCode.INVALID_ARGUMENT:
            raise
        await begin(state, replace(how, marked=False), task_queue, client, here=here, conflict=conflict)


async def signal(identity: str, unit: RawValue, client: Client) -> None:
    await client.get_workflow_handle(identity).signal(SIGNAL, unit, rpc_timeout=CALL)


async def ask(identity: str, item: RawValue, client: Client) -> str:
    """The verdict on a command, once what it made true is in the journal."""
    handle = client.get_workflow_handle(identity)
    try:
        verdict: str = await handle.execute_update(UPDATE, item, result_type=str, rpc_timeout=2 * CALL)
    except WorkflowUpdateFailedError as error:  # it ended before it could answer
        raise EngineUnavailableError(f"{identity} has just ended; try again") from error
    return verdict


def parcels(works: Sequence[Work]) -> list[list[Work]]:
    """As many in one signal as fit."""
    found: list[list[Work]] = [[]]
    size = 0
    for work in works:
        if found[-1] and size + len(work.body) > AT_ONCE:
            found.append([])
            size = 0
        found[-1].append(work)
        size += len(work.body)
    return found


def fits(raw: RawValue) -> bool:
    payload = raw.payload
    size = len(payload.data) if len(payload.data) <= LARGE else len(compressed(payload).data)
    return size <= MOST_PAYLOAD


def _attributes(plan: Plan, correlation_id: str) -> dict[str, str]:
    """What a workflow can be found by; of a plan that is none of Fluxo C there is less to say. To mark how it stands
    costs a write each time, so it is `em_execucao` until the workflow says otherwise."""
    flow, status = plan.flow, Status.EM_EXECUCAO.value
    values = (correlation_id, "", "", "", status)
    if flow is not None:
        values = (correlation_id, flow.plan_id, flow.intent_id, flow.risk_band.value, status)
    return {name: value for name, value in zip(ATTRIBUTES, values, strict=True) if value}
