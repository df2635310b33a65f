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
from typing import Any, TypeVar
from urllib.parse import quote

import orjson

from oraculo.errors import ApiError, OraculoError, ServerUnreachableError

T = TypeVar("T")

API = "/api/v1"
LONG_POLL = 20.0  # seconds that one call waits at the server
RIDE_OUT = 60.0  # seconds of trouble after which a stream that was running gives up
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
        return None if self.body is None else orjson.dumps(self.body)


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
    """Part of a list; `cursor` fetches the next part, None when this was the last."""

    items: list[Object]
    cursor: str | None = None


def part(text: object) -> str:
    """One segment of a path, whatever characters it holds."""
    return quote(str(text), safe="")


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


def backoff(tries: int) -> float:
    return float(min(0.1 * 2 ** min(tries, 10), 2.0))


# -- orchestrations ----------------------------------------------------------------------------------------------------


def submit(request: Mapping[str, Any], idempotency_key: str | None = None) -> Script[Submitted]:
    """Hand in a request; durable when it returns. With a key (or a `correlation_id`) it may be repeated safely."""
    headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
    got: Answer = yield Call("POST", f"{API}/orchestrations", body=dict(request), headers=headers)
    name = got.body["correlation_id"]
    location = got.headers.get("location", f"{API}/orchestrations/{part(name)}")
    return Submitted(name, got.body.get("status", "pendente"), location, got.body)


def result(correlation_id: str, wait: float = 30.0) -> Script[Object | None]:
    """The aggregate when the orchestration has ended; None when it is still running after `wait` seconds. A server that
    goes away meanwhile is waited for as long as `wait` lasts."""
    until = monotonic() + wait
    reached, tries = False, 0
    while True:
        left = max(0.0, until - monotonic())
        asked = min(left, LONG_POLL)
        try:
            got: Answer = yield Call(
                "GET",
                f"{API}/orchestrations/{part(correlation_id)}/result",
                query={"wait": round(asked, 3)},
                patience=asked,
            )
        except OraculoError as error:
            if not reached or left <= 0 or not is_trouble(error):
                raise
            yield Pause(min(backoff(tries), left))
            tries += 1
            continue
        reached, tries = True, 0
        if got.status == 200:
            document: Object = got.body
            return document
        if left <= 0:
            return None


def get(correlation_id: str) -> Script[Object]:
    """The orchestration as it stands: status, tickets, the aggregate so far."""
    got: Answer = yield Call("GET", f"{API}/orchestrations/{part(correlation_id)}")
    document: Object = got.body
    return document


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
    return _page(got.body)


def cancel(correlation_id: str, motivo: str = "") -> Script[Object]:
    """Cancel it and every open ticket. Cancelling what has ended changes nothing."""
    got: Answer = yield Call("POST", f"{API}/orchestrations/{part(correlation_id)}/cancel", body={"motivo": motivo})
    return got.body or {}


def events(correlation_id: str, after: int = 0) -> Script[list[Object]]:
    """The whole journal from event number `after` on."""
    found: list[Object] = []
    while True:
        got: Answer = yield Call("GET", f"{API}/orchestrations/{part(correlation_id)}/events", query={"after": after})
        items = _page(got.body).items
        found += items
        if not items or items[-1]["seq"] <= after or not _page(got.body).cursor:
            return found
        after = items[-1]["seq"]


