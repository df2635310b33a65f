"""The envelope: four required fields, a few optional ones, everything else kept and ignored.

`parse` is the only way in for bytes from the outside. `schemas/mensagem_schema.json` says the same in JSON Schema, and
a test holds the two together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from oraculo.core.vocabulary import TipoEvento
from oraculo.errors import WireError
from oraculo.wire import strict_json

MAX_ID = 128
MAX_ATTEMPT = 2**31
ORDER_MAX_BYTES = 64 * 1024 * 1024
_HOUR_MINUTE = r"(?:[01]\d|2[0-3]):[0-5]\d"
_ISO_8601 = re.compile(rf"\d{{4}}-\d\d-\d\dT{_HOUR_MINUTE}:[0-5]\d(?:\.\d{{1,9}})?(?:Z|[+-]{_HOUR_MINUTE})", re.ASCII)
_EVENTS = {event.value: event for event in TipoEvento}
_OPTIONAL_TEXT = frozenset(("message_id", "ticket_id", "prazo", "fila_resposta", "traceparent", "token"))
_latest = {"timestamp": "", "prazo": ""}  # the last of each that was found right: orders of one batch share theirs
REQUIRED = ("correlation_id", "tipo_evento", "payload", "timestamp")
_REQUIRED = frozenset(REQUIRED)


@dataclass(slots=True)
class Mensagem:
    correlation_id: str
    tipo_evento: TipoEvento
    payload: dict[str, Any]
    timestamp: str
    message_id: str | None = None
    ticket_id: str | None = None
    tentativa: int | None = None
    prazo: str | None = None
    fila_resposta: str | None = None
    traceparent: str | None = None
    token: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)


def parse(raw: bytes, *, max_bytes: int = strict_json.MAX_BYTES) -> Mensagem:
    """Bytes → message, or WireError whose code is the reason for the dead letter."""
    return from_value(strict_json.loads(raw, max_bytes=max_bytes))


def parse_order(raw: bytes) -> Mensagem:
    """Bytes that an orchestrator wrote → message. An order carries what others collected, so it may be larger and
    deeper than anything that we take from outside; what is in it was checked when it came in."""
    if len(raw) > ORDER_MAX_BYTES:
        raise WireError("too_large", f"{len(raw)} bytes; at most {ORDER_MAX_BYTES} are allowed")
    return from_value(strict_json.loads_trusted(raw))


def from_value(value: Any) -> Mensagem:
    if not isinstance(value, dict):
        raise WireError("not_an_object", f"a message is a JSON object, not {_name(value)}")
    try:
        correlation_id, tipo_evento = value["correlation_id"], value["tipo_evento"]
        payload, timestamp = value["payload"], value["timestamp"]
    except KeyError:
        missing = [name for name in REQUIRED if name not in value]
        raise WireError(
            "missing_field", f"missing: {', '.join(missing)}", [_where(name, "required") for name in missing]
        ) from None
    if not isinstance(correlation_id, str) or not 1 <= len(correlation_id) <= MAX_ID:
        raise _invalid("correlation_id", correlation_id, f"a string of 1 to {MAX_ID} characters")
    event = _EVENTS.get(tipo_evento) if isinstance(tipo_evento, str) else None
    if event is None:
        allowed = ", ".join(_EVENTS)
        raise WireError(
            "unknown_event",
            f"tipo_evento {_show(tipo_evento)}; allowed: {allowed}",
            [_where("tipo_evento", f"allowed: {allowed}")],
        )
    if not isinstance(payload, dict):
        raise _invalid("payload", payload, "an object")
    if timestamp != _latest["timestamp"]:
        check_timestamp("timestamp", timestamp)
    message = Mensagem(correlation_id, event, payload, timestamp)
    if len(value) > 4:
        _optional(message, value)
    return message


def _optional(message: Mensagem, value: dict[str, Any]) -> None:
    for name, item in value.items():
        if name in _REQUIRED or item is None:
            continue
        if name == "ticket_id" and type(item) is str:
            message.ticket_id = item
        elif name == "tentativa":
            message.tentativa = item if type(item) is int and 1 <= item <= MAX_ATTEMPT else check_attempt(name, item)
        elif name in _OPTIONAL_TEXT:
            if not isinstance(item, str):
                raise _invalid(name, item, "a string")
            setattr(message, name, item)
        else:
            message.extra[name] = item
    if message.prazo is not None and message.prazo != _latest["prazo"]:
        check_timestamp("prazo", message.prazo)


def check_attempt(name: str, item: Any) -> int:
    """A whole number from 1; `1.0` is one too, as in JSON Schema: some languages write every number like that."""
    whole = int(item) if isinstance(item, float) and item.is_integer() else item
    if isinstance(whole, bool) or not isinstance(whole, int) or not 1 <= whole <= MAX_ATTEMPT:
        raise _invalid(name, item, "an integer from 1")
    return whole


def check_timestamp(name: str, item: Any) -> None:
    if isinstance(item, str) and _ISO_8601.fullmatch(item):
        try:
            datetime.fromisoformat(item)
            _latest[name] = item
            return
        except ValueError:
            pass
    raise _invalid(name, item, "ISO 8601 with a zone, like 2025-10-14T12:00:00Z")


def _invalid(name: str, item: Any, allowed: str) -> WireError:
    return WireError(
        "invalid_field", f"{name} is {_show(item)}; allowed: {allowed}", [_where(name, f"allowed: {allowed}")]
    )


def _where(name: str, what: str) -> dict[str, str]:
    return {"campo": name, "mensagem": what}


def _name(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")


def _show(item: Any) -> str:
    try:
        text = strict_json.dumps(item).decode("utf-8", "replace")
    except TypeError:  # too deep to write
        return _name(item)
    return text if len(text) <= 80 else f"{text[:77]}..."
