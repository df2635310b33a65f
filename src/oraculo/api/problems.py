"""Refusals as RFC 9457 problem documents.

`type` is `/problems/<code with dashes>`: stable, relative to this server, and a page that explains it. `code` is the
same word for programs, `errors` says where and what: `[{"campo": "coletas.0.fonte", "mensagem": "…"}]`. A dead letter's
reason and the code of the problem that a sender gets over HTTP are the same word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from oraculo.errors import (
    BrokerError,
    BusyError,
    DecisionError,
    DuplicateCorrelationError,
    EngineUnavailableError,
    ErasedError,
    IdentityUnavailableError,
    OraculoError,
    PlanError,
    QuotaError,
    RetryError,
    RunEndedError,
    SignalError,
    StoreError,
    TicketStatusError,
    UnknownIdError,
    UnknownTaskTypeError,
    WireError,
)
from oraculo.wire import strict_json

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 1


@dataclass(frozen=True, slots=True)
class Kind:
    status: int
    title: str


PROBLEM_KINDS: dict[str, Kind] = {
    "not_json": Kind(400, "The body is not JSON"),
    "duplicate_key": Kind(400, "An object has the same key twice"),
    "too_deep": Kind(400, "The JSON is nested too deep"),
    "too_complex": Kind(400, "The JSON has too many lists and objects"),
    "invalid_unicode": Kind(400, "The text is not valid Unicode"),
    "number_out_of_range": Kind(400, "A number is out of range"),
    "nul": Kind(400, "A string holds the character U+0000"),
    "ambiguous_length": Kind(400, "The request gives its length in two ways"),
    "invalid_http": Kind(400, "The request is not valid HTTP"),
    "incomplete_body": Kind(400, "The connection ended before the body did"),
    "invalid_path": Kind(400, "The path is not percent-encoded UTF-8"),
    "invalid_idempotency_key": Kind(400, "The Idempotency-Key is not acceptable"),
    "invalid_last_event_id": Kind(400, "The Last-Event-ID is not a number of an event"),
    "unauthorized": Kind(401, "An API key is needed"),
    "cross_site": Kind(403, "Another site may not do this"),
    "forbidden": Kind(403, "The credential does not allow this"),
    "unauthenticated": Kind(403, "The answer does not have the token of its ticket"),
    "role_needed": Kind(403, "Another role has to decide this"),
    "stale_page": Kind(403, "The page does not belong to this session"),
    "not_found": Kind(404, "There is no such route"),
    "unknown_id": Kind(404, "There is no such thing"),
    "method_not_allowed": Kind(405, "The route does not take this method"),
    "erased": Kind(410, "What was stored was erased"),
    "body_too_slow": Kind(408, "The body took too long to arrive"),
    "plan_id_taken": Kind(409, "The plan_id belongs to another plan"),
    "flow_c_off": Kind(409, "Fluxo C is not turned on"),
    "correlation_id_taken": Kind(409, "The correlation_id belongs to another request"),
    "own_plan": Kind(409, "Whoever submitted a plan does not approve it"),
    "run_ended": Kind(409, "The orchestration has ended"),
    "ticket_status": Kind(409, "The ticket cannot take this status now"),
    "tokens_off": Kind(409, "Tickets have no tokens here"),
    "several_wait": Kind(409, "Several tasks wait for a decision"),
    "nothing_waits": Kind(409, "Nothing waits for this decision"),
    "run_open": Kind(409, "The orchestration has not ended"),
    "nothing_failed": Kind(409, "The orchestration has nothing that failed"),
    "wants_result": Kind(409, "The message wants a result"),
    "not_wanted": Kind(410, "Nobody waits for this work any more"),
    "too_large": Kind(413, "The body is too large"),
    "unsupported_media_type": Kind(415, "The body has a type that the route does not take"),
    "unsupported_content_encoding": Kind(415, "The body must not be compressed"),
    "wrong_host": Kind(421, "This server does not answer for that host"),
    "invalid_request": Kind(422, "The request has fields that are not acceptable"),
    "invalid_plan": Kind(422, "The request makes no valid plan"),
    "invalid_parameter": Kind(422, "A parameter is not acceptable"),
    "invalid_cursor": Kind(422, "The cursor did not come from this list"),
    "unknown_task_type": Kind(422, "There is no such task type"),
    "unknown_signal": Kind(422, "No wait has this signal"),
    "unknown_task": Kind(422, "No such task is decided by a human"),
    "no_such_task": Kind(422, "The orchestration has no such task"),
    "idempotency_key_reused": Kind(422, "The Idempotency-Key was used with another body"),
    "filter_required": Kind(422, "Doing this to many needs a filter"),
    "reserved_queue": Kind(422, "The queue is read by the orchestrator"),
    "not_an_object": Kind(422, "A message is a JSON object"),
    "missing_field": Kind(422, "The message lacks a required field"),
    "invalid_field": Kind(422, "A field of the message is not acceptable"),
    "unknown_event": Kind(422, "The tipo_evento is not known"),
    "unexpected_event": Kind(422, "The tipo_evento does not belong here"),
    "too_many_failures": Kind(429, "Too many wrong credentials came from this address"),
    "too_many_signals": Kind(429, "Too many signals are kept"),
    "quota": Kind(429, "The key or its tenant has used up one of its limits"),
    "cookies_too_large": Kind(431, "The cookies are too large"),
    "header_too_large": Kind(431, "The header of the request is too large"),
    "internal_error": Kind(500, "Something went wrong here"),
    "not_ready": Kind(503, "The orchestrator is starting or stopping"),
    "engine_unavailable": Kind(503, "The workflow server cannot be used right now"),
    "store_unavailable": Kind(503, "The database cannot be used right now"),
    "identity_unavailable": Kind(503, "The identity provider cannot be asked right now"),
    "broker_unavailable": Kind(503, "The broker cannot be used right now"),
    "busy": Kind(503, "Too much work is open"),
}


class ProblemError(Exception):
    """Raised by a handler to answer with a problem; it never leaves the API."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        status: int | None = None,
        errors: Sequence[Mapping[str, Any]] = (),
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        kind = PROBLEM_KINDS[code]
        self.code, self.detail, self.title = code, detail, kind.title
        self.status = status or kind.status
        self.errors, self.headers, self.more = list(errors), dict(headers or {}), more


