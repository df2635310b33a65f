"""How a message looks as an entry of a stream.

Ours have the field `mensagem` with the bytes, then `message_id` and `headers` (a JSON object) when there are any. Plain
clients write what they like, and are read leniently:

1. `mensagem`, else the fields of an envelope (`correlation_id`, `tipo_evento`, …) one by one, else `message`, `data`,
   `body` or `payload`, else the only field: that is the message, and other fields are headers;
2. none of these: a JSON object of all fields, so that a refusal shows what came.
"""

from __future__ import annotations

from typing import Any

import orjson

from oraculo.adapters.brokers.redis_streams.connection import pack
from oraculo.ports.broker import Outgoing

BODY = b"mensagem"
MESSAGE_ID = b"message_id"
HEADERS = b"headers"
_COMMON = (
    b"*7\r\n$4\r\nXADD\r\n$%d\r\n%b\r\n$1\r\n*\r\n$8\r\nmensagem\r\n$%d\r\n%b\r\n$10\r\nmessage_id\r\n$%d\r\n%b\r\n"
)
_ALSO = (b"message", b"data", b"body", b"payload")
_ENVELOPE = {b"correlation_id", b"tipo_evento"}


def add(message: Outgoing) -> bytes:
    """The command that appends it, packed. The common shape is written out: a third of the cost."""
    if message.message_id and not message.headers:
        queue, body, message_id = message.queue.encode(), message.body, message.message_id.encode()
        return _COMMON % (len(queue), queue, len(body), body, len(message_id), message_id)
    command: list[bytes | str] = [b"XADD", message.queue, b"*", BODY, message.body]
    if message.message_id:
        command += (MESSAGE_ID, message.message_id)
    if message.headers:
        command += (HEADERS, orjson.dumps(message.headers))
    return pack(tuple(command))


def read(fields: list[bytes]) -> tuple[bytes, dict[str, str]]:
    """The message and its headers. `fields` are names and values in turn."""
    if fields[0] == BODY and (len(fields) == 2 or (len(fields) == 4 and fields[2] == MESSAGE_ID)):
        return fields[1], {}
    named = dict(zip(fields[::2], fields[1::2], strict=True))
    if BODY in named:
        return named.pop(BODY), _headers(named)
    if named.keys() >= _ENVELOPE:
        return _envelope(named), {}
    for name in _ALSO:
        if name in named:
            return named.pop(name), _headers(named)
    if len(named) == 1:
        return next(iter(named.values())), {}
    return orjson.dumps({_text(name): _text(value) for name, value in named.items()}), {}


def _envelope(named: dict[bytes, bytes]) -> bytes:
    """A message whose fields were written as fields of the entry. What is not text in an envelope is parsed."""
    whole: dict[str, Any] = {_text(name): _text(value) for name, value in named.items()}
    for name in ("payload", "tentativa"):
        if name in whole:
            try:
                whole[name] = orjson.loads(whole[name])
            except ValueError:
                continue
    return orjson.dumps(whole)


def _headers(named: dict[bytes, bytes]) -> dict[str, str]:
    headers = {_text(name): _text(value) for name, value in named.items() if name not in (MESSAGE_ID, HEADERS)}
    if HEADERS in named:
        try:
            written = orjson.loads(named[HEADERS])
        except ValueError:
            written = None
        if isinstance(written, dict):
            headers.update({name: value if isinstance(value, str) else str(value) for name, value in written.items()})
        else:
            headers["headers"] = _text(named[HEADERS])
    return headers


def _text(value: bytes) -> str:
    return value.decode(errors="replace")
