"""Logs: one JSON object a line with ECS_VERSION field names, or a readable line on a terminal.

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

ECS_VERSION = "8.11"
_LIBRARY_LEVEL = logging.WARNING  # what is below is of interest to their authors
_ECS_FIELDS = {"error": "error.message", "logger": "log.logger"}
_LEADING_FIELDS = ("level", "event", "exception", "@timestamp")

lines: Counter[str] = Counter()  # level → lines written
level = logging.INFO
stream: BinaryIO | None = None  # where JSON goes; None: not configured, or text
_service: dict[str, Any] = {}


def configure(name: str = "INFO", format: str = "auto", service: str = "oraculo", version: str = "") -> None:
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
        renderer: list[Any] = [stamp, _instants_as_text, console]
        factory: Any = structlog.PrintLoggerFactory(sys.stderr)
    else:
        stream = sys.stderr.buffer
        renderer = [structlog.processors.TimeStamper("iso", key="@timestamp"), _ecs]
        factory = structlog.BytesLoggerFactory(stream)
    _service.update(
        {
            "ecs.version": ECS_VERSION,
            "service.name": service,
            "service.version": version or __version__,
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
    root.setLevel(max(level, _LIBRARY_LEVEL))
    sys.excepthook = _uncaught


def leave_to_program() -> None:
    """Hand the lines of a program that configured nothing to Python's own `logging`, below the logger `oraculo`: there
    the program decides. Without a word of it warnings and errors go to standard error; nothing to standard output."""
    global level
    if structlog.is_configured():
        return
    level = logging.getLogger("oraculo").getEffectiveLevel()
    processors: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.format_exc_info,
        _counted,
        _redacted,
        _instants_as_text,
        _as_sentence,
    ]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: _ProgramLogger(),
        cache_logger_on_first_use=False,
    )


def service() -> dict[str, Any]:
    """What every line says of this process."""
    return dict(_service)


def write(about: list[dict[str, Any]]) -> None:
    """Many JSON lines in one write: `log.level`, `message` and what they are about; nothing is looked at any more."""
    assert stream is not None
    ending = b"," + orjson.dumps(_service)[1:] + b"\n"  # the same for all
    stream.write(b"".join([orjson.dumps(line, option=orjson.OPT_UTC_Z)[:-1] + ending for line in about]))
    stream.flush()


def say(text: str, level: str = "info") -> None:
    """A line that is written whatever the level that was asked for."""
    stamp = datetime.fromtimestamp(time.time(), UTC)
    write([{"@timestamp": stamp, "log.level": level, "message": redact(text), "log.logger": "oraculo.cli"}])


def _counted(_logger: Any, _name: str, line: dict[str, Any]) -> dict[str, Any]:
    lines[line["level"]] += 1
    return line


def _redacted(_logger: Any, _name: str, line: dict[str, Any]) -> dict[str, Any]:
    return {name: clean(value, name) for name, value in line.items()}


def _instants_as_text(_logger: Any, _name: str, line: dict[str, Any]) -> dict[str, Any]:
    """Instants as people read them, in the zone of this machine."""
    return {name: _clock_text(value) if isinstance(value, datetime) else value for name, value in line.items()}


def _clock_text(at: datetime) -> str:
    return at.astimezone().isoformat(timespec="seconds")


def _as_sentence(_logger: Any, _name: str, line: dict[str, Any]) -> str:
    """The event and what it is about, in one line; a stack below it."""
    stack = line.pop("exception", None)
    line.pop("level", None)
    about = " ".join(f"{name}={value}" for name, value in line.items() if name != "event")
    said = f"{line['event']} {about}".rstrip() + (f"\n{stack}" if stack else "")
    return said.encode("utf-8", "backslashreplace").decode()  # half a character would stop the stream it goes to


def _ecs(_logger: Any, _name: str, line: dict[str, Any]) -> bytes:
    """ECS_VERSION names; what is ours stays at the top, where people look for it."""
    shaped = {"@timestamp": line["@timestamp"], "log.level": line["level"], "message": str(line["event"]), **_service}
    if "exception" in line:
        shaped["error.stack_trace"] = line["exception"]
    for name, value in line.items():
        if name not in _LEADING_FIELDS and value is not None:
            shaped[_ECS_FIELDS.get(name, name)] = value
    return orjson.dumps(shaped, default=str, option=orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS)


class _ProgramLogger:
    """Says lines with Python's own logging. A stack is part of its line already, so that it is without secrets too."""

    def __init__(self) -> None:
        target = logging.getLogger("oraculo")
        self.debug, self.info, self.warning = target.debug, target.info, target.warning
        self.error = self.exception = target.error
        self.critical = target.critical


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
