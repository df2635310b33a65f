"""What commands are given: files, ages, workers, and the server to talk to."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from time import time
from typing import TYPE_CHECKING, Any

from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.output import note
from oraculo.cli.texts import language
from oraculo.settings import settings

if TYPE_CHECKING:
    from oraculo.client.client import Client
    from oraculo.client.tls import TlsFiles
    from oraculo.settings.settings import Settings
    from oraculo.worker.worker import Worker

_AGE_PATTERN = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h|d|w)", re.ASCII)
_UNIT_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}


def client(url: str | None) -> Client:
    from oraculo.client.client import Client

    known = settings.load()
    show_warnings(known)
    return Client(url or known.url, known.key_for(url), language=language(), words="pt", tls=tls_of(known))


def tls_of(known: Settings) -> TlsFiles:
    """The files for a server over TLS."""
    from oraculo.client.tls import TlsFiles

    return TlsFiles(known.tls.url_ca, known.tls.url_cert, known.tls.url_key)


def show_warnings(known: Settings) -> None:
    """Name the variables that look like settings and are none, on standard error."""
    for line in known.warnings():
        note(f"oraculo: {line}")


def request(file: str) -> dict[str, Any]:
    """The request in a file (JSON, YAML or Python), or on standard input. A plan of any shape is checked here, so that
    its faults have lines and columns."""
    from oraculo.cli.plan_files import plan_request

    return plan_request(file)


def age(text: str) -> timedelta:
    found = _AGE_PATTERN.fullmatch(text.strip().lower())
    if found is None:
        raise CommandError(f"{text!r} is not an age: 30d, 12h, 90m, 45s and 2w are", Exit.USAGE)
    try:
        return timedelta(seconds=float(found[1]) * _UNIT_SECONDS[found[2]])
    except OverflowError:
        raise CommandError(f"{text!r} is too long", Exit.USAGE) from None


def now() -> datetime:
    return datetime.fromtimestamp(time(), UTC)


def ago(text: str) -> datetime:
    try:
        return now() - age(text)
    except OverflowError:
        raise CommandError(f"{text!r} is too long", Exit.USAGE) from None


def since(text: str | None) -> datetime | None:
    """An instant, or an age before now."""
    if text is None:
        return None
    if _AGE_PATTERN.fullmatch(text.strip().lower()):
        return ago(text)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(
            f"{text!r} is neither an instant (2025-10-14T12:00:00Z) nor an age (7d)", Exit.USAGE
        ) from None
    return at if at.tzinfo else at.astimezone()


def statuses(given: list[str] | None) -> list[str]:
    """The statuses of orchestrations that were given in either vocabulary; CommandError for any other word."""
    from oraculo.cli import completing
    from oraculo.plans.words import value_to_portuguese

    known = completing.statuses("")
    found = [value_to_portuguese("status", part.strip()) for text in given or () for part in text.split(",")]
    for word in found:
        if word not in known:
            raise CommandError(f"--status {word!r}: allowed are {', '.join(known)}", Exit.USAGE)
    return found


def worker(target: str) -> Worker:
    """The Worker that `module:name` names."""
    from oraculo.worker.target import worker_of

    return worker_of(target)
