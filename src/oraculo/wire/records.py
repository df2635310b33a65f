"""Our own events as versioned JSON: what the journal stores, and how it is read back.

Events are written field by field as they are; reading back is the inverse, one converter per field that JSON has no
type for. A change of shape gets a new FORMAT and an upcaster from the old one, so old journals stay readable for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import orjson

from oraculo.core import events as ev
from oraculo.core.commands import Approve, Cancel, Command, ConfirmDispatch, RecordDelivery, RecordResult, Start, Wake
from oraculo.core.flow import Flow, Spec
from oraculo.core.plan import Backoff, Gate, Notify, Plan, Task
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import Cause, FanIn, Kind, Priority, RiskBand, SecurityLevel, Status, TaskType
from oraculo.wire import strict_json

FORMAT = 1

_TYPES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        ev.OrchestrationStarted, ev.TicketsDispatched, ev.DispatchConfirmed, ev.TicketConcluded, ev.AttemptFailed,
        ev.TicketFailed, ev.LateAnswerKept, ev.TicketsClosed, ev.FanInClosed, ev.Woken, ev.CancelRequested,
        ev.ApprovalAsked, ev.ApprovalGiven, ev.ApprovalRefused, ev.CompensationStarted, ev.OrchestrationClosed,
        ev.NoticeSent, ev.NoticeDelivered, ev.NoticeFailed, ev.NoticeGivenUp,
    )
}  # fmt: skip


def encode(events: Sequence[ev.Event]) -> bytes:
    return strict_json.dumps([[type(event).__name__, event] for event in events])


def decode(body: bytes | str, format: int = FORMAT) -> list[ev.Event]:
    if format != FORMAT:
        raise ValueError(f"journal format {format} is not known; this version reads format {FORMAT}")
    return revive(orjson.loads(body))


def revive(values: Sequence[Sequence[Any]]) -> list[ev.Event]:
    """The events of what `encode` wrote, once the JSON is read."""
    return [_decode(name, fields) for name, fields in values]


def _decode(name: str, fields: dict[str, Any]) -> ev.Event:
    for key, convert in _CONVERT.items():
        value = fields.get(key)
        if key in fields and (value is not None or key == "dados"):
            fields[key] = convert(value)
    if name == "DispatchConfirmed":
        fields["tickets"] = [(position, attempt) for position, attempt in fields["tickets"]]
    event: ev.Event = _TYPES[name](**fields)
    return event


def _plan(value: dict[str, Any]) -> Plan:
    return Plan(
        tasks=tuple(_task(task) for task in value["tasks"]),
        gates=tuple(_gate(gate) for gate in value["gates"]),
        timeout=timedelta(seconds=value["timeout"]),
        backoff=Backoff(timedelta(seconds=value["backoff"]["base"]), timedelta(seconds=value["backoff"]["cap"])),
        notify=Notify(**value["notify"]),
        tipo=value["tipo"],
        rules=value["rules"],
        flow=None if value.get("flow") is None else _flow(value["flow"]),
    )


def _flow(value: dict[str, Any]) -> Flow:
    value["risk_band"] = RiskBand(value["risk_band"])
    value["priority"] = Priority(value["priority"])
    value["security_level"] = SecurityLevel(value["security_level"])
    value["specs"] = tuple(_spec(spec) for spec in value["specs"])
    value["document"] = strict_json.compact(value["document"])
    return Flow(**value)


def _spec(value: dict[str, Any]) -> Spec:
    value["task_type"] = TaskType(value["task_type"])
    value["dependencies"] = tuple(value["dependencies"])
    value["capabilities"] = tuple(value["capabilities"])
    value["metadata"] = strict_json.compact(value["metadata"])
    return Spec(**value)


def _task(value: dict[str, Any]) -> Task:
    value["kind"] = Kind(value["kind"])
    value["parametros"] = strict_json.compact(value["parametros"])
    value["timeout"] = timedelta(seconds=value["timeout"])
    value["feeds"] = tuple(value["feeds"])
    return Task(**value)


def _gate(value: dict[str, Any]) -> Gate:
    value["mode"] = FanIn(value["mode"])
    value["inputs"] = tuple(value["inputs"])
    value["releases"] = tuple(value["releases"])
    return Gate(**value)


_CONVERT: dict[str, Callable[[Any], Any]] = {
    "plan": _plan,
    "dados": strict_json.compact,
    "deadline": datetime.fromisoformat,
    "retry_at": datetime.fromisoformat,
    "retry_after": lambda seconds: timedelta(seconds=seconds),
    "status": Status,
    "cause": Cause,
}


def cause_of(run: int, events: Sequence[ev.Event]) -> Command:
    """The command that a step's first event mirrors. Replaying it must give the same events again."""
    first = events[0]
    match first:
        case ev.OrchestrationStarted(started, correlation_id, plan, _deadline, fingerprint, traceparent):
            return Start(started, correlation_id, plan, fingerprint, traceparent)
        case ev.DispatchConfirmed(tickets):
            return ConfirmDispatch(tickets)
        case ev.TicketConcluded(position, attempt, dados, erros, digest):
            return RecordResult(True, dados, erros, False, ticket_id(run, position), attempt, digest=digest)
        case ev.AttemptFailed(position, attempt, _cause, erros, _retry_at, dados, digest):
            return RecordResult(False, dados, erros, False, ticket_id(run, position), attempt, digest=digest)
        case ev.TicketFailed(position, attempt, _status, erros, dados, definitivo, digest):
            return RecordResult(False, dados, erros, definitivo, ticket_id(run, position), attempt, digest=digest)
        case ev.LateAnswerKept(position, attempt, ok, dados, erros, definitivo, digest):
            return RecordResult(ok, dados, erros, definitivo, ticket_id(run, position), attempt, digest=digest)
        case ev.Woken():
            return Wake()
        case ev.CancelRequested(reason):
            return Cancel(reason)
        case ev.ApprovalGiven(by, reason):
            return Approve(True, by, reason)
        case ev.ApprovalRefused(by, reason):
            return Approve(False, by, reason)
        case ev.NoticeDelivered(notice, attempt, detail):
            return RecordDelivery(notice, attempt, True, False, detail)
        case ev.NoticeFailed(notice, attempt, detail, _retry_at, retry_after):
            return RecordDelivery(notice, attempt, False, False, detail, retry_after)
        case ev.NoticeGivenUp(notice, attempt, detail, final, retry_after):
            return RecordDelivery(notice, attempt, False, final, detail, retry_after)
        case _:
            raise ValueError(f"{type(first).__name__} cannot be the first event of a step")
