"""What travels between an engine and its workflows, as JSON that Temporal's tools show as it is.

A *batch* is what one signal brings: commands, and the instant at which they count. It is projected before the workflow
task that reads it is over, so it must mean the same whenever that task is tried again: hence its own instant.

What a workflow made true goes the other way: steps as the journal has them, and what became of each message.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import orjson
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue

from oraculo.core.commands import (
    AllocateTicket,
    Approve,
    Cancel,
    Command,
    ConfirmCancel,
    ConfirmDispatch,
    Grow,
    Judge,
    PauseRun,
    Prioritise,
    RecordDelivery,
    RecordResult,
    RequeueTicket,
    Resolve,
    ResumeRun,
    Signal,
    WithdrawTicket,
)
from oraculo.core.events import OrchestrationStarted
from oraculo.core.policies import PolicyPoint, PolicySource
from oraculo.core.step import Step
from oraculo.core.vocabulary import Cause, Kind, Status, Verdict
from oraculo.ports.work import EngineCommand, EvaluatedTasks, Work
from oraculo.wire import mensagem, names, payloads, records, strict_json

JSON = {"encoding": b"json/plain"}


def wrap(value: Any) -> RawValue:
    return RawValue(Payload(metadata=JSON, data=strict_json.dumps(value)))


def unwrap(raw: RawValue) -> Any:
    return orjson.loads(raw.payload.data)


# -- the beginning -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class WorkflowInput:
    """How a workflow begins: with an orchestration that starts, or (`started` is None) with what the journal has up to
    `version`. `key` is the idempotency key with its fingerprint; `marked`: search attributes may be set."""

    run: int
    at: datetime
    started: OrchestrationStarted | None = None
    version: int = 0
    key: tuple[str, str] | None = None
    marked: bool = False

    def pack(self) -> RawValue:
        return wrap(
            {
                "run": self.run,
                "at": self.at,
                "started": None if self.started is None else records.encode([self.started]),
                "version": self.version,
                "key": self.key,
                "marked": self.marked,
            }
        )

    @classmethod
    def unpack(cls, raw: RawValue) -> WorkflowInput:
        value = unwrap(raw)
        started: OrchestrationStarted | None = None
        for event in records.revive(value["started"] or ()):
            assert isinstance(event, OrchestrationStarted)
            started = event
        key = None if value["key"] is None else (value["key"][0], value["key"][1])
        return cls(value["run"], datetime.fromisoformat(value["at"]), started, value["version"], key, value["marked"])


# -- commands ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class WorkflowCommand:
    """A command, and the message that brought it, if one did."""

    command: Command
    queue: str = ""
    broker: str = ""
    body: bytes = b""


def _pack_message(work: Work, command: Command) -> list[Any]:
    """An answer as it came. What it means is read by the workflow, where it is one of our own envelopes and names its
    ticket itself, if that is known."""
    answer, body = command if isinstance(command, RecordResult) else None, work.body
    named = answer is None or answer.ticket is None or answer.ticket.encode() in body
    if work.queue == names.RESULTS and named and not work.fixed:
        return ["message", work.queue, work.broker, body.decode(), *_named(None if answer is None else answer.actor)]
    return ["answer", work.queue, work.broker, b64encode(body).decode(), command]


def _named(actor: str | None) -> list[str]:
    """The actor as a trailing argument; none without an actor, as messages were before there were actors."""
    return [] if actor is None else [actor]


def pack_command(command: Command) -> list[Any]:
    """A command that no message brought."""
    match command:
        case ConfirmDispatch(tickets):
            return ["confirm", tickets]
        case ConfirmCancel(children):
            return ["cancelled", children]
        case RecordDelivery():
            return ["delivery", command]
        case Cancel(reason, actor, True):
            return ["cancel", reason, actor, True]
        case Cancel(reason, actor):
            return ["cancel", reason, *_named(actor)]
        case PauseRun(reason, actor):
            return ["pause", reason, *_named(actor)]
        case ResumeRun(reason, actor):
            return ["resume", reason, *_named(actor)]
        case Prioritise(priority, reason, actor):
            return ["prioritise", priority, reason, actor]
        case RequeueTicket(position, attempt, actor):
            return ["requeue", position, attempt, *_named(actor)]
        case WithdrawTicket(position, attempt, cause, worker, wait, actor, by):
            return ["withdraw", position, attempt, cause, worker, wait, actor, *([by] if by else [])]
        case AllocateTicket(position, attempt, allocation):
            return ["allocate", position, attempt, allocation]
        case Approve(approved, by, reason, actor, None):
            return ["approve", approved, by, reason, *_named(actor)]
        case Approve(approved, by, reason, actor, task):
            return ["approve", approved, by, reason, actor, task]
        case Signal(id, name, dados, actor):
            return ["signal", id, name, dados, actor]
        case RecordResult():
            return ["result", command]
        case Resolve(resolutions, output):
            return ["resolve", resolutions, output]
        case Judge(point, tickets, findings, source):
            return ["judge", point, tickets, findings, source]
        case Grow(owner, offset, count, total, _rows, _template, idle):
            return ["grow", owner, offset, count, total, idle]  # a workflow knows no data
        case _:
            raise TypeError(f"{type(command).__name__} is nothing that a workflow is told")


def pack_batch(works: Sequence[Work], at: datetime) -> RawValue:
    """`traces`: contexts of workers that came in headers, by the number of the item; an envelope has its own."""
    traces: dict[str, str] = {}
    items: list[list[Any]] = []
    for work in works:
        trace = work.command.traceparent if isinstance(work.command, RecordResult) else None
        if trace is not None and trace.encode() not in work.body:
            traces[str(len(items))] = trace
        items += _pack_items(work)
    batch = {"at": at, "items": items}
    return wrap({**batch, "traces": traces} if traces else batch)


def _pack_items(work: Work) -> list[list[Any]]:
    """One item, or several that count together."""
    command = work.command
    assert command is not None and not isinstance(command, EngineCommand)
    if isinstance(command, EvaluatedTasks):
        return [pack_command(one) for one in command.commands]
    if work.body:
        return [_pack_message(work, command)]
    return [pack_command(command)]


@dataclass(slots=True)
class CommandBatch:
    """The commands of one signal, and the instant at which they count."""

    items: list[WorkflowCommand]
    at: datetime | None = None  # None: whenever it is read


def unpack_batch(raw: RawValue) -> CommandBatch:
    value = unwrap(raw)
    items = [unpack_item(item) for item in value["items"]]
    for number, trace in value.get("traces", {}).items():
        command = items[int(number)].command
        if isinstance(command, RecordResult):
            command.traceparent = trace
    return CommandBatch(items, datetime.fromisoformat(value["at"]))


def unpack_item(item: Sequence[Any]) -> WorkflowCommand:
    kind, *given = item
    match kind:
        case "message":
            queue, broker, body, *actor = given
            raw = body.encode()
            answer = payloads.answer(mensagem.parse(raw), raw)
            answer.actor = actor[0] if actor else None
            return WorkflowCommand(answer, queue, broker, raw)
        case "answer":
            queue, broker, body, fields = given
            return WorkflowCommand(_result(fields), queue, broker, b64decode(body))
        case "confirm":
            return WorkflowCommand(ConfirmDispatch([(position, attempt) for position, attempt in given[0]]))
        case "cancelled":
            return WorkflowCommand(ConfirmCancel([(position, attempt) for position, attempt in given[0]]))
        case "delivery":
            fields = dict(given[0])
            if fields["retry_after"] is not None:
                fields["retry_after"] = timedelta(seconds=fields["retry_after"])
            return WorkflowCommand(RecordDelivery(**fields))
        case "cancel":
            return WorkflowCommand(Cancel(*given))
        case "pause":
            return WorkflowCommand(PauseRun(*given))
        case "resume":
            return WorkflowCommand(ResumeRun(*given))
        case "prioritise":
            return WorkflowCommand(Prioritise(*given))
        case "requeue":
            return WorkflowCommand(RequeueTicket(*given))
        case "withdraw":
            position, attempt, cause, worker, wait, actor, *by = given
            due = None if wait is None else timedelta(seconds=wait)
            return WorkflowCommand(WithdrawTicket(position, attempt, Cause(cause), worker, due, actor, *by))
        case "allocate":
            position, attempt, allocation = given
            return WorkflowCommand(AllocateTicket(position, attempt, records.revive_allocation(allocation)))
        case "approve":
            return WorkflowCommand(Approve(*given))
        case "signal":
            id, name, dados, actor = given
            return WorkflowCommand(Signal(id, name, strict_json.compact(dados), actor))
        case "resolve":
            resolutions, output = given
            found = None if output is None else records.revive_resolution(output)
            return WorkflowCommand(Resolve([records.revive_resolution(one) for one in resolutions], found))
        case "judge":
            point, tickets, findings, source = given
            pairs = [(position, attempt) for position, attempt in tickets]
            said = [records.revive_finding(one) for one in findings]
            return WorkflowCommand(Judge(PolicyPoint(point), pairs, said, PolicySource(**source)))
        case "grow":
            owner, offset, count, total, idle = given
            kept = [records.revive_idle(one) for one in idle]
            return WorkflowCommand(Grow(owner, offset, count, total, [], None, kept))
        case "result":
            return WorkflowCommand(_result(given[0]))
        case _:
            raise ValueError(f"a workflow was told {kind!r}, which this version does not know")


def _result(fields: dict[str, Any]) -> RecordResult:
    fields["dados"] = strict_json.compact(fields["dados"])
    fields["kind"] = None if fields["kind"] is None else Kind(fields["kind"])
    fields["child"] = None if fields.get("child") is None else Status(fields["child"])
    return RecordResult(**fields)


# -- what became true --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class StepReport:
    """What a workflow made of a batch: its steps, and what became of the messages in it. `version` is how far it has
    come with them. `answers` are contexts of workers, by the first event of the step; none where nothing is traced."""

    run: int
    at: datetime
    version: int = 0
    steps: list[Any] = field(default_factory=list)  # [first, at, events] each
    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # queue, broker, verdict
    refused: list[tuple[str, str, str, str]] = field(default_factory=list)  # queue, broker, verdict, body in Base64
    correlation_id: str = ""
    key: tuple[str, str] | None = None  # of the first step
    orders: bool = False  # messages are owed because of it
    answers: dict[int, str] = field(default_factory=dict)

    def add(self, done: Step, item: WorkflowCommand | None = None) -> None:
        if done.events:
            self.steps.append([done.first, done.at, records.encode(done.events)])
            self.orders = self.orders or bool(done.effects)
            if done.state.traceparent is not None and isinstance(done.cause, RecordResult) and done.cause.traceparent:
                self.answers[done.first] = done.cause.traceparent
        if item is not None and item.queue:
            if done.verdict.refused:
                self.refused.append((item.queue, item.broker, done.verdict, b64encode(item.body).decode()))
            else:
                self.counts[item.queue, item.broker, done.verdict] += 1

    def __bool__(self) -> bool:
        return bool(self.steps or self.counts or self.refused)

    def pack(self) -> RawValue:
        answers = {"answers": [*self.answers.items()]} if self.answers else {}  # older processes do not know of them
        return wrap(
            {
                "run": self.run,
                "at": self.at,
                "version": self.version,
                "steps": self.steps,
                "counts": [[*key, count] for key, count in self.counts.items()],
                "refused": self.refused,
                "correlation_id": self.correlation_id,
                "key": self.key,
                "orders": self.orders,
                **answers,
            }
        )

    @classmethod
    def unpack(cls, raw: RawValue) -> StepReport:
        value = unwrap(raw)
        value["at"] = datetime.fromisoformat(value["at"])
        value["steps"] = [
            (first, datetime.fromisoformat(at), records.revive(events)) for first, at, events in value["steps"]
        ]
        value["counts"] = Counter(
            {(queue, broker, Verdict(verdict)): count for queue, broker, verdict, count in value["counts"]}
        )
        value["key"] = None if value["key"] is None else tuple(value["key"])
        value["answers"] = dict(value.get("answers", ()))
        return cls(**value)


@dataclass(slots=True)
class ConfirmedOrders:
    """What a broker confirmed of the messages that were owed, as the journal has it."""

    tickets: list[tuple[int, int]]
    at: datetime

    @staticmethod
    def pack(found: ConfirmedOrders | None) -> RawValue:
        return wrap(None if found is None else [found.tickets, found.at])

    @staticmethod
    def unpack(raw: RawValue) -> ConfirmedOrders | None:
        value = unwrap(raw)
        if value is None:
            return None
        tickets, at = value
        return ConfirmedOrders([(position, attempt) for position, attempt in tickets], datetime.fromisoformat(at))
