"""From an order to a function's arguments, and from what it gave (or how it failed) to the bytes of the answer.

Whatever a function returns, the answer that leaves is one that the orchestrator accepts: what is not JSON, too large or
otherwise unacceptable becomes a failure that says so, at once, instead of a dead letter and a ticket that times out.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from time import time
from typing import Any

import orjson

from oraculo.core.execution_limit import execution_timeout
from oraculo.core.vocabulary import Kind
from oraculo.errors import WireError, WorkError
from oraculo.redaction import redact
from oraculo.wire import mensagem, names, payloads, strict_json
from oraculo.wire.mensagem import Mensagem
from oraculo.worker.typed import TypedParameters, plain, typed_parameters

ARGUMENTS = (
    *("params", "data", "parametros", "dados"),  # the first two are English for the others
    *("correlation_id", "ticket_id", "tentativa", "prazo", "mensagem"),
)
TICKET_ARGUMENTS = ("task_id", "task_type", "description")  # of tickets of Fluxo C only
ANY_TASK_TYPE = "*"
ERROR_TEXT_MAX_LENGTH = 4000
_READ_KEYS = frozenset(("erros", "executador", "ticket_id", "tentativa"))  # of a payload, by the orchestrator
_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS


@dataclass(slots=True)
class WorkerFunction:
    """One registered function, and what it wants to be called with."""

    kind: Kind
    name: str
    function: Callable[..., Any]
    wants: frozenset[str]
    is_async: bool
    typed: TypedParameters | None = None

    @property
    def schema(self) -> dict[str, Any] | None:
        """What its parameters have to be; None when any object will do."""
        return None if self.typed is None else self.typed.schema

    @property
    def queue(self) -> str:
        """The queue that its orders come from."""
        return names.queue_of(self.kind, self.name)

    def of(self, _order: Mensagem) -> WorkerFunction:
        """The function that does an order: this one does all of its queue."""
        return self


@dataclass(slots=True)
class TicketFunctions:
    """The functions for tickets of Fluxo C, which all come on one topic: one for each task type."""

    queue: str
    kind: Kind = Kind.EXECUCAO
    name: str = "fluxo_c"
    schema: None = None  # tickets of Fluxo C are no parameters of a request
    by_task_type: dict[str, WorkerFunction] = field(default_factory=dict)

    def add(self, task_type: str, function: Callable[..., Any]) -> None:
        """Take a function for a type. Raises TypeError when it takes an argument that no ticket has."""
        allowed = (*ARGUMENTS, *TICKET_ARGUMENTS)
        self.by_task_type[task_type] = handler(Kind.EXECUCAO, task_type, function, allowed)

    def of(self, order: Mensagem) -> WorkerFunction:
        """The function that does a ticket. Raises WorkError when there is none for its type."""
        asked = order.extra.get("task_type")
        found = self.by_task_type.get(str(asked)) or self.by_task_type.get(ANY_TASK_TYPE)
        if found is None:
            text = f"this worker has no function for {asked}; it has {', '.join(self.by_task_type)}"
            raise WorkError(text, codigo="tipo_desconhecido")
        return found


Handler = WorkerFunction | TicketFunctions


def handler(
    kind: Kind, name: str, function: Callable[..., Any], allowed: tuple[str, ...] = ARGUMENTS
) -> WorkerFunction:
    """Look at a function once. Raises TypeError when it takes an argument that no order has."""
    wants = frozenset(inspect.signature(function).parameters)
    unknown = wants.difference(allowed)
    if unknown:
        called = getattr(function, "__name__", repr(function))
        raise TypeError(f"{called} takes {sorted(unknown)}; allowed are {', '.join(allowed)}")
    is_async = inspect.iscoroutinefunction(function)
    return WorkerFunction(kind, name, function, wants, is_async, typed_parameters(function))


def arguments(handler: WorkerFunction, order: Mensagem) -> dict[str, Any]:
    """The arguments of one call of the function. Raises WorkError for parameters that are not what it takes."""
    parameters, data = order.payload.get("parametros", {}), order.payload.get("dados", [])
    if handler.typed is not None:
        parameters = handler.typed.read(parameters)
    given: dict[str, Any] = {}
    for name in handler.wants:
        if name == "parametros" or name == "params":
            given[name] = parameters
        elif name == "dados" or name == "data":
            given[name] = data
        else:
            given[name] = _rarely_wanted(name, order)
    return given


def _rarely_wanted(name: str, order: Mensagem) -> Any:
    """An argument that is not what most functions work on."""
    if name == "mensagem":
        return order
    if name in TICKET_ARGUMENTS:
        return order.extra.get(name)
    value = getattr(order, name)  # of those in ARGUMENTS
    return value or 1 if name == "tentativa" else value


def allowed_s(order: Mensagem) -> float | None:
    """The seconds that the work may go on; None when the order does not say by when it wants its answer."""
    if order.prazo is None:
        return None
    given = datetime.fromisoformat(order.prazo) - datetime.fromisoformat(order.timestamp)
    return execution_timeout(given).total_seconds() if given > timedelta() else None


def success(handler: Handler, value: Any) -> dict[str, Any]:
    """The payload of what a function returned."""
    value = plain(value)
    if handler.kind is Kind.COLETA:
        return {"fonte": handler.name, "status": "ok", "dados": value, "erros": []}
    if value is None:
        return {}
    return value if isinstance(value, dict) else {"resultado": value}


def failure(handler: Handler, code: str, text: str, definitive: bool) -> dict[str, Any]:
    """The payload of a failure, its text without secrets."""
    key = "fonte" if handler.kind is Kind.COLETA else "executador"
    text = redact(text).encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
    erro = {"codigo": code, "mensagem": text[:ERROR_TEXT_MAX_LENGTH], "definitivo": definitive}
    return {key: handler.name, "status": "erro", "dados": None, "erros": [erro]}


def error_of(payload: dict[str, Any]) -> str | None:
    """The code of the failure that a payload tells; None when it tells none."""
    if payload.get("status") != "erro" or not payload.get("erros"):
        return None
    return str(payload["erros"][0].get("codigo", "erro"))


Sign = Callable[[bytes], bytes]


def answer(
    handler: Handler,
    order: Mensagem,
    payload: dict[str, Any],
    worker: str = "",
    sign: Sign | None = None,
    took_ms: int | None = None,
) -> bytes:
    """The bytes of the answer; acceptable, whatever `payload` holds. `worker` says who gave it, `sign` signs it,
    `took_ms` is how long the work took."""
    try:
        body = _written(handler, order, payload, worker, sign, took_ms)
        _check(handler, payload, body)
        return body
    except WireError as error:
        why = error.detail
    except (TypeError, ValueError) as error:
        why = f"o resultado não é JSON: {error}"
    return _written(handler, order, failure(handler, "resultado_invalido", why, True), worker, sign, took_ms)


def refused(handler: Handler, raw: bytes, why: str, sign: Sign | None = None) -> bytes:
    """The answer to an order that cannot be read, if it says at least whose it is; nothing otherwise."""
    try:
        order = orjson.loads(raw)
        name, ticket = order["correlation_id"], order["ticket_id"]
        if not isinstance(name, str) or not isinstance(ticket, str):
            return b""
    except (ValueError, TypeError, KeyError):
        return b""
    known = Mensagem(name, handler.kind.order, {}, "", ticket_id=ticket)
    return _written(handler, known, failure(handler, "ordem_invalida", why, True), sign=sign)


def _written(
    handler: Handler,
    order: Mensagem,
    payload: dict[str, Any],
    worker: str = "",
    sign: Sign | None = None,
    took_ms: int | None = None,
) -> bytes:
    envelope: dict[str, Any] = {
        "correlation_id": order.correlation_id,
        "tipo_evento": handler.kind.answer,
        "payload": payload,
        "timestamp": datetime.fromtimestamp(time(), UTC),
        "ticket_id": order.ticket_id,
        "tentativa": order.tentativa,
        "fila": handler.queue,  # who works where is seen by it: the payload of an executor has no name
    }
    if worker:
        envelope["worker"] = worker
    if took_ms is not None:
        envelope["duracao_ms"] = took_ms
    if order.traceparent is not None:
        envelope["traceparent"] = order.traceparent
    if order.token is not None:
        envelope["token"] = order.token
    body = orjson.dumps(envelope, option=_OPTIONS)
    return body if sign is None else sign(body)


def _check(handler: Handler, payload: dict[str, Any], body: bytes) -> None:
    """Raise WireError for an answer that the orchestrator would refuse. The common case is seen from the bytes."""
    if handler.kind is Kind.EXECUCAO and not _READ_KEYS.isdisjoint(payload):
        payloads.answer(mensagem.parse(body), body)
    elif (
        len(body) > strict_json.MAX_BYTES
        or body.count(b"[") + body.count(b"{") > strict_json.MAX_DEPTH
        or b"\\u0000" in body
    ):
        strict_json.loads(body)


def avro_hint(body: bytes) -> str:
    """What to do about a ticket of Fluxo C that is written in Avro, as its first byte says."""
    return "; Avro: workers of Oráculo read tickets in JSON, KAFKA_MESSAGE_FORMAT=json" if body[:1] == b"\0" else ""


def trace_fields(order: Mensagem) -> dict[str, str]:
    """The ids of the trace that an order belongs to, as log fields."""
    context = order.traceparent or ""
    return {"trace.id": context[3:35], "span.id": context[36:52]} if len(context) >= 55 else {}
