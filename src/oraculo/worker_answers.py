"""From an order to a function's arguments, and from what it gave (or how it failed) to the bytes of the answer.

Whatever a function returns, the answer that leaves is one that the orchestrator accepts: what is not JSON, too large or
otherwise unacceptable becomes a failure that says so, at once, instead of a dead letter and a ticket that times out.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import time
from typing import Any

import orjson

from oraculo.core.ticket import execution_timeout
from oraculo.core.vocabulary import Kind
from oraculo.errors import WireError
from oraculo.redaction import redact
from oraculo.wire import mensagem, payloads, strict_json
from oraculo.wire.mensagem import Mensagem

ALLOWED = ("parametros", "dados", "correlation_id", "ticket_id", "tentativa", "prazo", "mensagem")
_MEANING = frozenset(("erros", "executador", "ticket_id", "tentativa"))  # keys of a payload that the orchestrator reads
_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS


@dataclass(slots=True)
class Handler:
    kind: Kind
    name: str
    function: Callable[..., Any]
    wants: frozenset[str]
    is_async: bool


def handler(kind: Kind, name: str, function: Callable[..., Any]) -> Handler:
    wants = frozenset(inspect.signature(function).parameters)
    unknown = wants.difference(ALLOWED)
    if unknown:
        called = getattr(function, "__name__", repr(function))
        raise TypeError(f"{called} takes {sorted(unknown)}; allowed are {', '.join(ALLOWED)}")
    return Handler(kind, name, function, wants, inspect.iscoroutinefunction(function))


def arguments(handler: Handler, order: Mensagem) -> dict[str, Any]:
    given: dict[str, Any] = {
        "parametros": order.payload.get("parametros", {}),
        "dados": order.payload.get("dados", []),
        "correlation_id": order.correlation_id,
        "ticket_id": order.ticket_id,
        "tentativa": order.tentativa or 1,
        "prazo": order.prazo,
        "mensagem": order,
    }
    return {name: given[name] for name in handler.wants}


def allowed_s(order: Mensagem) -> float | None:
    """How long the work may go on; None when the order does not say by when it wants its answer."""
    if order.prazo is None:
        return None
    given = datetime.fromisoformat(order.prazo) - datetime.fromisoformat(order.timestamp)
    return execution_timeout(given).total_seconds() if given > timedelta() else None


def success(handler: Handler, value: Any) -> dict[str, Any]:
    """The payload of what a function returned."""
    if handler.kind is Kind.COLETA:
        return {"fonte": handler.name, "status": "ok", "dados": value, "erros": []}
    if value is None:
        return {}
    return value if isinstance(value, dict) else {"resultado": value}


def failure(handler: Handler, code: str, text: str, definitive: bool) -> dict[str, Any]:
    key = "fonte" if handler.kind is Kind.COLETA else "executador"
    text = redact(text).encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
    erro = {"codigo": code, "mensagem": text[:4000], "definitivo": definitive}
    return {key: handler.name, "status": "erro", "dados": None, "erros": [erro]}


def error_of(payload: dict[str, Any]) -> str | None:
    """The code of the failure that a payload tells; None when it tells none."""
    if payload.get("status") != "erro" or not payload.get("erros"):
        return None
    return str(payload["erros"][0].get("codigo", "erro"))


def answer(handler: Handler, order: Mensagem, payload: dict[str, Any], worker: str = "") -> bytes:
    """The bytes of the answer; acceptable, whatever `payload` holds. `worker` says who gave it."""
    try:
        body = _written(handler, order, payload, worker)
        _check(handler, payload, body)
        return body
    except WireError as error:
        why = error.detail
    except (TypeError, ValueError) as error:
        why = f"o resultado não é JSON: {error}"
    return _written(handler, order, failure(handler, "resultado_invalido", why, True), worker)


def refused(handler: Handler, raw: bytes, why: str) -> bytes:
    """The answer to an order that cannot be read, if it says at least whose it is; nothing otherwise."""
    try:
        order = orjson.loads(raw)
        name, ticket = order["correlation_id"], order["ticket_id"]
        if not isinstance(name, str) or not isinstance(ticket, str):
            return b""
    except (ValueError, TypeError, KeyError):
        return b""
    known = Mensagem(name, handler.kind.order, {}, "", ticket_id=ticket)
    return _written(handler, known, failure(handler, "ordem_invalida", why, True))


def _written(handler: Handler, order: Mensagem, payload: dict[str, Any], worker: str = "") -> bytes:
    envelope: dict[str, Any] = {
        "correlation_id": order.correlation_id,
        "tipo_evento": handler.kind.answer,
        "payload": payload,
        "timestamp": datetime.fromtimestamp(time(), UTC),
        "ticket_id": order.ticket_id,
        "tentativa": order.tentativa,
    }
    if worker:
        envelope["worker"] = worker
    if order.traceparent is not None:
        envelope["traceparent"] = order.traceparent
    if order.token is not None:
        envelope["token"] = order.token
    return orjson.dumps(envelope, option=_OPTIONS)


def _check(handler: Handler, payload: dict[str, Any], body: bytes) -> None:
    """What the orchestrator would refuse is refused here. The common case is told by looking at the bytes."""
    if handler.kind is Kind.EXECUCAO and not _MEANING.isdisjoint(payload):
        payloads.answer(mensagem.parse(body), body)
    elif (
        len(body) > strict_json.MAX_BYTES
        or body.count(b"[") + body.count(b"{") > strict_json.MAX_DEPTH
        or b"\\u0000" in body
    ):
        strict_json.loads(body)
