"""What the client asks of the server, without doing it: every method of the client as a *script*.

A script is a generator: it yields the calls to make and the pauses to keep, is sent each answer (or thrown the error),
and returns what the caller gets. `oraculo.client` plays the same scripts with a blocking and with an asyncio driver, so
nothing is said twice.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic
from typing import Any, TypeVar, cast
from urllib.parse import quote

import orjson

from oraculo.errors import ApiError, OraculoError, ServerUnreachableError

T = TypeVar("T")

API = "/api/v1"
LONG_POLL = 20.0  # seconds that one call waits at the server
SLOW = 300.0  # seconds that a call about many things may take
TROUBLE = (429, 502, 503, 504)  # answers that may be better in a moment

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `patience` is how long the server may take on purpose, on top of the client's timeout."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    patience: float = 0.0

    def content(self) -> bytes | None:
        """The body as JSON; `bytes` are JSON already."""
        return self.body if self.body is None or isinstance(self.body, bytes) else orjson.dumps(self.body)


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Any
    headers: Mapping[str, str]


Script = Generator[Call | Pause, Any, T]


@dataclass(frozen=True, slots=True)
class Submitted:
    """A request that was accepted; it is durable."""

    correlation_id: str
    status: str
    location: str
    document: Object = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a list; `cursor` fetches the next part, None when this was the last. Dead letters are counted by queue
    and reason in `groups`."""

    items: list[Object]
    cursor: str | None = None
    groups: list[Object] = field(default_factory=list)


def part(text: object) -> str:
    """One segment of a path, whatever characters it holds, `..` included."""
    quoted = quote(str(text), safe="")
    return quoted.replace(".", "%2E") if quoted in (".", "..") else quoted


def answer(status: int, headers: Mapping[str, str], content: bytes) -> Answer:
    """The answer, or ApiError when it is not a good one."""
    try:
        body = orjson.loads(content) if content else None
    except ValueError:
        body = content.decode("utf-8", "replace")
    if status < 400:
        return Answer(status, body, headers)
    problem = body if isinstance(body, dict) else {}
    title = str(problem.get("title") or "the server refused")
    raise ApiError(status, title, str(problem.get("detail") or ""), problem)


def is_trouble(error: OraculoError) -> bool:
    """It may be over in a moment: no connection, or a server that is busy or starting."""
    return isinstance(error, ServerUnreachableError) or (isinstance(error, ApiError) and error.status in TROUBLE)


def is_there(error: OraculoError) -> bool:
    """There is a server, although it did not do what it was asked."""
    return not isinstance(error, ServerUnreachableError) or error.connected


def backoff(tries: int) -> float:
    return float(min(0.1 * 2 ** min(tries, 10), 2.0))


def _fetch(call: Call) -> Script[Object]:
    """The document that one call gives."""
    got: Answer = yield call
    return cast(Object, got.body)


# -- orchestrations ----------------------------------------------------------------------------------------------------


def is_plan(request: Mapping[str, Any]) -> bool:
    """Of Fluxo C: a cognitive plan, or a decision about one."""
    return "plan_id" in request or "tasks" in request or "cognitive_plan" in request


def submit(request: Mapping[str, Any], idempotency_key: str | None = None) -> Script[Submitted]:
    """Hand in a request, or a plan of Fluxo C; durable when it returns. With a key (or a `correlation_id`) a request
    may be repeated safely; a plan always may."""
    if is_plan(request):
        return (yield from submit_plan(request))
    headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
    got: Answer = yield Call("POST", f"{API}/orchestrations", body=dict(request), headers=headers)
    name = got.body["correlation_id"]
    location = got.headers.get("location", f"{API}/orchestrations/{part(name)}")
    return Submitted(name, got.body.get("status", "pendente"), location, got.body)


def submit_plan(plan: Mapping[str, Any]) -> Script[Submitted]:
    """Hand in a plan of Fluxo C, or a decision about one. `correlation_id` is empty when it was rejected."""
    got: Answer = yield Call("POST", f"{API}/plans", body=dict(plan))
    name = got.body.get("correlation_id") or ""
    return Submitted(name, got.body["status"], got.headers.get("location", ""), got.body)


def decide(correlation_id: str, approved: bool, por: str = "", motivo: str = "") -> Script[Object]:
    """Say yes or no to a plan that waits for a human. What does not wait for that is not changed."""
    word = "approve" if approved else "reject"
    path = f"{API}/orchestrations/{part(correlation_id)}/{word}"
    return _fetch(Call("POST", path, body={"por": por, "motivo": motivo}))


def result(correlation_id: str, wait: float = 30.0) -> Script[Object | None]:
    """The aggregate when the orchestration has ended; None when it is still running after `wait` seconds. A server that
    was there and goes away meanwhile is waited for as long as `wait` lasts."""
    until = monotonic() + wait
    reached, tries = False, 0
    while True:
        began = monotonic()
        left = max(0.0, until - began)
        asked = min(left, LONG_POLL)
        try:
            got: Answer = yield Call(
                "GET",
                f"{API}/orchestrations/{part(correlation_id)}/result",
                query={"wait": round(asked, 3)},
                patience=asked,
            )
        except OraculoError as error:
            reached = reached or is_there(error)
            if not reached or left <= 0 or not is_trouble(error):
                raise
            yield Pause(min(backoff(tries), left))
            tries += 1
            continue
        reached = True
        if got.status == 200:
            return cast(Object, got.body)
        if left <= 0:
            return None
        if monotonic() - began < asked / 2:  # a server that stops lets nobody wait
            yield Pause(min(backoff(tries), left))
            tries += 1
        else:
            tries = 0


