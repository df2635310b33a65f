"""Exit statuses, and how an error becomes one line and one of them.

0  done
1  failed: refused, or the orchestration ended erro, timeout or cancelada
2  used wrongly: arguments, settings, a file that cannot be read
3  not found
4  not allowed: the key is missing or wrong
5  unavailable: no server, no database, too busy
6  it took longer than --wait
"""

from __future__ import annotations

from enum import IntEnum

from oraculo.cli.texts import t
from oraculo.errors import (
    ApiError,
    BrokerError,
    BusyError,
    MissingExtraError,
    OraculoError,
    ServerUnreachableError,
    SettingsError,
    StoreError,
    UnavailableError,
    UnknownIdError,
    WorkerTargetError,
)


class Exit(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    AUTH = 4
    UNAVAILABLE = 5
    TIMEOUT = 6


class CommandError(OraculoError):
    """A command cannot go on: one line, one exit status."""

    def __init__(self, text: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(text)
        self.code = code


_OF_ANSWER = {401: Exit.AUTH, 403: Exit.AUTH, 404: Exit.NOT_FOUND, 410: Exit.NOT_FOUND, 408: Exit.TIMEOUT}
_OF_ANSWER |= dict.fromkeys((429, 502, 503, 504), Exit.UNAVAILABLE)


def code_of(error: OraculoError) -> Exit:
    match error:
        case CommandError():
            return error.code
        case ApiError():
            return _OF_ANSWER.get(error.status, Exit.FAILED)
        case UnknownIdError():
            return Exit.NOT_FOUND
        case SettingsError() | MissingExtraError() | WorkerTargetError():
            return Exit.USAGE
        case UnavailableError() | StoreError() | BrokerError() | BusyError():
            return Exit.UNAVAILABLE
        case _:
            return Exit.FAILED


def line_of(error: OraculoError) -> str:
    if isinstance(error, ServerUnreachableError):
        return t("unreachable", error=error)
    if isinstance(error, ApiError):
        text = error.detail or error.title
        errors = error.problem.get("errors")
        if isinstance(errors, list) and errors and not error.detail:
            text += ": " + "; ".join(f"{one.get('campo')}: {one.get('mensagem')}" for one in errors[:5])
        if error.status == 401:
            return t("auth-wrong") if _has_key() else t("auth", error=text)
        return text
    return str(error)


def _has_key() -> bool:
    """True if a key was sent with what the server refused."""
    from oraculo.settings import settings

    try:
        return bool(settings.load().api_key)
    except (OraculoError, OSError):
        return False


_BAD = ("erro", "timeout", "cancelada")


def code_of_status(status: str, strict: bool = False) -> Exit:
    """`parcial` went through; with `strict` it counts as failed."""
    return Exit.FAILED if status in _BAD or (strict and status == "parcial") else Exit.OK
