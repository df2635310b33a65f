"""What the client asks of the server, without doing it: every method of the client as a *call plan*.

A call plan is a generator: it yields the calls to make and the pauses to keep, is sent each answer (or thrown the
error), and returns what the caller gets. The blocking and the asyncio client run the same plans, so the rules stand
here once.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic
from typing import Any, TypeVar, cast
from urllib.parse import quote

import orjson

from oraculo.client.results import (
    BrokersStatus,
    BulkRequeueAnswer,
    CallerDetails,
    CancelAnswer,
    DeadLetterDetails,
    DecisionAnswer,
    DiscardAnswer,
    KeyDetails,
    MadeKeyDetails,
    Page,
    ReplicasStatus,
    RequeueAnswer,
    RunDetails,
    RunEvent,
    RunResult,
    RunSummary,
    ServerHealth,
    ServerReadiness,
    SignalAnswer,
    Submitted,
    TicketDetails,
)
from oraculo.errors import ApiError, ConflictError, NotFoundError, OraculoError, ServerUnreachableError

T = TypeVar("T")

API = "/api/v1"
LONG_POLL_S = 20.0  # how long one call waits at the server for a result
BULK_TIMEOUT_S = 300.0  # how long a call about many dead letters may take
TEMPORARY_STATUSES = (429, 502, 503, 504)
RETRY_FIRST_S, RETRY_MAX_S = 0.1, 2.0
ERROR_OF_STATUS: Mapping[int, type[ApiError]] = {404: NotFoundError, 410: NotFoundError, 409: ConflictError}

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class HttpCall:
    """One HTTP request. `server_wait_s` is how long the server may take on purpose, on top of the client's timeout."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    server_wait_s: float = 0.0

    def content(self) -> bytes | None:
        """The body as JSON; `bytes` are JSON already."""
        return self.body if self.body is None or isinstance(self.body, bytes) else orjson.dumps(self.body)


