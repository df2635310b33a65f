"""AMQP frames on the two paths that every message takes: publish → confirm, and deliver → acknowledge.

The connection is pika's, and pika does all that happens seldom: the handshake, channels, declarations, heartbeats,
returns, messages in many frames. What happens for every message is done here in bulk, because pika spends 27 µs on each
publish and on each delivery: many messages become one write, and a delivery that has arrived whole becomes one call.
Whatever is not recognised goes to pika as it came, so this is a short cut and never another way.

It rests on three of pika's inner names (all as old as pika 1.0): `_on_data_available`, `_adapter_emit_data` and
`_terminate_stream`.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterable
from typing import Any, Protocol

from oraculo.errors import MissingExtraError
from oraculo.ports.broker import Outgoing

try:  # the only module here that imports pika
    import pika as pika
    from pika import spec
    from pika.adapters.asyncio_connection import AsyncioConnection
    from pika.connection import Parameters
    from pika.exceptions import AMQPError as AMQPError
except ImportError:
    raise MissingExtraError("RabbitMQ", "rabbitmq") from None

METHOD, HEADER, BODY, END = spec.FRAME_METHOD, spec.FRAME_HEADER, spec.FRAME_BODY, spec.FRAME_END
DELIVER, ACK, NACK = spec.Basic.Deliver.INDEX, spec.Basic.Ack.INDEX, spec.Basic.Nack.INDEX
BASIC = spec.BasicProperties.INDEX
HAS_HEADERS, HAS_MODE, HAS_ID = (
    spec.BasicProperties.FLAG_HEADERS,
    spec.BasicProperties.FLAG_DELIVERY_MODE,
    spec.BasicProperties.FLAG_MESSAGE_ID,
)
PERSISTENT = 2
REQUEUE = 2  # the second bit of basic.nack; the first is `multiple`
OVERHEAD = spec.FRAME_HEADER_SIZE + spec.FRAME_END_SIZE
SHORT_STRING_MAX_BYTES = 255  # bytes in a short string
HOLD_BACK_MAX_BYTES = 16 * 1024  # an unfinished message up to this size waits here for its end
WRITE_MAX_BYTES = 64 * 1024  # bytes in one write

_frame = struct.Struct(">BHI").unpack_from
_method = struct.Struct(">I").unpack_from
_tag = struct.Struct(">QB").unpack_from
_content = struct.Struct(">BHIHHQH").unpack_from  # frame, class, weight, size of the body, property flags
_head = struct.Struct(">BHIHHQ").pack
_middle = struct.Struct(">BBHI").pack  # the end of one frame and the beginning of the next
_plain = struct.Struct(">HBB").pack  # flags, delivery mode, length of the message id
_settle = struct.Struct(">BHIIQBB").pack
_END = bytes([END])
_NO_ID = struct.pack(">HB", HAS_MODE, PERSISTENT)


class Receiver(Protocol):
    """A channel that wants its messages or confirmations without detour."""

    def delivered(self, tag: int, redelivered: bool, headers: dict[str, str], body: bytes) -> None: ...

    def confirmed(self, tag: int, multiple: bool) -> None: ...


class AmqpTransport(AsyncioConnection):  # type: ignore[misc]
    """`opened` and `closed` are done when it is; `blocked` says why the server takes no messages at the moment."""

    def __init__(self, parameters: Parameters, loop: asyncio.AbstractEventLoop) -> None:
        self.opened: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[Exception] = loop.create_future()
        self.blocked = ""
        self.receivers: dict[int, Receiver] = {}
        self._rest = b""
        super().__init__(parameters, self._is_open, self._is_closed, self._is_closed, loop)
        self.add_on_connection_blocked_callback(self._is_blocked)
        self.add_on_connection_unblocked_callback(self._is_unblocked)

    def emit(self, data: bytes) -> None:
        """Whole frames, written in the order of the calls."""
        self.bytes_sent += len(data)
        self._adapter_emit_data(data)

    def drop(self, error: Exception) -> None:
        """Now, without a word to the server. `closed` follows."""
        if not self.closed.done():
            self._terminate_stream(error)

    @property
    def body_room(self) -> int:
        """Bytes of a body that one frame may carry."""
        room: int = self.params.frame_max - OVERHEAD
        return room

    def _on_data_available(self, data_in: bytes) -> None:
        data = self._rest + data_in if self._rest else data_in
        at, end, taken, receivers = 0, len(data), 0, self.receivers
        while end - at >= OVERHEAD and data[at] != 65:  # "A" of AMQP: the server speaks another protocol
            kind, channel, size = _frame(data, at)
            stop = at + size + OVERHEAD
            if stop > end:
                break
            receiver = receivers.get(channel)
            if receiver is not None and kind == METHOD:
                method = _method(data, at + 7)[0]
                if method == DELIVER:
                    after = _whole(data, stop, end, channel)
                    if after < 0 and end - at < HOLD_BACK_MAX_BYTES:
                        break
                    if after > 0:
                        _deliver(receiver, data, at + 11, stop)
                        taken += after - at
                        at = after
                        continue
                elif method == ACK:
                    receiver.confirmed(*_tag(data, at + 11))
                    taken += stop - at
                    at = stop
                    continue
            super()._on_data_available(data[at:stop])
            at = stop
        self.bytes_received += taken
        if at < end and data[at] == 65:
            super()._on_data_available(data[at:])
            at = end
        self._rest = data[at:]

    def _is_open(self, _connection: Any) -> None:
        if not self.opened.done():
            self.opened.set_result(None)

    def _is_closed(self, _connection: Any, error: Exception) -> None:
        if not self.closed.done():
            self.closed.set_result(error)

    def _is_blocked(self, _connection: Any, frame: Any) -> None:
        self.blocked = str(frame.method.reason) or "no reason given"

    def _is_unblocked(self, _connection: Any, _frame: Any) -> None:
        self.blocked = ""


# -- in ----------------------------------------------------------------------------------------------------------------


def _whole(data: bytes, at: int, end: int, channel: int) -> int:
    """Where the message ends whose header frame begins at `at`; -1 when it has not arrived, 0 when it is not of the
    usual form: a header frame, then at most one body frame, of the same channel."""
    if end - at < 22:
        return -1
    kind, number, size, _, _, length, _ = _content(data, at)
    if kind != HEADER or number != channel:
        return 0
    at += size + OVERHEAD
    if length == 0:
        return at if at <= end else -1
    if end - at < OVERHEAD:
        return -1
    kind, number, size = _frame(data, at)
    if kind != BODY or number != channel or size != length:
        return 0
    at += size + OVERHEAD
    return at if at <= end else -1


def _deliver(receiver: Receiver, data: bytes, at: int, header: int) -> None:
    tag, redelivered = _tag(data, at + 1 + data[at])
    _, _, size, _, _, length, flags = _content(data, header)
    body = header + size + OVERHEAD + 7
    headers = text_of(properties_of(data[header + 19 : header + 7 + size]).headers) if flags & HAS_HEADERS else {}
    receiver.delivered(tag, redelivered & 1 == 1, headers, data[body : body + length])


def properties_of(encoded: bytes) -> Any:
    """Never an error: what a plain client put there is no reason to lose the message."""
    properties = spec.BasicProperties()
    try:
        properties.decode(encoded)
    except Exception:
        return spec.BasicProperties()
    return properties


def text_of(table: dict[Any, Any] | None) -> dict[str, str]:
    """AMQP headers as text; numbers, lists and the like (x-delivery-count, x-death) as Python writes them."""
    return {_text(key): _text(value) for key, value in table.items()} if table else {}


def _text(value: Any) -> str:
    return value if type(value) is str else value.decode("utf-8", "replace") if type(value) is bytes else str(value)


# -- out ---------------------------------------------------------------------------------------------------------------


def publish_frame(channel: int, queue: str) -> bytes:
    """basic.publish to the default exchange, to be returned when there is no such queue."""
    method = b"".join(spec.Basic.Publish(exchange="", routing_key=queue, mandatory=True).encode())
    return struct.pack(">BHII", METHOD, channel, len(method) + 4, spec.Basic.Publish.INDEX) + method + _END


def properties_for(message: Outgoing) -> bytes:
    """Encoded, persistent. ValueError when something in it is longer than AMQP allows."""
    ident = message.message_id.encode()
    if len(ident) > SHORT_STRING_MAX_BYTES:
        raise ValueError(f"the message id has {len(ident)} bytes, more than {SHORT_STRING_MAX_BYTES}")
    if message.headers:
        try:
            return b"".join(
                spec.BasicProperties(
                    headers=message.headers, delivery_mode=PERSISTENT, message_id=message.message_id or None
                ).encode()
            )
        except Exception as error:
            raise ValueError(f"the headers cannot be encoded: {type(error).__name__}") from None
    return _plain(HAS_MODE | HAS_ID, PERSISTENT, len(ident)) + ident if ident else _NO_ID


def content_frames(channel: int, properties: bytes, body: bytes, room: int) -> tuple[bytes, ...]:
    """The header frame and the body frames, in pieces to be joined."""
    size = len(body)
    head = _head(HEADER, channel, 12 + len(properties), BASIC, 0, size)
    if 0 < size <= room:
        return head, properties, _middle(END, BODY, channel, size), body, _END
    pieces = [head, properties]
    for start in range(0, size, room):
        part = body[start : start + room]
        pieces += (_middle(END, BODY, channel, len(part)), part)
    return (*pieces, _END)


def ack_frame(channel: int, tag: int, multiple: bool) -> bytes:
    return _settle(METHOD, channel, 13, ACK, tag, multiple, END)


def nack_frames(channel: int, tags: Iterable[int]) -> bytes:
    """Back into the queue, one by one."""
    return b"".join([_settle(METHOD, channel, 13, NACK, tag, REQUEUE, END) for tag in tags])
