"""The journal as log lines: what an operator wants to know at INFO, every event at DEBUG.

Lines of one look go out in one write. A line below the log level is never made.
"""

from __future__ import annotations

import logging
from dataclasses import fields
from datetime import datetime
from typing import Any

import structlog

from oraculo import logs
from oraculo.core import events as ev
from oraculo.core.consolidation import milliseconds
from oraculo.core.reasons import Reason
from oraculo.core.sentences import errors_said, say
from oraculo.core.state import Orchestration
from oraculo.core.step import Step
from oraculo.core.ticket_id import ticket_id
from oraculo.ports.journal import Batch
from oraculo.ports.observer import EventsByType
from oraculo.redaction import redact
from oraculo.wire import trace_context
from oraculo.wire.event_views import event_name

_ERROR_MAX_CHARS = 300  # characters of an error
_MAX_POSITIONS = 20  # tickets named in one line
_MAX_KNOWN_RUNS = 20_000  # orchestrations whose names are kept at hand
_REASONED = (ev.TicketsClosed, ev.MapEnded, ev.LoopEnded, ev.WaitEnded)  # events whose reason is said
_HIDDEN_FIELDS = frozenset(
    (
        "dados",
        "plan",
        "digest",
        "fingerprint",
        "run",
        "erros",
        "correlation_id",
        "traceparent",
        "added",
        "rows",
        "template",
        "idle",
    )
)
_EVENT_NAMES = {cls: event_name(cls) for cls in ev.Event.__args__}
_IMPORTANT = {  # in the order in which they happen to an orchestration
    ev.OrchestrationStarted: (logging.INFO, "orchestration started"),
    ev.ResultsReused: (logging.INFO, "results of an earlier run reused"),
    ev.PlanGrown: (logging.INFO, "plan has grown"),
    ev.AttemptFailed: (logging.WARNING, "attempt failed, will retry"),
    ev.TicketFailed: (logging.WARNING, "ticket failed"),
    ev.TicketRequeued: (logging.INFO, "ticket requeued"),
    ev.TicketWithdrawn: (logging.WARNING, "attempt withdrawn from its worker"),
    ev.LateAnswerKept: (logging.WARNING, "late answer kept"),
    ev.ConflictingAnswerKept: (logging.WARNING, "conflicting answer kept"),
    ev.CancelRequested: (logging.INFO, "cancel requested"),
    ev.OrchestrationPaused: (logging.INFO, "orchestration paused"),
    ev.OrchestrationResumed: (logging.INFO, "orchestration resumed"),
    ev.PriorityChanged: (logging.INFO, "priority changed"),
    ev.OrchestrationClosed: (logging.INFO, "orchestration closed"),
    ev.NoticeGivenUp: (logging.WARNING, "notice given up"),
}
_LEVEL_NAMES = {logging.DEBUG: "debug", logging.INFO: "info", logging.WARNING: "warning"}


def _kind(kind: type) -> dict[str, str]:
    level, message = _IMPORTANT.get(kind) or (logging.DEBUG, _EVENT_NAMES[kind].replace("_", " "))
    return {
        "log.level": _LEVEL_NAMES[level],
        "message": message,
        "log.logger": "oraculo.events",
        "event.action": _EVENT_NAMES[kind],
    }


_FIXED_FIELDS = {kind: _kind(kind) for kind in _EVENT_NAMES}  # what every line about an event of this class says


class EventLog:
    """Reads the journal as it is written."""

    def __init__(self) -> None:
        self._log = structlog.get_logger("oraculo.events")
        self._known: dict[int, dict[str, str]] = {}  # run → what every line about it says

    def saw(self, batch: Batch, told: EventsByType) -> None:
        level = logs.level
        made: list[dict[str, Any]] = []
        if level <= logging.DEBUG:
            made = [self._line(step, event) for step in batch.steps for event in step.events]
        else:
            for kind, (importance, _) in _IMPORTANT.items():
                if importance >= level and kind in told:
                    made += [self._line(step, event) for step, event in told[kind]]
        if level <= logging.WARNING:
            made += [_dead(batch.at, dead) for dead in batch.dead]
        if made:
            self._emit(made)

    def _emit(self, made: list[dict[str, Any]]) -> None:
        if logs.stream is not None:
            for line in made:
                logs.lines[line["log.level"]] += 1
            logs.write(made)
            return
        for line in made:
            say = getattr(self._log, line.pop("log.level"))
            for name in ("@timestamp", "log.logger", "event.action"):
                del line[name]
            say(line.pop("message"), **line)

    def _line(self, step: Step, event: ev.Event) -> dict[str, Any]:
        state, kind = step.state, type(event)
        line: dict[str, Any] = {"@timestamp": step.at, **_FIXED_FIELDS[kind], **self._about(state)}
        if kind is ev.OrchestrationStarted:
            line["tickets"] = len(state.tickets)
        elif isinstance(event, ev.OrchestrationClosed):
            line["status"] = event.status.value
            line["duration_ms"] = milliseconds(state.started_at, step.at)
            self._known.pop(state.run, None)
        else:
            line |= _details(state, event)
        return line

    def _about(self, state: Orchestration) -> dict[str, str]:
        known = self._known.get(state.run)
        if known is None:
            labels = state.plan.profile.labels(state.run)
            known = {"correlation_id": redact(state.correlation_id), "plan_id": redact(labels.plan_id)}
            if labels.intent_id is not None:
                known["intent_id"] = redact(labels.intent_id)
            if state.traceparent is not None:
                known["trace.id"] = trace_context.trace_id(state.traceparent)
            self._known[state.run] = known
            if len(self._known) > _MAX_KNOWN_RUNS:
                del self._known[next(iter(self._known))]
        return known


def _details(state: Orchestration, event: ev.Event) -> dict[str, Any]:
    about: dict[str, Any] = {}
    for field in fields(event):
        value = getattr(event, field.name)
        match field.name:
            case "ticket" | "owner":
                about["ticket_id"] = ticket_id(state.run, value)
                about["queue"] = state.plan.tasks[value].queue or None
            case "tickets":
                positions = [one[0] if isinstance(one, tuple) else one for one in value[:_MAX_POSITIONS]]
                about["ticket_ids"] = [ticket_id(state.run, position) for position in positions]
                about["tickets"] = len(value)
            case "results":
                about["results"] = len(value)
            case "undone":
                about["tickets"] = len(value)
            case "attempt":
                about["tentativa"] = value
            case "erros":
                about["error.message"] = _first(errors_said(event)) or None
            case "reason" if isinstance(value, Reason):
                about["reason"] = redact(say(value))[:_ERROR_MAX_CHARS] if isinstance(event, _REASONED) else None
            case name if name not in _HIDDEN_FIELDS and value is not None:
                about[name] = redact(value)[:_ERROR_MAX_CHARS] if isinstance(value, str) else _plain(value)
    return {name: value for name, value in about.items() if value is not None}


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | datetime) else str(value)


def _dead(at: datetime, dead: Any) -> dict[str, Any]:
    line = {
        "@timestamp": at,
        "log.level": "warning",
        "message": "message quarantined",
        "log.logger": "oraculo.events",
        "event.action": "message_quarantined",
        "queue": redact(dead.queue),
        "reason": redact(dead.reason),
        "detail": redact(dead.detail)[:_ERROR_MAX_CHARS],
    }
    if dead.correlation_id is not None:
        line["correlation_id"] = redact(dead.correlation_id)
    return line


def _first(erros: list[dict[str, object]]) -> str:
    return redact(str(erros[0].get("mensagem") or erros[0].get("codigo")))[:_ERROR_MAX_CHARS] if erros else ""