def get(correlation_id: str) -> Script[Object]:
    """The orchestration as it stands: status, tickets, the aggregate so far."""
    return _fetch(Call("GET", f"{API}/orchestrations/{part(correlation_id)}"))


def listing(
    *,
    status: str | Iterable[str] | None = None,
    fonte: str | None = None,
    since: datetime | str | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> Script[Page]:
    """Orchestrations, newest first."""
    statuses = [status] if isinstance(status, str) else list(status or ())
    query = {"status": statuses or None, "fonte": fonte, "since": _instant(since), "limit": limit, "cursor": cursor}
    got: Answer = yield Call("GET", f"{API}/orchestrations", query=_given(query))
    return Page(got.body["orchestrations"], got.body["next"])


def cancel(correlation_id: str, motivo: str = "") -> Script[Object]:
    """Cancel it and every open ticket. Cancelling what has ended changes nothing."""
    return _fetch(Call("POST", f"{API}/orchestrations/{part(correlation_id)}/cancel", body={"motivo": motivo}))


def events(correlation_id: str, after: int = 0) -> Script[list[Object]]:
    """The whole journal from event number `after` on."""
    found: list[Object] = []
    while True:
        got: Answer = yield Call("GET", f"{API}/orchestrations/{part(correlation_id)}/events", query={"after": after})
        found += got.body["events"]
        if got.body["next"] is None:
            return found
        after = got.body["next"]


# -- everything else ---------------------------------------------------------------------------------------------------


def ticket(ticket_id: str) -> Script[Object]:
    return _fetch(Call("GET", f"{API}/tickets/{part(ticket_id)}"))


def replicas() -> Script[Object]:
    """The processes that share the server's database."""
    return _fetch(Call("GET", f"{API}/replicas"))


def metrics() -> Script[str]:
    """The metrics of the server, in the text format of Prometheus."""
    got: Answer = yield Call("GET", "/metrics")
    return str(got.body)


def brokers() -> Script[Object]:
    """The brokers as the server sees them, and when publishing switched."""
    return _fetch(Call("GET", f"{API}/brokers"))


def workers() -> Script[Object]:
    """Who is consuming what, when last seen, and how much each holds; and how full the queues are."""
    return _fetch(Call("GET", f"{API}/workers"))


def dead_letters(
    *, fila: str | None = None, motivo: str | None = None, limit: int = 50, cursor: str | None = None
) -> Script[Page]:
    """Messages that could not be handled, newest first."""
    query = _given({"fila": fila, "motivo": motivo, "limit": limit, "cursor": cursor})
    got: Answer = yield Call("GET", f"{API}/dead-letters", query=query)
    return Page(got.body["dead_letters"], got.body["next"], got.body["groups"])


def dead_letter(id: int) -> Script[Object]:
    """One of them, with its bytes."""
    return _fetch(Call("GET", f"{API}/dead-letters/{part(id)}"))


def requeue_dead_letter(id: int) -> Script[Object]:
    """Hand the message in again, as it came. It stays a dead letter when it is refused again."""
    return _fetch(Call("POST", f"{API}/dead-letters/{part(id)}/requeue"))


def requeue_dead_letters(*, fila: str | None = None, motivo: str | None = None) -> Script[Object]:
    """All that the filter names; one of the two is needed."""
    query = _given({"fila": fila, "motivo": motivo})
    return _fetch(Call("POST", f"{API}/dead-letters/requeue", query=query, patience=SLOW))


def discard_dead_letter(id: int, razao: str = "") -> Script[None]:
    """`razao` is kept with the record of it."""
    yield Call("DELETE", f"{API}/dead-letters/{part(id)}", query=_given({"motivo": razao or None}))


def discard_dead_letters(*, fila: str | None = None, motivo: str | None = None, razao: str = "") -> Script[Object]:
    """All that the filter names; one of the two is needed."""
    query = _given({"fila": fila, "motivo": motivo, "razao": razao or None})
    return _fetch(Call("DELETE", f"{API}/dead-letters", query=query, patience=SLOW))


def task_types() -> Script[Object]:
    """Every task type and what it stands for."""
    got: Answer = yield Call("GET", f"{API}/task-types")
    return cast(Object, got.body["task_types"])


def task_type(tipo: str) -> Script[Object]:
    return _fetch(Call("GET", f"{API}/task-types/{part(tipo)}"))


def put_task_type(tipo: str, request: Mapping[str, Any]) -> Script[Object]:
    return _fetch(Call("PUT", f"{API}/task-types/{part(tipo)}", body=dict(request)))


def remove_task_type(tipo: str) -> Script[None]:
    yield Call("DELETE", f"{API}/task-types/{part(tipo)}")


def health() -> Script[Object]:
    return _fetch(Call("GET", "/health"))


def ready() -> Script[Object]:
    """Also when it is not: then the document says why."""
    try:
        got: Answer = yield Call("GET", "/ready")
    except ApiError as error:
        if "checks" not in error.problem:
            raise
        return error.problem
    return cast(Object, got.body)


def _given(query: Mapping[str, Any]) -> Object:
    return {name: value for name, value in query.items() if value is not None}


def _instant(at: datetime | str | None) -> str | None:
    return at.isoformat() if isinstance(at, datetime) else at
