"""Orchestrations as documents: what each collection holds of a state. The same state gives the same documents.

Times of tickets are milliseconds, as in their Avro record; other times are instants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from oraculo.core import events as ev
from oraculo.core import sentences
from oraculo.core.consolidation import milliseconds
from oraculo.core.flow import outcome
from oraculo.core.flow.profile import flow_in
from oraculo.core.state import Orchestration
from oraculo.core.ticket_id import ticket_id
from oraculo.core.ticket_state import Ticket
from oraculo.core.vocabulary import Kind, Status
from oraculo.ports.system_events import SystemEvent
from oraculo.wire import strict_json
from oraculo.wire.flow.telemetry import incident_record
from oraculo.wire.flow.texts import texts
from oraculo.wire.flow.tickets import allocation, execution_ticket

Document = dict[str, Any]

# What a document was made from: the number of the orchestration, which grows with time, and how many events it had. As
# text that sorts: an older document never replaces a newer one, not even of an earlier run of the same plan.
ORDER = "journal_order"
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00Z")
_MS = timedelta(milliseconds=1)
_INT64_LIMIT = 2**63
_TASK_TYPES = {Kind.COLETA: "QUERY", Kind.EXECUCAO: "EXECUTE", Kind.MAPA: "MAP", Kind.ESPERA: "WAIT"}
_TASK_TYPES |= {Kind.REPETE: "LOOP", Kind.FILHA: "CHILD"}  # those that are no work of workers
_VALIDATIONS = ("plan_validated", "plan_refused")


def plan_of(state: Orchestration) -> str:
    return state.plan.profile.labels(state.run).plan_id


def workflow_of(state: Orchestration) -> str:
    return state.plan.profile.labels(state.run).workflow_id


def _identity(state: Orchestration) -> Document:
    labels = state.plan.profile.labels(state.run)
    return {
        "workflow_id": labels.workflow_id,
        "plan_id": labels.plan_id,
        "intent_id": labels.intent_id,
        "decision_id": labels.decision_id,
        "correlation_id": labels.correlation_id or state.correlation_id,
        ORDER: f"{state.run:019d}.{state.version:09d}",
    }


def touched(state: Orchestration, events: Iterable[ev.Event]) -> set[int]:
    """The positions of the tickets that these events changed."""
    found: set[int] = set()
    for event in events:
        match event:
            case ev.OrchestrationStarted():
                found.update(range(len(event.plan.tasks)))
            case ev.TicketsDispatched(positions, _) | ev.TicketsClosed(positions, _, _) | ev.TicketsReused(positions):
                found.update(positions)
            case ev.DispatchConfirmed(confirmed):
                found.update(position for position, _ in confirmed)
            case ev.PlanGrown(owner, first, _, count) | ev.MapRestored(owner, first, count):
                found.update((owner, *range(first, first + count)))
            case ev.TicketConcluded() | ev.AttemptFailed() | ev.TicketFailed() | ev.TicketRequeued():
                found.add(event.ticket)
            case ev.MapEnded() | ev.LoopEnded() | ev.ChildEnded() | ev.TicketWithdrawn() | ev.TicketAllocated():
                found.add(event.ticket)
            case ev.LateAnswerKept() | ev.ConflictingAnswerKept() | ev.WaitStarted() | ev.WaitEnded():
                found.add(event.ticket)
            case ev.CompensationStarted(undone, _):
                found.update(undone)
                found.update(range(state.undoes, state.undoes + len(undone)))
            case _:
                pass
    if state.undoes:
        undone_by = {number: position for position, number in state.undone.items()}
        found.update([undone_by[position] for position in found if position in undone_by])
    return found


def ledger(state: Orchestration) -> Document | None:
    flow = flow_in(state.plan)
    if flow is None:
        return None
    return {
        "_id": flow.plan_id,
        **_identity(state),
        "risk_band": flow.risk_band.value,
        "priority": flow.priority.value,
        "priority_score": None if flow.score is None else flow.score.value,
        "status": "pending_approval" if state.awaits_approval else "rejected" if _refused(state) else "approved",
        "approved_by": state.approved_by,
        "created_at": state.started_at,
        "plan_data": storable(strict_json.loads_trusted(flow.document)),
    }


def _refused(state: Orchestration) -> bool:
    return state.plan.approval and state.status is Status.CANCELADA and not any(map(_tried, state.tickets))


def _tried(ticket: Ticket) -> bool:
    return ticket.attempt > 0


def workflow(state: Orchestration) -> Document:
    return {
        "_id": workflow_of(state),
        **_identity(state),
        "run": state.run,
        "tipo": state.plan.tipo,
        "status": state.status.value,
        "awaits_approval": state.awaits_approval,
        "started_at": state.started_at,
        "closed_at": state.closed_at,
        "deadline": state.deadline,
        "tickets_total": len(state.tickets),
        "tickets_open": state.open,
        "cancel_reason": state.cancel_reason,
        "compensation_reason": state.undo_reason,
    }


# -- tickets -----------------------------------------------------------------------------------------------------------


def tickets(state: Orchestration, positions: Iterable[int]) -> Iterator[Document]:
    return (ticket(state, position) for position in positions)


def ticket(state: Orchestration, position: int) -> Document:
    """The ExecutionTicket, as far as there is one: what an ordinary request does not have is null."""
    one = state.tickets[position]
    created = one.dispatched_at or state.started_at
    record = _plain(state, position, created) if flow_in(state.plan) is None else _flow(state, position, created)
    whole = {"_id": record["ticket_id"], **record, **_identity(state), "queue": state.plan.tasks[position].queue}
    return {**whole, **{name: storable(record[name]) for name in ("parameters", "metadata")}}


def _flow(state: Orchestration, position: int, created: datetime) -> Document:
    record = execution_ticket(state, position, created)
    return {**record, "allocation_metadata": allocation(state, position, created)}


def _plain(state: Orchestration, position: int, created: datetime) -> Document:
    task, one = state.plan.tasks[position], state.tickets[position]
    return {
        "ticket_id": ticket_id(state.run, position),
        "task_id": f"{task.kind.value}-{position}",
        "task_name": state.plan.profile.name_of(position),
        "task_type": _TASK_TYPES[task.kind],
        "description": task.name,
        "dependencies": [] if task.after is None else _ids(state, state.plan.gates[task.after].inputs),
        "priority": "NORMAL",
        "risk_band": None,
        "required_capabilities": [],
        "security_level": "INTERNAL",
        "estimated_duration_ms": None,
        "status": "SKIPPED" if one.status is Status.IGNORADA else outcome.ticket_status(state, position).value,
        "sla": {
            "deadline": _ms(created + task.timeout) if task.timeout else None,
            "timeout_ms": task.timeout // _MS if task.timeout else None,
            "max_retries": task.max_attempts - 1,
        },
        "qos": None,
        "parameters": _parameters(state, position),
        "created_at": _ms(created),
        "started_at": _ms(one.started_at),
        "completed_at": _ms(one.closed_at),
        "actual_duration_ms": milliseconds(one.dispatched_at, one.closed_at),
        "retry_count": max(0, one.attempt - 1),
        "error_message": _error(one),
        "compensation_ticket_id": _undone_by(state, position),
        "metadata": {"workflow_id": workflow_of(state), "generated_by": "oraculo", "attempt": str(one.attempt)},
        "schema_version": 1,
    }


def _parameters(state: Orchestration, position: int) -> dict[str, str]:
    """What a task was given. A wait has its seconds, instant or question as the only value; rounds of a loop that are
    over, and tasks without parameters, have none."""
    given = strict_json.loads_trusted(state.parameters(position))
    if given is None:
        return {}
    return texts(given if isinstance(given, dict) else {"value": given})


def _undone_by(state: Orchestration, position: int) -> str | None:
    undoes = state.undone.get(position)
    return None if undoes is None else ticket_id(state.run, undoes)


def _ids(state: Orchestration, positions: Sequence[int]) -> list[str]:
    return [ticket_id(state.run, position) for position in positions]


def _error(one: Ticket) -> str | None:
    if one.status is Status.CONCLUIDA:
        return None
    return sentences.message(sentences.errors_of(one)) or sentences.say_optional(one.reason)


# -- the end -----------------------------------------------------------------------------------------------------------


def result(state: Orchestration) -> Document:
    assert state.closed_at is not None
    found = outcome.consolidated(state, state.closed_at) if flow_in(state.plan) is not None else _ended(state)
    return {"_id": workflow_of(state), **found, **_identity(state)}


def _ended(state: Orchestration) -> Document:
    assert state.closed_at is not None
    left = None if state.deadline is None else state.deadline - state.closed_at
    return {
        "status": outcome.overall(state),
        "metrics": {
            "total_tickets": len(state.tickets),
            "successful_tickets": sum(1 for one in state.tickets if one.status is Status.CONCLUIDA),
            "failed_tickets": sum(1 for one in state.tickets if one.status is not Status.CONCLUIDA),
            "compensated_tickets": 0,
            "total_duration_ms": milliseconds(state.started_at, state.closed_at),
            "total_retries": sum(max(0, one.attempt - 1) for one in state.tickets),
            "sla_violations": sum(1 for one in state.tickets if one.status is Status.TIMEOUT),
        },
        "tickets_summary": [
            {
                "ticket_id": ticket_id(state.run, position),
                "status": outcome.ticket_status(state, position).value,
                "duration": milliseconds(one.dispatched_at, one.closed_at),
            }
            for position, one in enumerate(state.tickets)
        ],
        "sla_remaining_seconds": None if left is None else max(0.0, left.total_seconds()),
        "compensation_triggered": False,
        "consolidated_at": state.closed_at,
    }


def incidents(state: Orchestration) -> Iterator[Document]:
    """Of a plan of Fluxo C that has ended: at most one of each type."""
    if flow_in(state.plan) is None or state.closed_at is None:
        return
    for one in outcome.incidents(state):
        record = incident_record(state, one, state.closed_at)
        named = {"_id": one.incident_id, "type": one.incident_type.value, "timestamp": state.closed_at}
        yield {**record, **_identity(state), **named}


# -- validations -------------------------------------------------------------------------------------------------------


def accepted(state: Orchestration) -> Document | None:
    """Of a plan of Fluxo C that runs: it was found valid."""
    if flow_in(state.plan) is None:
        return None
    about = _identity(state)
    del about[ORDER]
    asked = state.undoes or len(state.plan.tasks)
    found = {"valid": True, "errors": [], "tickets": asked}
    return _validation(f"{state.run}:accepted", state.started_at, about, found)


def noted(event: SystemEvent) -> Document | None:
    """Of a plan that was looked at and does not run."""
    if event.kind not in _VALIDATIONS:
        return None
    body = storable(event.body)
    known = {name: body.get(name) for name in ("plan_id", "intent_id", "decision_id", "correlation_id")}
    reasons = [str(body[name]) for name in ("motivo", "detalhe") if body.get(name)]
    valid = event.kind == "plan_validated"
    return _validation(
        f"system:{event.id}",
        event.at,
        {"workflow_id": None, **known},
        {"valid": valid, "errors": [] if valid else reasons},
    )


def _validation(identity: str, at: datetime, about: Document, found: Document) -> Document:
    digest = sha256(strict_json.canonical(found)).hexdigest()
    return {"_id": identity, **about, "timestamp": at, "result": found, "hash": digest}


# -- values ------------------------------------------------------------------------------------------------------------


def _ms(at: datetime | None) -> int | None:
    return None if at is None else (at - _EPOCH) // _MS


def storable(value: Any) -> Any:
    """JSON as BSON can hold it everywhere: no dots and dollars in names, no integers beyond 64 bits."""
    if isinstance(value, dict):
        return {_key(key): storable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, int) and not -_INT64_LIMIT <= value < _INT64_LIMIT:
        return str(value)
    return value


def _key(name: str) -> str:
    escaped = name.replace(".", "\N{FULLWIDTH FULL STOP}").replace("\x00", "\N{REPLACEMENT CHARACTER}")
    return "\N{FULLWIDTH DOLLAR SIGN}" + escaped[1:] if escaped.startswith("$") else escaped or "_"
