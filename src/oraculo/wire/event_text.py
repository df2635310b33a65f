"""The JSON text of events that are written most of all, put together from parts.

The encoder writes any event; it asks back for every value that JSON has no type for, which costs more than the value.
What is written here is the same to the byte, with what tasks of a plan have in common written once for all of them, and
without a length of work that is not known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from datetime import timedelta
from functools import lru_cache
from typing import Any

from orjson import Fragment

from oraculo.core import events as ev
from oraculo.core.plan import Backoff, Plan, Task
from oraculo.core.vocabulary import Kind
from oraculo.wire import strict_json

_MARK = b'"\\u0001"'  # stands for the parameters; behind them there are no texts
_SHAPES_MAX = 4096
# A length of work that is not known is left out: the row has no byte of it, and earlier releases can read it.
_WITHOUT_WORK = {
    cls: tuple(field.name for field in fields(cls) if field.name != "work_ms")
    for cls in (ev.AttemptFailed, ev.TicketFailed)
}


def _concluded(event: ev.TicketConcluded) -> bytes:
    erros, actor = event.erros, event.actor
    return b'["TicketConcluded",{"ticket":%d,"attempt":%d,"dados":%b,"erros":%b,"digest":%d,"actor":%b%b}]' % (
        event.ticket,
        event.attempt,
        event.dados,
        strict_json.dumps(erros) if erros else b"[]",
        event.digest,
        b"null" if actor is None else strict_json.dumps(actor),
        b"" if event.work_ms is None else b',"work_ms":%d' % event.work_ms,
    )


def _failed(event: ev.AttemptFailed | ev.TicketFailed) -> bytes:
    kind = type(event)
    if event.work_ms is not None:
        return strict_json.dumps((kind.__name__, event))
    return strict_json.dumps((kind.__name__, {name: getattr(event, name) for name in _WITHOUT_WORK[kind]}))


def _passed(event: ev.FanInClosed) -> bytes:
    return b'["FanInClosed",{"gate":%d,"passed":%b}]' % (event.gate, b"true" if event.passed else b"false")


def _closed(event: ev.OrchestrationClosed) -> bytes:
    return b'["OrchestrationClosed",{"status":"%b"}]' % event.status.encode()


def _started(event: ev.OrchestrationStarted) -> bytes:
    value = {
        "run": event.run,
        "correlation_id": event.correlation_id,
        "plan": _plan(event.plan),
        "deadline": event.deadline,
        "fingerprint": event.fingerprint,
        "traceparent": event.traceparent,
        "actor": event.actor,
        "origin": event.origin,
    }
    return b'["OrchestrationStarted",%b]' % strict_json.dumps(value)


def _plan(plan: Plan) -> dict[str, Any]:
    return {
        "tasks": Fragment(b"[%b]" % b",".join([_task(task) for task in plan.tasks])),
        "gates": plan.gates,
        "timeout": None if plan.timeout is None else plan.timeout.total_seconds(),
        "backoff": _backoff(plan.backoff),
        "notify": plan.notify,
        "tipo": plan.tipo,
        "rules": plan.rules,
        "approval": plan.approval,
        "undo": plan.undo,
        "ending": plan.ending,
        "profile": plan.profile,
        "labels": plan.labels,
        "parent": plan.parent,
        "policies": plan.policies,
        "unique": plan.unique,
        "undo_attempts": plan.undo_attempts,
        "undo_strict": plan.undo_strict,
    }


def _task(task: Task) -> bytes:
    head, tail = _shape(
        task.kind._value_, task.name, task.queue, task.timeout, task.max_attempts, task.after, task.feeds
    )
    return head + task.parametros + tail


@lru_cache(_SHAPES_MAX)
def _shape(
    kind: str,
    name: str,
    queue: str,
    timeout: timedelta,
    max_attempts: int,
    after: int | None,
    feeds: tuple[int, ...],
) -> tuple[bytes, bytes]:
    """What stands before and behind the parameters of a task."""
    text = strict_json.dumps(Task(Kind(kind), name, queue, _MARK, timeout, max_attempts, after, feeds))
    head, _, tail = text.rpartition(_MARK)
    return head, tail


@lru_cache(64)
def _backoff(backoff: Backoff) -> Fragment:
    return Fragment(strict_json.dumps(backoff))


_WRITERS: dict[type, Callable[[Any], bytes]] = {
    ev.TicketConcluded: _concluded,
    ev.AttemptFailed: _failed,
    ev.TicketFailed: _failed,
    ev.FanInClosed: _passed,
    ev.OrchestrationClosed: _closed,
    ev.OrchestrationStarted: _started,
}


def event_text(event: ev.Event) -> bytes:
    """The name and the fields of an event, as the journal has them."""
    kind = type(event)
    write = _WRITERS.get(kind)
    return strict_json.dumps((kind.__name__, event)) if write is None else write(event)
