"""Our own events as versioned JSON: what the journal stores, and how it is read back.

Events are written field by field as they are; reading back is the inverse, one converter per field that JSON has no
type for. A change of shape gets a new FORMAT and an upcaster from the old one (wire/upcasts.py), so old journals stay
readable for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import orjson

from oraculo.core import events as ev
from oraculo.core.allocations import Allocation, AllocationMethod, Candidate, NotChosen
from oraculo.core.flow.profile import Flow, Spec
from oraculo.core.named_tasks import ChildSpec, LoopSpec, MapSpec, NamedTask, NamedTasks, UndoSpec
from oraculo.core.plan import DOUBLING, Added, Backoff, Gate, Join, NoticeTargets, Parent, Plan, Task, UndoWindow
from oraculo.core.policies import PolicyFinding, PolicyPoint, PolicySource, PolicyViolation
from oraculo.core.priority import PriorityScore
from oraculo.core.profile import PLAIN, Profile
from oraculo.core.reasons import Reason, ReasonCode
from oraculo.core.resolution import IdleItems, Obstacle, Outcome, Resolution
from oraculo.core.reuse import Origin, RetryFrom, ReusedResult, ReusedRows
from oraculo.core.uniqueness import UniqueMode, Uniqueness
from oraculo.core.vocabulary import Cause, Ending, FanIn, Kind, Priority, RiskBand, SecurityLevel, Status, TaskType
from oraculo.core.waits import Wait, WaitEnd, WaitKind
from oraculo.wire import strict_json, upcasts
from oraculo.wire.event_text import event_text

FORMAT = 2

_TYPES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        ev.OrchestrationStarted, ev.ResultsReused, ev.TicketsReused, ev.MapRestored,
        ev.TicketsDispatched, ev.DispatchConfirmed, ev.TicketConcluded, ev.AttemptFailed,
        ev.TicketFailed, ev.TicketRequeued, ev.TicketWithdrawn, ev.LateAnswerKept, ev.ConflictingAnswerKept,
        ev.TicketsClosed, ev.FanInClosed, ev.TasksAsked, ev.Resolved, ev.PlanGrown, ev.MapEnded, ev.LoopEnded, ev.Woken,
        ev.CancelRequested, ev.OrchestrationPaused, ev.OrchestrationResumed, ev.PriorityChanged,
        ev.SignalReceived, ev.WaitStarted, ev.WaitEnded, ev.ChildEnded, ev.ChildrenCancelled,
        ev.ApprovalAsked, ev.ApprovalGiven, ev.ApprovalRefused, ev.CompensationStarted, ev.OrchestrationClosed,
        ev.NoticeSent, ev.NoticeDelivered, ev.NoticeFailed, ev.NoticeGivenUp,
        ev.PolicyAsked, ev.PolicyEvaluated, ev.AnswerHeld, ev.TicketAllocated,
    )
}  # fmt: skip


def encode(events: Sequence[ev.Event]) -> bytes:
    return b"[%b]" % b",".join([event_text(event) for event in events])


def decode(body: bytes | str, format: int = FORMAT) -> list[ev.Event]:
    """The events of one step, written in this format or in an earlier one."""
    values = orjson.loads(body)
    if format == 1:
        upcasts.from_1(values)
    elif format != FORMAT:
        raise ValueError(f"journal format {format} is not known; this version reads formats 1 to {FORMAT}")
    return [_decode(name, fields) for name, fields in values]


def revive(values: Sequence[Sequence[Any]]) -> list[ev.Event]:
    """The events of one step whose format was not written beside them, once the JSON is read."""
    if upcasts.is_1(values):
        upcasts.from_1(values)
    return [_decode(name, fields) for name, fields in values]


def _decode(name: str, fields: dict[str, Any]) -> ev.Event:
    for key, convert in _CONVERT.get(name, ()):
        value = fields.get(key)
        if key in fields and (value is not None or key == "dados"):
            fields[key] = convert(value)
    event: ev.Event = _TYPES[name](**fields)
    return event


def _plan(value: dict[str, Any]) -> Plan:
    return Plan(
        tasks=tuple(_task(task) for task in value["tasks"]),
        gates=tuple(_gate(gate) for gate in value["gates"]),
        timeout=None if value["timeout"] is None else timedelta(seconds=value["timeout"]),
        backoff=_backoff(value["backoff"]),
        notify=_notify(value["notify"]),
        tipo=value["tipo"],
        rules=value["rules"],
        approval=value["approval"],
        undo=None if value["undo"] is None else timedelta(seconds=value["undo"]),
        ending=Ending(value["ending"]),
        profile=_profile(value["profile"]),
        labels=tuple(value.get("labels", ())),
        parent=None if value.get("parent") is None else Parent(**value["parent"]),
        policies=tuple(PolicyPoint(point) for point in value.get("policies", ())),
        unique=None if value.get("unique") is None else _unique(value["unique"]),
        undo_attempts=value.get("undo_attempts"),
        undo_strict=value.get("undo_strict", False),
    )


def _unique(value: dict[str, Any]) -> Uniqueness:
    window = None if value["window"] is None else timedelta(seconds=value["window"])
    return Uniqueness(value["key"], UniqueMode(value["mode"]), window)


def _backoff(value: dict[str, Any]) -> Backoff:
    factor = value.get("factor", DOUBLING)
    return Backoff(timedelta(seconds=value["base"]), timedelta(seconds=value["cap"]), factor)


def _profile(value: dict[str, Any] | None) -> Profile:
    if not value:
        return PLAIN
    return _named_tasks(value) if "named" in value else _flow(value)


def _named_tasks(value: dict[str, Any]) -> NamedTasks:
    texts = {key: strict_json.compact(value[key]) for key in ("document", "input", "output") if key in value}
    return NamedTasks(tuple(_named_task(one) for one in value["named"]), **texts)


def _named_task(value: dict[str, Any]) -> NamedTask:
    value["needs"] = tuple(value["needs"])
    value["backoff"] = None if value["backoff"] is None else _backoff(value["backoff"])
    value["final_codes"] = tuple(value["final_codes"])
    value["when"] = strict_json.compact(value.get("when"))
    value["map"] = _map(value["map"]) if value.get("map") else None
    value["wait"] = None if value.get("wait") is None else _wait(value["wait"])
    value["loop"] = None if value.get("loop") is None else _loop(value["loop"])
    value["undo"] = None if value.get("undo") is None else _undo(value["undo"])
    value["child"] = None if value.get("child") is None else ChildSpec(strict_json.compact(value["child"]["request"]))
    return NamedTask(**value)


def _undo(value: dict[str, Any]) -> UndoSpec:
    return UndoSpec(_task(value["task"]), _named_task(value["spec"]), value["keeps_item"])


def _map(value: dict[str, Any]) -> MapSpec:
    value["items"] = strict_json.compact(value["items"])
    value["task"] = _task(value["task"])
    value["item"] = _named_task(value["item"])
    value["join"] = Join(FanIn(value["join"]["mode"]), value["join"]["minimo"])
    value["limit"] = None if value["limit"] is None else timedelta(seconds=value["limit"])
    return MapSpec(**value)


def _loop(value: dict[str, Any]) -> LoopSpec:
    value["task"] = _task(value["task"])
    value["item"] = _named_task(value["item"])
    value["stop_when"] = strict_json.compact(value["stop_when"])
    value["pause"] = timedelta(seconds=value["pause"])
    value["limit"] = None if value["limit"] is None else timedelta(seconds=value["limit"])
    return LoopSpec(**value)


def _wait(value: dict[str, Any]) -> Wait:
    value["kind"] = WaitKind(value["kind"])
    value["roles"] = tuple(value["roles"])
    value["limit"] = None if value["limit"] is None else timedelta(seconds=value["limit"])
    return Wait(**value)


def _notify(value: dict[str, Any]) -> NoticeTargets:
    waits = tuple(timedelta(seconds=seconds) for seconds in value["waits"])
    return NoticeTargets(value["webhook"], value["queue"], waits)


def _flow(value: dict[str, Any]) -> Flow:
    value["risk_band"] = RiskBand(value["risk_band"])
    value["priority"] = Priority(value["priority"])
    value["security_level"] = SecurityLevel(value["security_level"])
    value["specs"] = tuple(_spec(spec) for spec in value["specs"])
    value["document"] = strict_json.compact(value["document"])
    value["score"] = PriorityScore(**value["score"]) if value.get("score") else None
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


def _added(value: dict[str, Any]) -> Added:
    return Added(
        tuple(_task(task) for task in value["tasks"]),
        tuple(_gate(gate) for gate in value["gates"]),
        tuple(_spec(spec) for spec in value["specs"]),
        tuple(UndoWindow(**window) for window in value.get("windows", ())),
    )


def _reason(value: dict[str, Any]) -> Reason:
    return Reason(ReasonCode(value["code"]), value["params"])


def revive_resolution(value: dict[str, Any]) -> Resolution:
    """One resolution whose JSON is read."""
    value["outcome"] = Outcome(value["outcome"])
    value["value"] = strict_json.compact(value["value"])
    value["obstacle"] = Obstacle(value.get("obstacle", Obstacle.EXPRESSION))
    return Resolution(**value)


def revive_finding(value: dict[str, Any]) -> PolicyFinding:
    """What policies said of one ticket, whose JSON is read."""
    for key in ("violations", "warnings"):
        value[key] = [PolicyViolation(**one) for one in value.get(key, ())]
    return PolicyFinding(**value)


def revive_allocation(value: dict[str, Any]) -> Allocation:
    """The choice of a worker, whose JSON is read."""
    candidates = value["candidates"]
    for one in candidates:
        one["reason"] = None if one["reason"] is None else NotChosen(one["reason"])
    value["candidates"] = tuple(Candidate(**one) for one in candidates)
    value["method"] = AllocationMethod(value["method"])
    value["refused"] = {NotChosen(reason): count for reason, count in value["refused"].items()}
    return Allocation(**value)


def revive_row(values: list[Any]) -> tuple[bytes, ...]:
    """The values of one item whose JSON is read."""
    return tuple(map(strict_json.compact, values))


def revive_idle(value: dict[str, Any]) -> IdleItems:
    """Items that do not start, whose JSON is read."""
    return IdleItems(value["items"], revive_resolution(value["why"]))


def _origin(value: dict[str, Any]) -> Origin:
    value["mode"] = RetryFrom(value["mode"])
    return Origin(**value)


def _reused_result(value: dict[str, Any]) -> ReusedResult:
    value["dados"] = strict_json.compact(value["dados"])
    return ReusedResult(**value)


def _reused_rows(value: dict[str, Any]) -> ReusedRows:
    value["rows"] = [revive_row(row) for row in value["rows"]]
    value["idle"] = [revive_idle(one) for one in value["idle"]]
    return ReusedRows(**value)


_DADOS = ("dados", strict_json.compact)
_STATUS = ("status", Status)
_REASON = ("reason", _reason)
_PAIRS = ("tickets", lambda pairs: [(position, attempt) for position, attempt in pairs])
_RETRY_AT = ("retry_at", datetime.fromisoformat)
_RETRY_AFTER = ("retry_after", lambda seconds: timedelta(seconds=seconds))
_CONVERT: dict[str, tuple[tuple[str, Callable[[Any], Any]], ...]] = {
    "OrchestrationStarted": (("plan", _plan), ("deadline", datetime.fromisoformat), ("origin", _origin)),
    "ResultsReused": (
        ("results", lambda all_: [_reused_result(one) for one in all_]),
        ("rows", lambda all_: [_reused_rows(one) for one in all_]),
    ),
    "DispatchConfirmed": (_PAIRS,),
    "ChildrenCancelled": (_PAIRS,),
    "ChildEnded": (_STATUS, _DADOS),
    "TicketConcluded": (_DADOS,),
    "AttemptFailed": (("cause", Cause), _RETRY_AT, _DADOS, _REASON),
    "TicketFailed": (_STATUS, _DADOS, _REASON),
    "TicketWithdrawn": (("cause", Cause), ("wait", lambda seconds: timedelta(seconds=seconds))),
    "TicketAllocated": (("allocation", revive_allocation),),
    "LateAnswerKept": (_DADOS,),
    "ConflictingAnswerKept": (_DADOS,),
    "TicketsClosed": (_STATUS, _REASON),
    "SignalReceived": (_DADOS,),
    "WaitStarted": (("due_at", datetime.fromisoformat),),
    "WaitEnded": (("how", WaitEnd), _STATUS, _DADOS, _REASON),
    "Resolved": (("resolutions", lambda all_: [revive_resolution(one) for one in all_]), ("output", revive_resolution)),
    "PolicyAsked": (("point", PolicyPoint), _PAIRS),
    "PolicyEvaluated": (
        ("point", PolicyPoint),
        _PAIRS,
        ("findings", lambda all_: [revive_finding(one) for one in all_]),
        ("source", lambda value: PolicySource(**value)),
    ),
    "AnswerHeld": (_DADOS,),
    "PlanGrown": (
        ("rows", lambda rows: [revive_row(row) for row in rows]),
        ("idle", lambda all_: [revive_idle(one) for one in all_]),
        ("due_at", datetime.fromisoformat),
    ),
    "MapEnded": (_STATUS, _REASON),
    "LoopEnded": (_STATUS, _REASON),
    "CompensationStarted": (("added", _added), ("ending", Status)),
    "OrchestrationClosed": (_STATUS,),
    "NoticeFailed": (_RETRY_AT, _RETRY_AFTER),
    "NoticeGivenUp": (_RETRY_AFTER,),
}
