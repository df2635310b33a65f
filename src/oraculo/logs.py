"""Logs: one JSON object a line with ECS field names, or a readable line on a terminal.

Every line about an orchestration has `correlation_id`, every line about a ticket `ticket_id` too. Life and death of
orchestrations, failed attempts and refused messages are INFO or above; everything else is DEBUG.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import Any

import orjson
import structlog

from oraculo.core import events as ev
from oraculo.core.consolidation import milliseconds
from oraculo.core.step import Step
from oraculo.core.ticket_id import ticket_id
from oraculo.ports.store import Batch

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
_level = logging.INFO


def configure(level: str = "INFO", format: str = "auto") -> None:
    """Once, at the start of a process. Lines go to stderr, so that stdout stays for results."""
    global _level
    _level = getattr(logging, level)
    as_text = format == "text" or (format == "auto" and sys.stderr.isatty())
    renderer: list[Any]
    if as_text:
        renderer = [structlog.processors.TimeStamper("%H:%M:%S"), structlog.dev.ConsoleRenderer(pad_event_to=28)]
        factory: Any = structlog.PrintLoggerFactory(sys.stderr)
    else:
        renderer = [
            structlog.processors.TimeStamper("iso", key="@timestamp"),
            structlog.processors.format_exc_info,
            _ecs,
        ]
        factory = structlog.BytesLoggerFactory(sys.stderr.buffer)
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, structlog.processors.add_log_level, *renderer],
        wrapper_class=structlog.make_filtering_bound_logger(_level),
        logger_factory=factory,
        cache_logger_on_first_use=True,
    )


def _ecs(_logger: Any, _name: str, line: dict[str, Any]) -> bytes:
    """ECS names; what is ours stays at the top, where people look for it."""
    shaped = {
        "@timestamp": line.pop("@timestamp"),
        "log.level": line.pop("level"),
        "message": line.pop("event"),
        "ecs.version": "8.11",
        "service.name": "oraculo",
    }
    if "exception" in line:
        shaped["error.stack_trace"] = line.pop("exception")
    return orjson.dumps({**shaped, **line}, default=str)


class EventLog:
    """Reads the journal as it is written and logs what an operator wants to know."""

    def __init__(self) -> None:
        self._log = structlog.get_logger("oraculo.events")

    def saw(self, batch: Batch, steps: Sequence[Step]) -> None:
        if _level <= logging.INFO:
            for step in steps:
                for event in step.events:
                    self._event(step, event)
        if _level <= logging.WARNING:
            for dead in batch.dead:
                self._log.warning(
                    "message quarantined",
                    correlation_id=dead.correlation_id,
                    queue=dead.queue,
                    reason=dead.reason,
                    detail=dead.detail,
                )

    def _event(self, step: Step, event: ev.Event) -> None:
        state = step.state
        who = state.correlation_id
        match event:
            case ev.OrchestrationStarted():
                self._log.info("orchestration started", correlation_id=who, tickets=len(state.tickets))
            case ev.OrchestrationClosed(status):
                took = milliseconds(state.started_at, state.closed_at)
                self._log.info("orchestration closed", correlation_id=who, status=status.value, duration_ms=took)
            case ev.AttemptFailed(position, attempt, cause, erros, retry_at):
                self._log.warning(
                    "attempt failed, will retry",
                    correlation_id=who,
                    ticket_id=ticket_id(state.run, position),
                    queue=state.plan.tasks[position].queue,
                    tentativa=attempt,
                    cause=cause.value,
                    error=_first(erros),
                    retry_at=retry_at.isoformat(),
                )
            case ev.TicketFailed(position, attempt, status, erros):
                self._log.warning(
                    "ticket failed",
                    correlation_id=who,
                    ticket_id=ticket_id(state.run, position),
                    queue=state.plan.tasks[position].queue,
                    tentativa=attempt,
                    status=status.value,
                    error=_first(erros),
                )
            case ev.LateAnswerKept(position, attempt):
                self._log.warning(
                    "late answer kept",
                    correlation_id=who,
                    ticket_id=ticket_id(state.run, position),
                    tentativa=attempt,
                )
            case ev.CancelRequested(reason):
                self._log.info("cancel requested", correlation_id=who, reason=reason)
            case _:
                pass


def _first(erros: list[dict[str, object]]) -> str:
    return str(erros[0].get("mensagem") or erros[0].get("codigo"))[:300] if erros else ""
