"""Strategic commands: how urgent a workflow is, whether it goes on, how it stands.

A workflow is a plan of Fluxo C by its workflow_id, or any orchestration by its correlation_id.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

from oraculo.api.bodies import PriorityRequest
from oraculo.api.problems import ProblemError, invalid
from oraculo.api.workflows import state_of_workflow
from oraculo.apps.grpc_api.calls import Caller, Deed, NotServedError, asked
from oraculo.apps.grpc_api.messages import message
from oraculo.core.access import Scope
from oraculo.core.flow.profile import flow_in
from oraculo.core.state import Orchestration
from oraculo.core.tenants import local_name
from oraculo.core.vocabulary import Status
from oraculo.errors import RunEndedError, UnknownIdError
from oraculo.wire.flow.instants import milliseconds

SERVICE = "orchestrator.OrchestratorStrategic"
PACKAGE = "orchestrator"
PRIORITY_MAX, USUAL_PRIORITY = 9, 5  # the original goes up to 10
HISTORY_EVENTS_MAX = 1000
_STATES = {
    Status.PENDENTE: "PENDING",
    Status.CONCLUIDA: "COMPLETED",
    Status.PARCIAL: "COMPLETED",
    Status.CANCELADA: "CANCELLED",
    Status.ERRO: "FAILED",
    Status.TIMEOUT: "FAILED",
}


async def adjust_priorities(caller: Caller, request: Any) -> Any:
    """Change how urgent a workflow is. The same number again changes nothing."""
    state = await _found(caller, request.workflow_id, request.plan_id)
    answer = message(f"{PACKAGE}.AdjustPrioritiesResponse")
    before = state.priority or USUAL_PRIORITY
    try:
        applied, said = await _prioritise(caller, state, request.new_priority, request.reason)
    except RunEndedError as error:
        return answer(success=False, message=str(error), previous_priority=before)
    at = milliseconds(caller.oraculo.now())
    return answer(success=True, message=said, previous_priority=before, applied_priority=applied, applied_at=at)


async def _prioritise(caller: Caller, state: Orchestration, wanted: int, reason: str) -> tuple[int, str]:
    """Return the priority that counts now, and what became of the command."""
    if wanted == PRIORITY_MAX + 1:
        wanted = PRIORITY_MAX
    body: PriorityRequest = asked(PriorityRequest, prioridade=wanted, motivo=reason)
    name = local_name(state.correlation_id)
    changed = await caller.oraculo.pauses.prioritise(name, body.prioridade, body.motivo, caller.actor)
    return body.prioridade, "applied" if changed else "it was so already"


async def rebalance_resources(caller: Caller, request: Any) -> Any:
    """Apply the scheduling priority of each workflow: what else an allocation says is not given to a workflow here."""
    targets = dict(request.target_allocation)
    names = list(dict.fromkeys([*request.workflow_ids, *targets]))
    if not names:
        raise invalid("workflow_ids", "name at least one", "invalid_request")
    results = [await _rebalanced(caller, name, targets.get(name), request.reason) for name in names]
    good = all(one.success for one in results)
    return message(f"{PACKAGE}.RebalanceResourcesResponse")(
        success=good,
        message="applied" if good else "not all could be applied",
        results=results,
        applied_at=milliseconds(caller.oraculo.now()),
    )


async def _rebalanced(caller: Caller, name: str, target: Any, reason: str) -> Any:
    result, allocation = message(f"{PACKAGE}.WorkflowRebalanceResult"), message(f"{PACKAGE}.ResourceAllocation")
    if target is None or not target.scheduling_priority:
        return result(
            workflow_id=name, success=False, message="only scheduling_priority can be applied, and it has none"
        )
    try:
        state = await _found(caller, name)
        before = allocation(scheduling_priority=state.priority or USUAL_PRIORITY)
        applied, said = await _prioritise(caller, state, target.scheduling_priority, reason)
    except (RunEndedError, UnknownIdError, ProblemError) as error:
        return result(workflow_id=name, success=False, message=str(error))
    after = allocation(scheduling_priority=applied)
    more = target.cpu_millicores or target.memory_mb or target.max_parallel_tickets or target.HasField("gpu_count")
    told = f"{said}; only scheduling_priority can be" if more else said
    return result(workflow_id=name, success=True, message=told, previous_allocation=before, applied_allocation=after)


async def pause_workflow(caller: Caller, request: Any) -> Any:
    """Let no new order of a workflow go out."""
    if request.pause_duration_seconds:
        raise NotServedError("a pause ends when it is resumed: pause_duration_seconds has to be 0")
    name = local_name((await _found(caller, request.workflow_id)).correlation_id)
    answer = message(f"{PACKAGE}.PauseWorkflowResponse")
    try:
        changed = await caller.oraculo.pauses.pause(name, request.reason, caller.actor)
    except RunEndedError as error:
        return answer(success=False, message=str(error))
    state = await caller.oraculo.state(name)
    since = caller.oraculo.now() if state.paused is None else state.paused.since
    return answer(success=True, message="paused" if changed else "it was so already", paused_at=milliseconds(since))


async def resume_workflow(caller: Caller, request: Any) -> Any:
    """Let a paused workflow go on."""
    state = await _found(caller, request.workflow_id)
    name, since = local_name(state.correlation_id), None if state.paused is None else state.paused.since
    answer = message(f"{PACKAGE}.ResumeWorkflowResponse")
    try:
        changed = await caller.oraculo.pauses.resume(name, request.reason, caller.actor)
    except RunEndedError as error:
        return answer(success=False, message=str(error))
    now = caller.oraculo.now()
    lasted = 0 if since is None or not changed else round((now - since).total_seconds())
    said = "resumed" if changed else "it was not paused"
    return answer(success=True, message=said, resumed_at=milliseconds(now), pause_duration_seconds=lasted)


async def trigger_replanning(caller: Caller, request: Any) -> Any:
    """Refuse: what is planned is not decided here."""
    raise NotServedError("send a new plan with another plan_id, and cancel the old one")


async def get_status(caller: Caller, request: Any) -> Any:
    """Say how a workflow stands; its history when it is asked for."""
    state = await _found(caller, request.workflow_id)
    now, flow = caller.oraculo.now(), flow_in(state.plan)
    by_status = Counter(one.status for one in state.tickets)
    closed = sum(count for status, count in by_status.items() if status.final)
    tickets = {
        "total": len(state.tickets),
        "completed": by_status[Status.CONCLUIDA],
        "pending": by_status[Status.PENDENTE],
        "running": by_status[Status.EM_EXECUCAO],
        "failed": by_status[Status.ERRO] + by_status[Status.TIMEOUT],
    }
    answer = message(f"{PACKAGE}.GetWorkflowStatusResponse")(
        workflow_id=request.workflow_id,
        plan_id="" if flow is None else flow.plan_id,
        state=f"WORKFLOW_STATE_{_state(state)}",
        current_priority=state.priority or USUAL_PRIORITY,
        allocated_resources={"scheduling_priority": state.priority or USUAL_PRIORITY},
        progress_percent=100.0 * closed / len(state.tickets) if state.tickets else 100.0,
        started_at=milliseconds(state.started_at),
        updated_at=milliseconds(await _changed_at(caller, state)),
        metadata={"correlation_id": local_name(state.correlation_id)},
        **({"tickets": tickets} if request.include_tickets else {}),
    )
    if state.deadline is not None:
        answer.sla_deadline = milliseconds(state.deadline)
        answer.sla_remaining_seconds = round((state.deadline - now).total_seconds())
    if request.include_history:
        for event in await caller.oraculo.events(local_name(state.correlation_id), limit=HISTORY_EVENTS_MAX):
            said = {key: str(value) for key, value in event.items() if key in ("ticket_id", "status", "ator", "motivo")}
            answer.history.add(
                event_type=event["evento"],
                timestamp=milliseconds(event["em"]),
                description=" ".join(said.values()),
                metadata={"seq": str(event["seq"]), **said},
            )
    return answer


async def _changed_at(caller: Caller, state: Orchestration) -> datetime:
    """When the newest step was committed."""
    if state.closed_at is not None:
        return state.closed_at
    newest = await caller.oraculo.store.events(state.run, max(0, state.version - 1), 1)
    return newest[-1].at if newest else state.started_at


def _state(state: Orchestration) -> str:
    if state.closed_at is None and state.paused is not None:
        return "PAUSED"
    return _STATES.get(state.status, "RUNNING")


async def _found(caller: Caller, workflow_id: str, plan_id: str = "") -> Orchestration:
    """The orchestration of a workflow, by any of its names."""
    name = workflow_id or (f"orch-{plan_id}" if plan_id else "")
    if not name:
        raise invalid("workflow_id", "it is missing", "invalid_request")
    try:
        return await state_of_workflow(caller.oraculo, name)
    except (UnknownIdError, ProblemError):  # of no plan, or there are none
        return await caller.oraculo.state(name)


DEEDS = {
    "AdjustPriorities": Deed(Scope.RUN_CANCEL, adjust_priorities),
    "RebalanceResources": Deed(Scope.RUN_CANCEL, rebalance_resources),
    "PauseWorkflow": Deed(Scope.RUN_CANCEL, pause_workflow),
    "ResumeWorkflow": Deed(Scope.RUN_CANCEL, resume_workflow),
    "TriggerReplanning": Deed(Scope.RUN_SUBMIT, trigger_replanning),
    "GetWorkflowStatus": Deed(Scope.RUN_READ, get_status),
}
