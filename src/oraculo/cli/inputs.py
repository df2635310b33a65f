"""What commands are given: files, ages, workers, and the server to talk to."""

from __future__ import annotations

import importlib
import os
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

from oraculo import settings
from oraculo.cli.exits import CommandError, Exit
from oraculo.errors import OraculoError, WireError
from oraculo.wire import strict_json

if TYPE_CHECKING:
    from oraculo.client import Client
    from oraculo.worker import Worker

_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h|d|w)", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}


def client(url: str | None) -> Client:
    from oraculo.client import Client

    known = settings.load()
    return Client(url or known.url, known.api_key)


def request(file: str) -> dict[str, Any]:
    """The JSON object in a file, or on standard input."""
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror or error}", Exit.USAGE) from None
    try:
        value = strict_json.loads(raw.removeprefix(b"\xef\xbb\xbf"))
    except WireError as error:
        raise CommandError(f"{file}: {error.detail}", Exit.USAGE) from None
    if not isinstance(value, dict):
        raise CommandError(f"{file}: a JSON object is needed", Exit.USAGE)
    return value


def age(text: str) -> timedelta:
    found = _AGE.fullmatch(text.strip().lower())
    if found is None:
        raise CommandError(f"{text!r} is not an age: 30d, 12h, 90m, 45s and 2w are", Exit.USAGE)
    try:
        return timedelta(seconds=float(found[1]) * _SECONDS[found[2]])
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
    if _AGE.fullmatch(text.strip().lower()):
        return ago(text)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(
            f"{text!r} is neither an instant (2025-10-14T12:00:00Z) nor an age (7d)", Exit.USAGE
        ) from None
    return at if at.tzinfo else at.astimezone()


def worker(target: str) -> Worker:
    """`module:name` → the Worker; modules of the current folder are found too."""
    from oraculo.worker import Worker

    name, _, attribute = target.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(name)
    except OraculoError:
        raise
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise CommandError(f"{target}: {error}", Exit.USAGE) from error
        raise CommandError(f"{target}: there is no module {error.name!r}", Exit.USAGE) from None
    except (Exception, SystemExit) as error:
        raise CommandError(f"{target}: importing it failed: {type(error).__name__}: {error}", Exit.USAGE) from error
    found = getattr(module, attribute or "worker", None)
    if not isinstance(found, Worker):
        have = [key for key, value in vars(module).items() if isinstance(value, Worker)]
        hint = f"; it has {', '.join(have)}" if have else ""
        raise CommandError(f"{target}: {attribute or 'worker'!r} is not a Worker of {name}{hint}", Exit.USAGE)
    if not found.queues:
        raise CommandError(f"{target}: no function is registered with it", Exit.USAGE)
    return found