class EventStream:
    """The reconnecting part of `stream`, for both drivers: where to go on, what to pass on, when it is over."""

    def __init__(self, correlation_id: str, after: int) -> None:
        self.correlation_id = correlation_id
        self.last = after
        self.over = False
        self._began = False
        self._tries = 0
        self._trouble_since: float | None = None

    def call(self) -> Call:
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(self.last)}
        return Call("GET", f"{API}/orchestrations/{part(self.correlation_id)}/stream", headers=headers)

    def take(self, data: str) -> Object | None:
        """The event in `data`, unless it was seen before."""
        if not data:
            return None
        event = orjson.loads(data)
        if not isinstance(event, dict) or not isinstance(event.get("seq"), int):
            return None
        self._began, self._tries, self._trouble_since = True, 0, None
        if event["seq"] <= self.last:
            return None
        self.last = event["seq"]
        self.over = self.over or event.get("evento") == "orchestration_closed"
        return event

    def ended(self) -> Script[None]:
        """The server closed the stream: because all is told, or because it stops."""
        if self.over:
            return
        self._began = True
        try:
            document = yield from get(self.correlation_id)
        except OraculoError as error:
            yield from self.broken(error)
            return
        self.over = document.get("fim") is not None and document.get("versao", 0) <= self.last
        if not self.over:
            yield Pause(backoff(self._tries))
            self._tries += 1

    def broken(self, error: OraculoError) -> Script[None]:
        """Go on after a pause, or raise when it was never there, will never work, or was away for too long."""
        now = monotonic()
        if self._trouble_since is None:
            self._trouble_since = now
        if not self._began or not is_trouble(error) or now - self._trouble_since > RIDE_OUT:
            raise error
        yield Pause(backoff(self._tries))
        self._tries += 1


# -- everything else ---------------------------------------------------------------------------------------------------


def ticket(ticket_id: str) -> Script[Object]:
    got: Answer = yield Call("GET", f"{API}/tickets/{part(ticket_id)}")
    document: Object = got.body
    return document


def workers() -> Script[list[Object]]:
    """Who is consuming what, when last seen, and how much each holds."""
    got: Answer = yield Call("GET", f"{API}/workers")
    return _page(got.body).items


def dead_letters(
    *, fila: str | None = None, motivo: str | None = None, limit: int = 50, cursor: str | None = None
) -> Script[Page]:
    """Messages that could not be handled, newest first."""
    query = _given({"fila": fila, "motivo": motivo, "limit": limit, "cursor": cursor})
    got: Answer = yield Call("GET", f"{API}/dead-letters", query=query)
    return _page(got.body)


def dead_letter(id: int) -> Script[Object]:
    """One of them, with its bytes."""
    got: Answer = yield Call("GET", f"{API}/dead-letters/{part(id)}")
    document: Object = got.body
    return document


def requeue_dead_letter(id: int) -> Script[Object]:
    """Hand the message in again, as it came."""
    got: Answer = yield Call("POST", f"{API}/dead-letters/{part(id)}/requeue")
    return got.body or {}


def discard_dead_letter(id: int) -> Script[None]:
    yield Call("DELETE", f"{API}/dead-letters/{part(id)}")


def task_types() -> Script[Object]:
    """Every task type and what it stands for."""
    got: Answer = yield Call("GET", f"{API}/task-types")
    document: Object = got.body
    return document


def task_type(tipo: str) -> Script[Object]:
    got: Answer = yield Call("GET", f"{API}/task-types/{part(tipo)}")
    document: Object = got.body
    return document


def put_task_type(tipo: str, request: Mapping[str, Any]) -> Script[Object]:
    got: Answer = yield Call("PUT", f"{API}/task-types/{part(tipo)}", body=dict(request))
    return got.body or {}


def remove_task_type(tipo: str) -> Script[None]:
    yield Call("DELETE", f"{API}/task-types/{part(tipo)}")


def health() -> Script[Object]:
    got: Answer = yield Call("GET", "/health")
    document: Object = got.body
    return document


def _given(query: Mapping[str, Any]) -> Object:
    return {name: value for name, value in query.items() if value is not None}


def _instant(at: datetime | str | None) -> str | None:
    return at.isoformat() if isinstance(at, datetime) else at


def _page(body: Any) -> Page:
    if isinstance(body, list):
        return Page(body)
    lists = [value for value in body.values() if isinstance(value, list)]
    return Page(lists[0] if lists else [], body.get("cursor"))
