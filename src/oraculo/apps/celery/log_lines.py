"""Celery's own lines in the form of Oráculo's logs, where these are JSON: no banner, no line that is not JSON."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import orjson
from celery import Celery, signals
from celery.apps import beat as celery_beat
from celery.apps import worker as celery_worker

from oraculo import logs
from oraculo.redaction import redact
from oraculo.settings.settings import Settings

CELERY_LOGGER = "celery"
TEXT = "[%(asctime)s: %(levelname)s/%(processName)s] %(message)s"


def follow(app: Celery, load: Callable[[], Settings]) -> None:
    """Have everything that worker and beat of this application say logged by Oráculo; `load` gives the settings."""
    app.Beat = app.subclass_with_self(_quiet_beat(load))

    @signals.setup_logging.connect(weak=False)
    def _set_up(loglevel: int | str | None = None, **_: Any) -> None:
        """Connected, Celery leaves logging alone. `loglevel` is what its command line says of its own lines."""
        configure(load())
        logger = logging.getLogger(CELERY_LOGGER)
        logger.handlers, logger.propagate = [_Lines()], False
        logger.setLevel(loglevel or logs.level)

    @signals.celeryd_init.connect(weak=False)
    def _be_quiet(instance: Any = None, **_: Any) -> None:
        configure(load())
        if logs.stream is not None and instance is not None:
            instance.quiet = True


def configure(chosen: Settings) -> None:
    """Set up the logs of this process."""
    logs.configure(chosen.logs.level, chosen.logs.format)
    if logs.stream is not None:
        logging.captureWarnings(True)  # as that it runs as root
        celery_worker.safe_say = _say  # what it says from handlers of signals, past all logging


def _quiet_beat(load: Callable[[], Settings]) -> type:
    class QuietBeat(celery_beat.Beat):  # type: ignore[misc]
        """Beat that prints nothing beside its log."""

        def run(self) -> None:
            configure(load())
            self.quiet: bool = self.quiet or logs.stream is not None
            super().run()

    return QuietBeat


class _Lines(logging.Handler):
    """Celery's lines at Celery's level: as JSON, or as Celery writes them where logs are text."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter(TEXT))
        self._text = logging.StreamHandler()
        self._text.setFormatter(self.formatter)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if logs.stream is None:
                self._text.emit(record)
                return
            logs.lines[record.levelname.lower()] += 1
            trace = logging.Formatter().formatException(record.exc_info) if record.exc_info else None
            os.write(logs.stream.fileno(), _line(record.levelname.lower(), record.getMessage(), record.name, trace))
        except Exception:
            self.handleError(record)


def _say(text: str, _file: object = None) -> None:
    """One JSON line in one write: a handler of a signal must not touch a buffer."""
    assert logs.stream is not None
    os.write(logs.stream.fileno(), _line("info", text.strip(), CELERY_LOGGER))


def _line(level: str, message: str, logger: str, trace: str | None = None) -> bytes:
    stamp = datetime.fromtimestamp(time.time(), UTC)
    line = {"@timestamp": stamp, "log.level": level, "message": redact(message), "log.logger": logger}
    if trace is not None:
        line["error.stack_trace"] = redact(trace)
    return orjson.dumps({**line, **logs.service()}, option=orjson.OPT_UTC_Z) + b"\n"
