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

from oraculo.chunks import chunks_by_size
from oraculo.core.flow.profile import flow_in
from oraculo.core.plan import Plan
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Status
from oraculo.engines.temporal.codec import COMPRESS_MIN_BYTES, WORKFLOW_PREFIX, compressed
from oraculo.engines.temporal.connection import CALL_TIMEOUT, SEARCH_ATTRIBUTES
from oraculo.engines.temporal.messages import WorkflowInput
from oraculo.errors import EngineUnavailableError
from oraculo.ports.work import Work
from oraculo.wire import trace_context

WORKFLOW, SIGNAL, UPDATE = "OrchestrationWorkflow", "tickets_completed", "command"
SIGNAL_MAX_BYTES = 512 * 1024  # of answers in one signal
PAYLOAD_MAX_BYTES = 1_000_000  # Temporal takes 2 MB
WORKFLOW_TASK_TIMEOUT = timedelta(seconds=5)  # after which a workflow task whose process died is given to another


class WorkflowRef(NamedTuple):
    """A workflow, and the context of its orchestration's span."""

    identity: str
    traceparent: str | None


def known(state: Orchestration) -> WorkflowRef:
    trace = state.traceparent
    inside = None if trace is None else trace_context.child(trace, trace_context.workflow_span(state.run))
    return WorkflowRef(workflow_id(state), inside)


def workflow_id(state: Orchestration) -> str:
    """The id of its workflow: that of a plan of Fluxo C is called after the plan, that of a retry after itself."""
    flow = flow_in(state.plan)
    return f"{WORKFLOW_PREFIX}{state.correlation_id}" if flow is None or state.origin is not None else flow.workflow_id


async def begin(
    state: Orchestration,
    how: WorkflowInput,
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
            task_timeout=WORKFLOW_TASK_TIMEOUT,
            rpc_timeout=CALL_TIMEOUT,
            request_eager_start=here,
        )
    except RPCError as error:
        if not how.marked or error.status is not RPCStatusCode.INVALID_ARGUMENT:
            raise
        await begin(state, replace(how, marked=False), task_queue, client, here=here, conflict=conflict)


async def signal(identity: str, batch: RawValue, client: Client) -> None:
    await client.get_workflow_handle(identity).signal(SIGNAL, batch, rpc_timeout=CALL_TIMEOUT)


async def ask(identity: str, item: RawValue, client: Client) -> str:
    """The verdict on a command, once what it made true is in the journal."""
    handle = client.get_workflow_handle(identity)
    try:
        verdict: str = await handle.execute_update(UPDATE, item, result_type=str, rpc_timeout=2 * CALL_TIMEOUT)
    except WorkflowUpdateFailedError as error:  # it ended before it could answer
        raise EngineUnavailableError(f"{identity} has just ended; try again") from error
    return verdict


def signal_batches(works: Sequence[Work]) -> Sequence[list[Work]]:
    """Cut into signals that fit; none at all is one empty signal, which only wakes a workflow."""
    return list(chunks_by_size(works, SIGNAL_MAX_BYTES, lambda work: len(work.body))) or [[]]


def fits(raw: RawValue) -> bool:
    payload = raw.payload
    size = len(payload.data) if len(payload.data) <= COMPRESS_MIN_BYTES else len(compressed(payload).data)
    return size <= PAYLOAD_MAX_BYTES


def _attributes(plan: Plan, correlation_id: str) -> dict[str, str]:
    """What a workflow can be found by; of a plan that is none of Fluxo C there is less to say. To mark how it stands
    costs a write each time, so it is `em_execucao` until the workflow says otherwise."""
    flow, status = flow_in(plan), Status.EM_EXECUCAO.value
    values = (correlation_id, "", "", "", status)
    if flow is not None:
        values = (correlation_id, flow.plan_id, flow.intent_id, flow.risk_band.value, status)
    return {name: value for name, value in zip(SEARCH_ATTRIBUTES, values, strict=True) if value}
