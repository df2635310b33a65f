"""One connection to a NATS server. It is never mended: when it is lost it says so, and another one is made.

nats-py makes the connection (handshake, TLS, credentials), reads from it and sends pings. What costs time per message
is done here in bulk: one write for many commands, and a parser that hands each message to a plain function instead of
a coroutine, a queue and a task (docs/adr/0011 has the figures).

Of nats-py's own members it leans on `_ps`, `_transport`, `_process_info`, `_process_op_err` and `_process_err`.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
from collections.abc import Callable
from typing import Any

import orjson

from oraculo.adapters.brokers.nats_jetstream.url import Options
from oraculo.errors import BrokerUnavailableError, MissingExtraError

try:
    from nats.aio.client import Client
    from nats.errors import Error as NatsError
except ImportError:
    raise MissingExtraError("nats://", "nats") from None

CONNECT_TIMEOUT_S = 3
PING_INTERVAL_S = 2
WRITE_MAX_BYTES = 1024 * 1024
NO_RESPONDERS = b"NATS/1.0 503"
_TOKEN = re.compile(r"[A-Za-z0-9_~-]+")  # one part of a subject
_MSG, _HMSG = ord("M"), ord("H")

# subject, reply, body, headers as they came (None: none)
Sink = Callable[[bytes, bytes, bytes, bytes | None], None]


class ApiError(Exception):
    """JetStream answered a request with an error. `code` is its own number for it."""

    def __init__(self, code: int, description: str) -> None:
        super().__init__(description)
        self.code = code


class _Parser:
    """MSG and HMSG go to the link's sinks; every other line goes to nats-py's own parser."""

    def __init__(self, connection: Connection, lines: Any) -> None:
        self._connection = connection
        self._lines = lines
        self.reset()

    def reset(self) -> None:
        self._lines.reset()
        self._parts: list[bytes] = []
        self._size = 0
        self._needed = 0

    async def parse(self, data: bytes = b"") -> None:
        self._connection.heard += 1
        if self._parts:
            self._parts.append(data)
            self._size += len(data)
            if self._size < self._needed:
                return
            data = b"".join(self._parts)
            self._parts = []
        sinks = self._connection.sinks
        at, size, needed = 0, len(data), 0
        while at < size:
            kind = data[at]
            end = data.find(b"\r\n", at)
            if end < 0:
                break
            if kind != _MSG and kind != _HMSG:
                await self._lines.parse(data[at : end + 2])
                at = end + 2
                continue
            words = data[at:end].split()
            start = end + 2
            stop = start + int(words[-1])
            if stop + 2 > size:
                needed = stop + 2 - at
                break
            at = stop + 2
            sink = sinks.get(words[2])
            if sink is None:
                continue
            if kind == _MSG:
                sink(words[1], words[3] if len(words) == 5 else b"", data[start:stop], None)
            else:
                body = start + int(words[-2])
                sink(words[1], words[3] if len(words) == 6 else b"", data[body:stop], data[start:body])
        if at < size:
            self._parts = [data[at:]]
            self._size, self._needed = size - at, needed


class Connection(Client):  # type: ignore[misc, unused-ignore]
    """`lost` is done, with the reason, when the connection is gone. `heard` grows whenever the server says anything."""

    def __init__(self, options: Options) -> None:
        super().__init__()
        self._ps = _Parser(self, self._ps)  # type: ignore[assignment, unused-ignore]
        self._wanted = options
        self.sinks: dict[bytes, Sink] = {}
        self.heard = 0
        self.server_error = ""
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        # Below its name, so that a user's rights can be bound to its own answers.
        own = f"{options.user}." if options.user and _TOKEN.fullmatch(options.user) else ""
        self.inbox = f"_INBOX.{own}{secrets.token_hex(11)}".encode()
        self._subscriptions = 0
        self._requests: dict[bytes, asyncio.Future[tuple[bytes, bytes | None]]] = {}
        self._request = 0

    async def open(self, server: str) -> None:
        """BrokerUnavailableError says why there is no connection, or no JetStream behind it."""
        options = self._wanted
        try:
            context = None if options.tls is None else options.tls.context()
            async with asyncio.timeout(2 * CONNECT_TIMEOUT_S):
                await self.connect(
                    f"nats://{server}",
                    name="oraculo",
                    user=options.user,
                    password=options.password,
                    token=options.token,
                    tls=context,
                    allow_reconnect=False,
                    max_reconnect_attempts=1,
                    reconnect_time_wait=0,
                    connect_timeout=CONNECT_TIMEOUT_S,
                    ping_interval=PING_INTERVAL_S,
                    max_outstanding_pings=1_000_000,  # the session watches `heard`
                    error_cb=self._on_error,
                )
            self.subscribe_to(self.inbox + b".r.*", self._replied)
            await self.ask("INFO", patience=CONNECT_TIMEOUT_S)
        except (OSError, NatsError, TimeoutError) as error:
            reason = self.server_error or str(error) or type(error).__name__
            await self.drop()
            raise BrokerUnavailableError(f"no connection to {server}: {reason}") from None
        except (ApiError, BrokerUnavailableError) as error:
            await self.drop()
            raise BrokerUnavailableError(f"JetStream does not answer on {server}: {error}") from None
        except BaseException:
            await self.drop()
            raise

    async def drop(self) -> None:
        """Now, whatever is still unsent."""
        self.give_up("dropped")
        transport = self._transport
        writer = getattr(transport, "_io_writer", None)
        if writer is not None:
            writer.transport.abort()
        with contextlib.suppress(Exception):
            async with asyncio.timeout(1):
                await self.close()

    async def flushed(self) -> None:
        """Everything that was sent has reached the server, as far as that can be had within a second."""
        if not self.lost.done():
            with contextlib.suppress(Exception):
                await self.flush(timeout=1)

    # -- sending -----------------------------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        if not self.lost.done():
            self._transport.write(data)  # type: ignore[union-attr, unused-ignore]

    async def send_all(self, parts: list[bytes]) -> None:
        """Waits while the server does not read."""
        if not self.lost.done():
            self._transport.write(b"".join(parts))  # type: ignore[union-attr, unused-ignore]
            with contextlib.suppress(OSError):  # the connection is lost then, and its waiters learn it there
                await self._transport.drain()  # type: ignore[union-attr, unused-ignore]

    def subscribe_to(self, subject: bytes, sink: Sink) -> bytes:
        """The number of the subscription. It ends with the connection."""
        self._subscriptions += 1
        number = b"%d" % self._subscriptions
        self.sinks[number] = sink
        self.send(b"SUB %b %b\r\n" % (subject, number))
        return number

    async def ask(self, what: str, request: Any = None, *, patience: float) -> dict[str, Any]:
        """A request to JetStream's API: its answer, ApiError, or BrokerUnavailableError."""
        self._request += 1
        number = b"%d" % self._request
        future: asyncio.Future[tuple[bytes, bytes | None]] = asyncio.get_running_loop().create_future()
        self._requests[number] = future
        body = b"" if request is None else orjson.dumps(request)
        try:
            self.send(b"PUB $JS.API.%b %b.r.%b %d\r\n%b\r\n" % (what.encode(), self.inbox, number, len(body), body))
            await asyncio.wait((future, self.lost), timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            if not future.done():
                raise BrokerUnavailableError(
                    self.lost.result() if self.lost.done() else self.server_error or "no answer"
                )
            answer, headers = future.result()
        finally:
            del self._requests[number]
        if headers is not None and headers.startswith(NO_RESPONDERS):
            raise BrokerUnavailableError("it is not enabled on this server or for this account")
        found: dict[str, Any] = orjson.loads(answer)
        error = found.get("error")
        if error is not None:
            raise ApiError(error.get("err_code", 0), error.get("description", ""))
        return found

    def _replied(self, subject: bytes, _reply: bytes, body: bytes, headers: bytes | None) -> None:
        future = self._requests.get(subject[len(self.inbox) + 3 :])
        if future is not None and not future.done():
            future.set_result((body, headers))

    # -- what nats-py tells ------------------------------------------------------------------------------------------

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        if initial_connection and self._wanted.tls and not info.get("tls_required"):
            raise NatsError("the server offers no TLS")  # before the password is sent
        await super()._process_info(info, initial_connection)

    async def _process_op_err(self, e: Exception) -> None:
        self.give_up(str(e) or type(e).__name__)

    async def _process_err(self, err_msg: str) -> None:
        self.server_error = err_msg.strip("'")
        if "permissions violation" not in err_msg:
            self.give_up(self.server_error)

    async def _on_error(self, error: Exception) -> None:
        self.server_error = str(error) or type(error).__name__

    def give_up(self, reason: str) -> None:
        if not self.lost.done():
            self.lost.set_result(reason)