def invalid(name: str, detail: str, code: str = "invalid_parameter") -> ProblemError:
    """One fault of one field or parameter."""
    return ProblemError(code, f"{name}: {detail}", errors=[{"campo": name, "mensagem": detail}])


AMBIGUOUS_LENGTH = ProblemError(
    "ambiguous_length", "send Content-Length or Transfer-Encoding, not both", headers={"Connection": "close"}
)


def document(problem: ProblemError, instance: str) -> dict[str, Any]:
    """The problem as JSON data."""
    found: dict[str, Any] = {
        "type": f"/problems/{problem.code.replace('_', '-')}",
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
        "instance": instance,
        "code": problem.code,
        **problem.more,
    }
    if problem.errors:
        found["errors"] = problem.errors
    return found


def response(problem: ProblemError, instance: str) -> Response:
    headers = dict(problem.headers)
    if problem.status == 503:
        headers.setdefault("Retry-After", str(RETRY_AFTER_S))
    return Response(strict_json.dumps(document(problem, instance)), problem.status, headers, MEDIA_TYPE)


def problem_of(error: Exception) -> ProblemError:
    """Our own exceptions, FastAPI's and Starlette's → the problem they are for the caller."""
    match error:
        case ProblemError():
            return error
        case WireError():
            code = error.code if error.code in PROBLEM_KINDS else "invalid_request"
            return ProblemError(code, error.detail, errors=error.errors)
        case UnknownTaskTypeError():
            told = [{"campo": error.where, "mensagem": error.detail}]
            return ProblemError("unknown_task_type", error.detail, errors=told, known=error.known)
        case PlanError():
            where = [{"campo": error.where, "mensagem": error.detail}] if error.where else []
            return ProblemError("invalid_plan", error.detail, errors=where)
        case DuplicateCorrelationError(what="correlation_id"):
            return ProblemError("correlation_id_taken", str(error))
        case DuplicateCorrelationError(what="plan_id"):
            return ProblemError("plan_id_taken", str(error))
        case DuplicateCorrelationError():
            return ProblemError("idempotency_key_reused", str(error))
        case UnknownIdError():
            return ProblemError("unknown_id", str(error))
        case ErasedError():
            return ProblemError("erased", str(error))
        case RunEndedError():
            return ProblemError("run_ended", str(error))
        case TicketStatusError():
            return ProblemError("ticket_status", str(error))
        case SignalError():
            return ProblemError(_SIGNAL_PROBLEMS[error.reason], str(error), **_known(error.known))
        case DecisionError():
            return ProblemError(_DECISION_PROBLEMS[error.reason], str(error), **_known(error.known))
        case RetryError():
            return ProblemError(_RETRY_PROBLEMS[error.reason], str(error), **_known(error.known))
        case BusyError():
            return ProblemError("busy", f"{error}; nothing was accepted, try again later")
        case QuotaError():
            wait_s = RETRY_AFTER_S if error.wait_s is None else max(1, ceil(error.wait_s))
            return ProblemError("quota", str(error), headers={"Retry-After": str(wait_s)}, limite=error.limit)
        case EngineUnavailableError():
            return ProblemError("engine_unavailable", f"{error}; nothing was accepted, try again later")
        case IdentityUnavailableError():
            return ProblemError("identity_unavailable", "who you are cannot be found out; try again later")
        case StoreError():
            return ProblemError("store_unavailable", "nothing was accepted; try again later")
        case BrokerError():
            return ProblemError("broker_unavailable", "try again later")
        case RequestValidationError():
            return _validation(error)
        case HTTPException(status_code=404):
            return ProblemError("not_found", "see /docs for the routes there are")
        case HTTPException(status_code=405):
            return ProblemError("method_not_allowed", "see the Allow header", headers=error.headers)
        case HTTPException(status_code=status) if 400 <= status < 500:
            return ProblemError("invalid_request", str(error.detail), status=status, headers=error.headers)
        case ClientDisconnect():
            return ProblemError("incomplete_body", "the caller has gone")
        case _:
            return ProblemError("internal_error", "it was logged; the request may or may not have had an effect")


