"""Every exception that Oráculo raises.

    OraculoError
    ├── SettingsError             a variable has a value that is not allowed
    ├── MissingExtraError         a technology was asked for whose client is not installed
    ├── WireError                 bytes that are not an acceptable message or request
    ├── PlanError                 a well-formed request that makes no valid plan
    ├── DuplicateCorrelationError same correlation_id or idempotency key, another body
    ├── UnknownIdError            no such orchestration, ticket, lease, dead letter or task type
    ├── BusyError                 too much work is open; come back later
    ├── StoreError
    │   ├── StoreUnavailableError the database cannot be read or written right now
    │   │   ├── FencedError       another process has taken over what this one was doing
    │   │   └── EngineUnavailableError the server that runs the workflows cannot be reached right now
    │   └── StoreTooNewError      the database was written by a newer Oráculo
    ├── BrokerError
    │   ├── BrokerUnavailableError the broker did not confirm
    │   └── RegistryUnavailableError the schema registry cannot be asked right now
    ├── SinkUnavailableError      what a projection writes to cannot be reached right now
    ├── WorkError                 raised by worker functions: the work failed, and how
    ├── ApiError                  the server answered a client with a problem document
    └── ServerUnreachableError    a client got no answer from the server

Expected refusals of the core (a late answer, a duplicate, a stale timer) are events or nothing at all,
never exceptions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class OraculoError(Exception):
    """Root of the tree."""


class SettingsError(OraculoError):
    """A setting has a value that is not allowed."""

    def __init__(self, variable: str, value: str, allowed: str) -> None:
        super().__init__(f"{variable}={value!r} is not allowed: {allowed}")
        self.variable = variable


class MissingExtraError(OraculoError):
    """A technology was asked for whose client library is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an extra that is not installed: pip install 'oraculo[{extra}]'")
        self.extra = extra


class WireError(OraculoError):
    """Bytes that are not an acceptable message or request.

    `code` is stable and short (it becomes the reason of a dead letter); `errors` says where and what.
    """

    def __init__(self, code: str, detail: str, errors: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.errors = list(errors)


class PlanError(OraculoError):
    """A well-formed request that makes no valid plan."""

    def __init__(self, detail: str, where: str = "") -> None:
        super().__init__(detail)
        self.detail = detail
        self.where = where


class DuplicateCorrelationError(OraculoError):
    """The same correlation_id or idempotency key was used before with another body."""

    def __init__(self, what: str, value: str) -> None:
        super().__init__(f"{what} {value!r} was already used with a different body")
        self.what = what
        self.value = value


class UnknownIdError(OraculoError):
    """There is no such thing."""

    def __init__(self, what: str, value: str) -> None:
        super().__init__(f"no {what} {value!r}")
        self.what = what
        self.value = value


class BusyError(OraculoError):
    """Too much work is open; nothing was accepted, come back later."""


class StoreError(OraculoError):
    """The store failed."""


class StoreUnavailableError(StoreError):
    """The database cannot be read or written right now; nothing was accepted."""


class FencedError(StoreUnavailableError):
    """The lease of this process ran out and another one took over: nothing more is written before it joins again."""


class EngineUnavailableError(StoreUnavailableError):
    """The server that keeps the state of orchestrations as workflows cannot be used right now; nothing was accepted."""


class StoreTooNewError(StoreError):
    """The database was written by a newer Oráculo than this one."""


class BrokerError(OraculoError):
    """The broker failed."""


class BrokerUnavailableError(BrokerError):
    """The broker did not confirm; whatever was sent may or may not have arrived.

    `unconfirmed` are the messages that this is true of (None: all that were sent; the others are confirmed). `refused`
    are pairs of a message and the reason why the broker will never take it (too large, a name that it does not allow).
    `works` says that the broker itself is fine, and only these messages have to wait: nobody has made their queue yet.
    """

    def __init__(
        self,
        detail: str,
        *,
        unconfirmed: Sequence[Any] | None = None,
        refused: Sequence[tuple[Any, str]] = (),
        works: bool = False,
    ) -> None:
        super().__init__(detail)
        self.unconfirmed = unconfirmed
        self.refused = list(refused)
        self.works = works


class RegistryUnavailableError(BrokerError):
    """The schema registry cannot be asked right now. Nothing is wrong with the message; try again later."""


class SinkUnavailableError(OraculoError):
    """Where a projection writes to cannot be reached; nothing is lost, it is written when that is back."""


class WorkError(OraculoError):
    """Raise it in a worker function to say how the work failed.

    `definitivo=True` means that trying again cannot help, so the orchestrator does not retry.
    """

    def __init__(self, mensagem: str, *, codigo: str = "erro", definitivo: bool = False) -> None:
        super().__init__(mensagem)
        self.mensagem = mensagem
        self.codigo = codigo
        self.definitivo = definitivo


class ApiError(OraculoError):
    """The server answered with a problem document (RFC 9457)."""

    def __init__(self, status: int, title: str, detail: str = "", problem: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{status} {title}: {detail}" if detail else f"{status} {title}")
        self.status = status
        self.title = title
        self.detail = detail
        self.problem = dict(problem or {})


class ServerUnreachableError(OraculoError):
    """No answer from the server: it is down, or not there, or the connection broke.

    `connected` says that it was there and went away before it answered: what was sent may have arrived.
    """

    def __init__(self, url: str, reason: str, *, connected: bool = False) -> None:
        super().__init__(f"cannot reach {url}: {reason}")
        self.url = url
        self.reason = reason
        self.connected = connected
