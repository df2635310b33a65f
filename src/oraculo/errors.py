"""Every exception that Oráculo raises.

    OraculoError
    ├── SettingsError             a variable has a value that is not allowed
    ├── MissingExtraError         a technology was asked for whose client is not installed
    ├── WireError                 bytes that are not an acceptable message or request
    ├── PlanError                 a well-formed request that makes no valid plan
    │   └── UnknownTaskTypeError  it names a task type that there is not
    ├── ExpressionError           an expression that cannot be read, or cannot be evaluated over these values
    │   └── ExpressionCostError   its evaluation needs more units than it may have
    ├── DuplicateCorrelationError same correlation_id or idempotency key, another body
    ├── UnknownIdError            no such orchestration, ticket, lease, dead letter or task type
    ├── ErasedError               what was stored cannot be read any more: its tenant's key was forgotten
    ├── RunEndedError             an orchestration that has ended cannot be paused or resumed
    ├── TicketStatusError         a ticket that cannot take this status now
    ├── SignalError               a signal that an orchestration does not take
    ├── DecisionError             a decision of a human that does not count
    ├── RetryError                a run that cannot be tried again like this
    ├── PolicyError               policies that cannot be asked as they are
    ├── BusyError                 too much work is open; come back later
    ├── QuotaError                a key has used up one of its limits
    ├── UnavailableError          a server that is needed cannot be used right now; trying again later may work
    │   ├── StoreUnavailableError the database cannot be read or written (also a StoreError)
    │   │   └── FencedError       another process has taken over what this one was doing
    │   ├── EngineUnavailableError the server that runs the workflows cannot be reached (also a StoreError)
    │   ├── BrokerUnavailableError the broker did not confirm (also a BrokerError)
    │   ├── RegistryUnavailableError the schema registry cannot be asked (also a BrokerError)
    │   ├── SinkUnavailableError  what a projection writes to cannot be reached
    │   ├── IdentityUnavailableError the identity provider cannot be asked
    │   └── ServerUnreachableError a client got no answer from the server
    ├── StoreError                state cannot be read or written
    │   ├── SealError             something sealed was changed, or belongs elsewhere
    │   ├── StoreTooNewError      the database was written by a newer Oráculo
    │   └── StoreTooOldError      the database lacks migrations, and they may not be applied at start
    ├── BrokerError               messages cannot be sent or read
    ├── WorkError                 raised by worker functions: the work failed, and how
    ├── WorkerTargetError         `module:name` names no worker
    └── ApiError                  the server answered a client with a problem document
        ├── NotFoundError         the server knows no such thing, or no longer
        ├── ConflictError         the request contradicts what the server has
        └── BatchRefusedError     some of many requests were refused

Expected refusals of the core (a late answer, a duplicate, a stale timer) are events or nothing at all,
never exceptions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class OraculoError(Exception):
    """The base of every error that Oráculo raises."""


class SettingsError(OraculoError):
    """A setting has a value that is not allowed."""

    def __init__(self, variable: str, value: str, allowed: str) -> None:
        super().__init__(f"{variable}={value!r} is not allowed: {allowed}")
        self.variable = variable
        self.allowed = allowed


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


class UnknownTaskTypeError(PlanError):
    """A request names a task type that there is not; `known` are those that there are."""

    def __init__(self, tipo: str, known: Sequence[str], where: str = "tipo") -> None:
        place = "" if where == "tipo" else f"{where}: "
        super().__init__(f"{place}unknown task type {tipo!r}; known: {', '.join(known) or 'none yet'}", where)
        self.known = list(known)


class ExpressionError(OraculoError):
    """An expression that cannot be read, or cannot be evaluated over these values.

    `position` counts characters of the expression from 0; `source` is the expression, once it is known.
    """

    def __init__(self, message: str, position: int, source: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.position = position
        self.source = source

    def __str__(self) -> str:
        where = f" at column {self.position + 1}"
        return f"{self.message}{where} of {self.source!r}" if self.source else f"{self.message}{where}"


class ExpressionCostError(ExpressionError):
    """The evaluation of an expression needs more units than it may have."""


class DuplicateCorrelationError(OraculoError):
    """The same correlation_id or idempotency key was used before with another body."""

    def __init__(self, what: str, value: str) -> None:
        super().__init__(f"{what} {value!r} was already used with a different body")
        self.what = what
        self.value = value


class UnknownIdError(OraculoError):
    """There is no orchestration, ticket, lease, dead letter or task type with that id."""

    def __init__(self, what: str, value: str) -> None:
        super().__init__(f"no {what} {value!r}")
        self.what = what
        self.value = value


class ErasedError(OraculoError):
    """What was stored cannot be read any more, because the key of its tenant was forgotten."""

    def __init__(self, what: str) -> None:
        super().__init__(f"this {what} was erased: the key of its tenant was forgotten; nobody can read it any more")


class RunEndedError(OraculoError):
    """An orchestration that has ended cannot be paused or resumed."""

    def __init__(self, correlation_id: str, status: str) -> None:
        super().__init__(f"{correlation_id!r} has ended as {status}")


class TicketStatusError(OraculoError):
    """A ticket that cannot take this status now: no attempt is open, or it has ended."""

    def __init__(self, ticket: str, detail: str) -> None:
        super().__init__(f"{ticket}: {detail}")


class SignalError(OraculoError):
    """A signal that an orchestration does not take: `reason` is `ended`, `unknown` or `full`; `known` are the names of
    the signals that its waits have."""

    def __init__(self, reason: str, detail: str, known: Sequence[str] = ()) -> None:
        super().__init__(detail)
        self.reason = reason
        self.known = list(known)


class DecisionError(OraculoError):
    """A decision of a human that does not count: `reason` is `own`, `role`, `several`, `not_waiting` or `unknown_task`;
    `known` are the names of tasks, or of roles, that there are."""

    def __init__(self, reason: str, detail: str, known: Sequence[str] = ()) -> None:
        super().__init__(detail)
        self.reason = reason
        self.known = list(known)


class RetryError(OraculoError):
    """A run that cannot be tried again like this: `reason` is `open`, `nothing_failed` or `unknown_task`; `known` are
    the names of its tasks."""

    def __init__(self, reason: str, detail: str, known: Sequence[str] = ()) -> None:
        super().__init__(detail)
        self.reason = reason
        self.known = list(known)


class PolicyError(OraculoError):
    """Policies cannot be asked as they are: one does not compile, uses what is not allowed, or is not there."""


class BusyError(OraculoError):
    """Too much work is open; nothing was accepted, come back later."""


class QuotaError(OraculoError):
    """A key or a tenant has used up one of its limits, as fields of `Limits` are called. `wait_s` says after how long
    it may try again, when that is known."""

    def __init__(self, limit: str, detail: str, wait_s: float | None = None) -> None:
        super().__init__(detail)
        self.limit = limit
        self.wait_s = wait_s


class UnavailableError(OraculoError):
    """A server that is needed cannot be used right now; trying again later may work."""


class StoreError(OraculoError):
    """The state of orchestrations cannot be read or written."""


class StoreUnavailableError(UnavailableError, StoreError):
    """The database cannot be read or written right now; nothing was accepted."""


class FencedError(StoreUnavailableError):
    """The lease of this process ran out and another one took over: nothing more is written before it joins again."""


class EngineUnavailableError(UnavailableError, StoreError):
    """The server that keeps the state of orchestrations as workflows cannot be used right now; nothing was accepted."""


class SealError(StoreError):
    """Something that is sealed does not open with its key: it was changed, or belongs elsewhere."""


class StoreTooNewError(StoreError):
    """The database was written by a newer Oráculo than this one."""


class StoreTooOldError(StoreError):
    """The database lacks migrations, and this process was told not to apply them."""


class BrokerError(OraculoError):
    """Messages cannot be sent or read."""


class BrokerUnavailableError(UnavailableError, BrokerError):
    """The broker is away, or did not confirm; whatever was sent may or may not have arrived."""


class RegistryUnavailableError(UnavailableError, BrokerError):
    """The schema registry cannot be asked right now. Nothing is wrong with the message; try again later."""


class SinkUnavailableError(UnavailableError):
    """Where a projection writes to cannot be reached; nothing is lost, it is written when that is back."""


class IdentityUnavailableError(UnavailableError):
    """The identity provider has to be asked who a user is, and cannot be."""


class WorkError(OraculoError):
    """Raise it in a worker function to say how the work failed.

    `final=True` means that trying again cannot help, so the orchestrator does not retry. `codigo` and `definitivo` are
    the same as `code` and `final`.
    """

    def __init__(
        self, mensagem: str, *, code: str = "erro", final: bool = False, codigo: str = "", definitivo: bool = False
    ) -> None:
        super().__init__(mensagem)
        self.mensagem = mensagem
        self.codigo = codigo or code
        self.definitivo = definitivo or final


class WorkerTargetError(OraculoError):
    """A command was given `module:name` of a worker, and there is none."""


class ApiError(OraculoError):
    """The server answered with a problem document (RFC 9457)."""

    def __init__(self, status: int, title: str, detail: str = "", problem: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{status} {title}: {detail}" if detail else f"{status} {title}")
        self.status = status
        self.title = title
        self.detail = detail
        self.problem = dict(problem or {})


class NotFoundError(ApiError):
    """The server knows no such orchestration, ticket, dead letter, lease or task type, or no longer (404, 410)."""


class ConflictError(ApiError):
    """The request contradicts what the server has, like a `correlation_id` that was used with another body (409)."""


class BatchRefusedError(ApiError):
    """Some of many requests were refused. `items` has, in order, an ApiError for each that was refused and what
    `submit` would have returned for the others; the rest of the error is that of the first refusal."""

    def __init__(self, items: Sequence[Any]) -> None:
        refused = [one for one in items if isinstance(one, ApiError)]
        first = refused[0]
        detail = f"{len(refused)} of {len(items)} were refused, the first: {first.detail}"
        super().__init__(first.status, first.title, detail, first.problem)
        self.items = list(items)


class ServerUnreachableError(UnavailableError):
    """No answer from the server: it is down, or not there, or the connection broke.

    `connected` says that it was there and went away before it answered: what was sent may have arrived.
    """

    def __init__(self, url: str, reason: str, *, connected: bool = False) -> None:
        super().__init__(f"cannot reach {url}: {reason}")
        self.url = url
        self.reason = reason
        self.connected = connected