_SIGNAL_PROBLEMS = {"ended": "run_ended", "unknown": "unknown_signal", "full": "too_many_signals"}
_RETRY_PROBLEMS = {"open": "run_open", "nothing_failed": "nothing_failed", "unknown_task": "no_such_task"}
_DECISION_PROBLEMS = {
    "own": "own_plan",
    "role": "role_needed",
    "several": "several_wait",
    "not_waiting": "nothing_waits",
    "unknown_task": "unknown_task",
}


def _known(names: list[str]) -> dict[str, Any]:
    return {"known": names} if names else {}


def _validation(error: RequestValidationError) -> ProblemError:
    errors = [
        {"campo": ".".join(str(part) for part in item["loc"]), "mensagem": item["msg"]} for item in error.errors()
    ]
    detail = "; ".join(f"{item['campo']}: {item['mensagem']}" for item in errors[:5])
    return ProblemError("invalid_parameter", detail, errors=errors[:50])


async def handle(request: Request, error: Exception) -> Response:
    request.state.error = error
    return response(problem_of(error), request.scope["path"])


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route: these statuses are answered with problems."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {
        status: {
            "description": "; ".join(kind.title for kind in PROBLEM_KINDS.values() if kind.status == status),
            "content": content,
        }
        for status in statuses
    }


COMMON_RESPONSES = documented(400, 401, 403, 421, 429, 500, 503)
EXPECTED_ERRORS: tuple[type[Exception], ...] = (
    ProblemError,
    OraculoError,
    RequestValidationError,
    HTTPException,
    ClientDisconnect,
)