@dataclass(frozen=True, slots=True)
class Pause:
    """A wait before the next call."""

    seconds: float


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A good answer of the server, its JSON body read."""

    status: int
    body: Any
    headers: Mapping[str, str]


CallPlan = Generator[HttpCall | Pause, Any, T]


def path_segment(text: object) -> str:
    """Quote a text as one segment of a path, whatever characters it holds, `..` included."""
    quoted = quote(str(text), safe="")
    return quoted.replace(".", "%2E") if quoted in (".", "..") else quoted


def read_answer(status: int, headers: Mapping[str, str], content: bytes) -> HttpAnswer:
    """Read an answer of the server. Raises ApiError, or the kind of it that fits, when it is a refusal."""
    try:
        body = orjson.loads(content) if content else None
    except ValueError:
        body = content.decode("utf-8", "replace")
    if status < 400:
        return HttpAnswer(status, body, headers)
    raise refusal(status, body if isinstance(body, dict) else {})


def refusal(status: int, problem: Mapping[str, Any]) -> ApiError:
    """The error that a problem document stands for."""
    title = str(problem.get("title") or "the server refused")
    return ERROR_OF_STATUS.get(status, ApiError)(status, title, str(problem.get("detail") or ""), problem)


def is_temporary(error: OraculoError) -> bool:
    """Whether the same call may succeed in a moment: no connection, or a server that is busy or starting."""
    if isinstance(error, ApiError):
        return error.status in TEMPORARY_STATUSES
    return isinstance(error, ServerUnreachableError)


def was_reached(error: OraculoError) -> bool:
    """Whether there is a server, although it did not do what it was asked."""
    return not isinstance(error, ServerUnreachableError) or error.connected


def retry_pause_s(tries: int) -> float:
    """The pause before the next try, after `tries` failures."""
    return float(min(RETRY_FIRST_S * 2 ** min(tries, 10), RETRY_MAX_S))


def _fetch(call: HttpCall) -> CallPlan[Any]:
    """Make one call and return the body of its answer."""
    got: HttpAnswer = yield call
    return got.body


# -- orchestrations ----------------------------------------------------------------------------------------------------


def is_plan(request: Mapping[str, Any]) -> bool:
    """Whether a request is one of Fluxo C: a cognitive plan, or a decision about one. The `tasks` of a plan of any
    shape have names; those of Fluxo C are a list."""
    return "plan_id" in request or isinstance(request.get("tasks"), list) or "cognitive_plan" in request


def with_input(request: Mapping[str, Any], values: Mapping[str, Any] | None) -> dict[str, Any]:
    """The request with these values laid over its input: `entrada` of a plan, `parametros` of a task type."""
    if values is None:
        return dict(request)
    if request.keys() & {"coletas", "collects", "execucoes", "executes"} or is_plan(request):
        raise ValueError("input goes with a plan of named tasks or a task type; this request is neither")
    words = ("parametros", "params") if request.keys() & {"tipo", "type"} else ("entrada", "input")
    word = next((one for one in words if one in request), words[0])
    return {**request, word: {**(request.get(word) or {}), **values}}


def submit(
    request: Mapping[str, Any], idempotency_key: str | None = None, values: Mapping[str, Any] | None = None
) -> CallPlan[Submitted]:
    """Hand in a request, or a plan of Fluxo C. `values` are laid over the input of a plan."""
    request = with_input(request, values)
    if is_plan(request):
        return (yield from submit_plan(request))
    headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
    got: HttpAnswer = yield HttpCall("POST", f"{API}/orchestrations", body=dict(request), headers=headers)
    name = got.body["correlation_id"]
    location = got.headers.get("location", f"{API}/orchestrations/{path_segment(name)}")
    return Submitted(name, got.body.get("status", "pendente"), location, got.body)


def submit_plan(plan: Mapping[str, Any]) -> CallPlan[Submitted]:
    """Hand in a plan of Fluxo C, or a decision about one. `correlation_id` is empty when it was rejected."""
    got: HttpAnswer = yield HttpCall("POST", f"{API}/plans", body=dict(plan))
    name = got.body.get("correlation_id") or ""
    return Submitted(name, got.body["status"], got.headers.get("location", ""), got.body)


def decide(
    correlation_id: str, approved: bool, by: str = "", reason: str = "", task: str | None = None
) -> CallPlan[DecisionAnswer]:
    word = "approve" if approved else "reject"
    path = f"{API}/orchestrations/{path_segment(correlation_id)}/{word}"
    which = {} if task is None else {"tarefa": task}
    return _fetch(HttpCall("POST", path, body={"por": by, "motivo": reason, **which}))


def signal(correlation_id: str, name: str, data: Any = None, key: str | None = None) -> CallPlan[SignalAnswer]:
    path = f"{API}/orchestrations/{path_segment(correlation_id)}/signals/{path_segment(name)}"
    headers = {} if key is None else {"Idempotency-Key": key}
    return _fetch(HttpCall("POST", path, body={"dados": data}, headers=headers))


def result(correlation_id: str, wait: float = 30.0) -> CallPlan[RunResult | None]:
    """Ask for the aggregate until it is there or `wait` seconds are over. A server that was reached and goes away
    meanwhile is waited for."""
    until = monotonic() + wait
    reached, tries = False, 0
    while True:
        began = monotonic()
        left = max(0.0, until - began)
        asked = min(left, LONG_POLL_S)
        try:
            got: HttpAnswer = yield HttpCall(
                "GET",
                f"{API}/orchestrations/{path_segment(correlation_id)}/result",
                query={"wait": round(asked, 3)},
                server_wait_s=asked,
            )
        except OraculoError as error:
            reached = reached or was_reached(error)
            if not reached or left <= 0 or not is_temporary(error):
                raise
            yield Pause(min(retry_pause_s(tries), left))
            tries += 1
            continue
        reached = True
        if got.status == 200:
            return RunResult(got.body)
        if left <= 0:
            return None
        if monotonic() - began < asked / 2:  # a server that is stopping answers at once
            yield Pause(min(retry_pause_s(tries), left))
            tries += 1
        else:
            tries = 0


def get(correlation_id: str) -> CallPlan[RunDetails]:
    return _fetch(HttpCall("GET", f"{API}/orchestrations/{path_segment(correlation_id)}"))


def listing(
    *,
    status: str | Iterable[str] | None = None,
    source: str | None = None,
    label: str | None = None,
    since: datetime | str | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> CallPlan[Page[RunSummary]]:
    statuses = [status] if isinstance(status, str) else list(status or ())
    query = {"status": statuses or None, "fonte": source, "rotulo": label, "since": _instant(since), "cursor": cursor}
    got: HttpAnswer = yield HttpCall("GET", f"{API}/orchestrations", query={**_given(query), "limit": limit})
    return Page(got.body["orchestrations"], got.body["next"])


def cancel(correlation_id: str, reason: str = "", undo: bool = False) -> CallPlan[CancelAnswer]:
    body = {"motivo": reason, **({"desfazer": True} if undo else {})}
    return _fetch(HttpCall("POST", f"{API}/orchestrations/{path_segment(correlation_id)}/cancel", body=body))


def events(correlation_id: str, after: int = 0) -> CallPlan[list[RunEvent]]:
    found: list[RunEvent] = []
    while True:
        got: HttpAnswer = yield HttpCall(
            "GET", f"{API}/orchestrations/{path_segment(correlation_id)}/events", query={"after": after}
        )
        found += got.body["events"]
        if got.body["next"] is None:
            return found
        after = got.body["next"]


# -- everything else ---------------------------------------------------------------------------------------------------


def ticket(ticket_id: str) -> CallPlan[TicketDetails]:
    return _fetch(HttpCall("GET", f"{API}/tickets/{path_segment(ticket_id)}"))


def replicas() -> CallPlan[ReplicasStatus]:
    return _fetch(HttpCall("GET", f"{API}/replicas"))


def metrics() -> CallPlan[str]:
    got: HttpAnswer = yield HttpCall("GET", "/metrics")
    return str(got.body)


def brokers() -> CallPlan[BrokersStatus]:
    return _fetch(HttpCall("GET", f"{API}/brokers"))


def dead_letters(
    *, queue: str | None = None, reason: str | None = None, limit: int = 50, cursor: str | None = None
) -> CallPlan[Page[DeadLetterDetails]]:
    query = _given({"fila": queue, "motivo": reason, "limit": limit, "cursor": cursor})
    got: HttpAnswer = yield HttpCall("GET", f"{API}/dead-letters", query=query)
    return Page(got.body["dead_letters"], got.body["next"], got.body["groups"])


def dead_letter(letter_id: int) -> CallPlan[DeadLetterDetails]:
    return _fetch(HttpCall("GET", f"{API}/dead-letters/{path_segment(letter_id)}"))


def requeue_dead_letter(letter_id: int) -> CallPlan[RequeueAnswer]:
    return _fetch(HttpCall("POST", f"{API}/dead-letters/{path_segment(letter_id)}/requeue"))


def requeue_dead_letters(*, queue: str | None = None, reason: str | None = None) -> CallPlan[BulkRequeueAnswer]:
    query = _given({"fila": queue, "motivo": reason})
    return _fetch(HttpCall("POST", f"{API}/dead-letters/requeue", query=query, server_wait_s=BULK_TIMEOUT_S))


def discard_dead_letter(letter_id: int, note: str = "") -> CallPlan[None]:
    yield HttpCall("DELETE", f"{API}/dead-letters/{path_segment(letter_id)}", query=_given({"motivo": note or None}))


def discard_dead_letters(
    *, queue: str | None = None, reason: str | None = None, note: str = ""
) -> CallPlan[DiscardAnswer]:
    query = _given({"fila": queue, "motivo": reason, "razao": note or None})
    return _fetch(HttpCall("DELETE", f"{API}/dead-letters", query=query, server_wait_s=BULK_TIMEOUT_S))


def task_types() -> CallPlan[JsonObject]:
    got: HttpAnswer = yield HttpCall("GET", f"{API}/task-types")
    types: JsonObject = got.body["task_types"]
    return types


def task_type(name: str) -> CallPlan[JsonObject]:
    return _fetch(HttpCall("GET", f"{API}/task-types/{path_segment(name)}"))


def put_task_type(name: str, request: Mapping[str, Any]) -> CallPlan[JsonObject]:
    return _fetch(HttpCall("PUT", f"{API}/task-types/{path_segment(name)}", body=dict(request)))


def remove_task_type(name: str) -> CallPlan[None]:
    yield HttpCall("DELETE", f"{API}/task-types/{path_segment(name)}")


def keys() -> CallPlan[list[KeyDetails]]:
    got: HttpAnswer = yield HttpCall("GET", f"{API}/keys")
    found: list[KeyDetails] = got.body["keys"]
    return found


def create_key(
    role: str,
    *,
    tenant: str | None = None,
    queues: Iterable[str] = (),
    expires_s: float | None = None,
    note: str = "",
    max_open: int | None = None,
    per_second: float | None = None,
    public_key: str | None = None,
) -> CallPlan[MadeKeyDetails]:
    body = _given({"role": role, "tenant": tenant, "queues": list(queues), "expires_s": expires_s, "nota": note})
    body |= _given({"public_key": public_key})
    body["limites"] = _given({"abertas": max_open, "por_segundo": per_second})
    return _fetch(HttpCall("POST", f"{API}/keys", body=body))


def rotate_key(
    key_id: str, *, overlap_s: float | None = None, expires_s: float | None = None
) -> CallPlan[MadeKeyDetails]:
    body = _given({"overlap_s": overlap_s, "expires_s": expires_s})
    return _fetch(HttpCall("POST", f"{API}/keys/{path_segment(key_id)}/rotate", body=body))


def revoke_key(key_id: str) -> CallPlan[KeyDetails]:
    return _fetch(HttpCall("DELETE", f"{API}/keys/{path_segment(key_id)}"))


def whoami() -> CallPlan[CallerDetails]:
    return _fetch(HttpCall("GET", f"{API}/whoami"))


def health() -> CallPlan[ServerHealth]:
    return _fetch(HttpCall("GET", "/health"))


def ready() -> CallPlan[ServerReadiness]:
    """Return the document of a server that is not ready too."""
    try:
        got: HttpAnswer = yield HttpCall("GET", "/ready")
    except ApiError as error:
        if "checks" not in error.problem:
            raise
        return cast("ServerReadiness", error.problem)
    found: ServerReadiness = got.body
    return found


def _given(query: Mapping[str, Any]) -> JsonObject:
    return {name: value for name, value in query.items() if value is not None}


def _instant(at: datetime | str | None) -> str | None:
    return at.isoformat() if isinstance(at, datetime) else at
