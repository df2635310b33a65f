"""Logs: one JSON object a line with ECS field names, or a readable line on a terminal.

Every line about an orchestration has `correlation_id`, every line about a ticket `ticket_id` too. Life and death of
orchestrations, failed attempts and refused messages are INFO or above; every other event of the journal is DEBUG.
Libraries that log with Python's own `logging` come out in the same form. Secrets are hidden (oraculo.redaction).
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, BinaryIO

import orjson
import structlog

from oraculo import __version__
from oraculo.redaction import clean, redact

ECS = "8.11"
_LIBRARIES = logging.WARNING  # what is below is of interest to their authors
_FIELDS = {"error": "error.message", "logger": "log.logger"}
_ORDER = ("level", "event", "exception", "@timestamp")

lines: Counter[str] = Counter()  # level → lines written
level = logging.INFO
stream: BinaryIO | None = None  # where JSON goes; None: not configured, or text
_service: dict[str, Any] = {}


def configure(name: str = "INFO", format: str = "auto", service: str = "oraculo") -> None:
    """Once, at the start of a process. Lines go to stderr, so that stdout stays for results."""
    global level, stream
    level = getattr(logging, name)
    as_text = format == "text" or (format == "auto" and sys.stderr.isatty())
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.format_exc_info,
        _counted,
        _redacted,
    ]
    if as_text:
        stream = None
        stamp = structlog.processors.TimeStamper("%H:%M:%S")
        console = structlog.dev.ConsoleRenderer(pad_event_to=28, exception_formatter=structlog.dev.plain_traceback)
        renderer: list[Any] = [stamp, console]
        factory: Any = structlog.PrintLoggerFactory(sys.stderr)
    else:
        stream = sys.stderr.buffer
        renderer = [structlog.processors.TimeStamper("iso", key="@timestamp"), _ecs]
        factory = structlog.BytesLoggerFactory(stream)
    _service.update(
        {
            "ecs.version": ECS,
            "service.name": service,
            "service.version": __version__,
            "host.name": socket.gethostname(),
            "process.pid": os.getpid(),
        }
    )
    structlog.configure(
        processors=[*shared, *renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=factory,
        cache_logger_on_first_use=True,
    )
    root = logging.getLogger()
    root.handlers = [_Bridge()]
    root.setLevel(max(level, _LIBRARIES))
    sys.excepthook = _uncaught


def write(about: list[dict[str, Any]]) -> None:
    """Many JSON lines in one write: `log.level`, `message` and what they are about; nothing is looked at any more."""
    assert stream is not None
    ending = b"," + orjson.dumps(_service)[1:] + b"\n"  # the same for all
    stream.write(b"".join([orjson.dumps(line, option=orjson.OPT_UTC_Z)[:-1] + ending for line in about]))
    stream.flush()


def say(text: str) -> None:
    """A line that is written whatever the level."""
    stamp = datetime.fromtimestamp(time.time(), UTC)
    write([{"@timestamp": stamp, "log.level": "info", "message": redact(text), "log.logger": "oraculo.cli"}])


def _counted(_logger: Any, _name: str, line: dict[str, Any]) -> dict[str, Any]:
    lines[line["level"]] += 1
    return line


def _redacted(_logger: Any, _name: str, line: dict[str, Any]) -> dict[str, Any]:
    return {name: clean(value, name) for name, value in line.items()}


def _ecs(_logger: Any, _name: str, line: dict[str, Any]) -> bytes:
    """ECS names; what is ours stays at the top, where people look for it."""
    shaped = {"@timestamp": line["@timestamp"], "log.level": line["level"], "message": str(line["event"]), **_service}
    if "exception" in line:
        shaped["error.stack_trace"] = line["exception"]
    for name, value in line.items():
        if name not in _ORDER and value is not None:
            shaped[_FIELDS.get(name, name)] = value
    return orjson.dumps(shaped, default=str, option=orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS)


class _Bridge(logging.Handler):
    """What libraries say with Python's own logging."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            log = structlog.get_logger(record.name).bind(logger=record.name)
            log.log(record.levelno, record.getMessage(), exc_info=record.exc_info)
        except Exception:
            self.handleError(record)


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    structlog.get_logger("oraculo").critical("uncaught", exc_info=(kind, error, trace))
