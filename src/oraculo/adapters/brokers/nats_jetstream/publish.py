"""Publishing many messages at once: one write, one reply subject for all, confirmations counted as they come."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

import orjson

from oraculo.adapters.brokers.nats_jetstream.connection import NO_RESPONDERS, WRITE_MAX_BYTES, Connection
from oraculo.adapters.brokers.nats_jetstream.streams import NO_ROOM_CODES, REFUSAL_CODES, Stream
from oraculo.ports.broker import Outgoing, Refusal

UNCONFIRMED_MAX_MESSAGES = 2000  # messages on their way at once; a server refuses when too many wait for its disk
_NOT_IN_NAME = re.compile(r"[^!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_BREAKS = str.maketrans({"\r": " ", "\n": " ", "\0": " "})


class Batch:
    """`open` are the numbers of the messages that are not confirmed; `moved` grows with every answer."""

    def __init__(self, messages: Sequence[Outgoing]) -> None:
        self.messages = messages
        self.open: set[int] = set()
        self.without_stream: list[int] = []  # no stream took them
        self.failed: list[int] = []
        self.no_room: list[Outgoing] = []
        self.refused: list[Refusal] = []
        self.reason = ""
        self.moved = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def answered(self, number: int, body: bytes, headers: bytes | None) -> None:
        if number not in self.open:
            return
        self.open.remove(number)
        self.moved += 1
        if not body.startswith(b'{"stream"'):
            self._failed(number, body, headers)
        self._settled()

    def refuse(self, number: int, reason: str) -> None:
        self.refused.append(Refusal(self.messages[number], reason))
        self.open.discard(number)
        self._settled()

    def _settled(self) -> None:
        if not self.open and not self.done.done():
            self.done.set_result(None)

    def _failed(self, number: int, body: bytes, headers: bytes | None) -> None:
        if headers is not None and headers.startswith(NO_RESPONDERS):
            self.without_stream.append(number)
            return
        try:
            error = orjson.loads(body)["error"]
            code, reason = error.get("err_code", 0), error.get("description", "")
        except (ValueError, KeyError, TypeError, AttributeError):
            code, reason = 0, "an answer that is not JetStream's"
        if code in REFUSAL_CODES:
            self.refused.append(Refusal(self.messages[number], reason))
        elif code in NO_ROOM_CODES:
            self.no_room.append(self.messages[number])
            self.reason = reason
        else:
            self.failed.append(number)
            self.reason = reason


class Publisher:
    """The confirmations of one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._batches: dict[bytes, Batch] = {}
        self._count = 0
        self._prefix = connection.inbox + b".a."
        connection.subscribe_to(self._prefix + b">", self._confirmed)

    async def send(self, batch: Batch, numbers: list[int], streams: dict[str, Stream], patience: float) -> None:
        """Until all are answered, or nothing was heard for `patience` seconds, or the connection is lost."""
        for first in range(0, len(numbers), UNCONFIRMED_MAX_MESSAGES):
            if not await self._send(batch, numbers[first : first + UNCONFIRMED_MAX_MESSAGES], streams, patience):
                batch.failed += numbers[first + UNCONFIRMED_MAX_MESSAGES :]
                return

    async def _send(self, batch: Batch, numbers: list[int], streams: dict[str, Stream], patience: float) -> bool:
        self._count += 1
        name = b"%d" % self._count
        batch.open = set(numbers)
        batch.done = asyncio.get_running_loop().create_future()
        self._batches[name] = batch
        try:
            await self._write(batch, numbers, streams, name, patience)
            heard = self._connection.heard
            while not batch.done.done() and not self._connection.lost.done():
                moved = batch.moved
                await asyncio.wait(
                    (batch.done, self._connection.lost), timeout=patience, return_when=asyncio.FIRST_COMPLETED
                )
                if moved == batch.moved and not batch.done.done():
                    if heard == self._connection.heard:
                        self._connection.give_up(f"it said nothing for {patience:g} s")
                    break
                heard = self._connection.heard
        finally:
            del self._batches[name]
            batch.failed += batch.open
            batch.open = set()
        return batch.done.done()

    async def _write(
        self, batch: Batch, numbers: list[int], streams: dict[str, Stream], name: bytes, patience: float
    ) -> None:
        parts: list[bytes] = []
        size = 0
        seen: set[tuple[str, str]] = set()
        messages, reply, most = batch.messages, self._prefix + name, self._connection.max_payload
        for number in numbers:
            message = messages[number]
            queue, body, identity = message.queue, message.body, message.message_id
            if identity:
                if (queue, identity) in seen:
                    identity = ""  # two messages of one call are two messages
                else:
                    seen.add((queue, identity))
                    if not streams[queue].alone:
                        identity = f"{queue}/{identity}"  # ids are told apart per stream, and others live there
            head = write_headers(identity, message.headers) if identity or message.headers else b""
            if len(head) + len(body) > most:
                batch.refuse(number, f"{len(head) + len(body)} bytes are more than the server's max_payload of {most}")
                continue
            if head:
                parts.append(
                    b"HPUB %b %b.%d %d %d\r\n%b%b\r\n"
                    % (queue.encode(), reply, number, len(head), len(head) + len(body), head, body)
                )
            else:
                parts.append(b"PUB %b %b.%d %d\r\n%b\r\n" % (queue.encode(), reply, number, len(body), body))
            size += len(body)
            if size >= WRITE_MAX_BYTES:
                await self._drained(parts, patience)
                parts, size = [], 0
        await self._drained(parts, patience)

    async def _drained(self, parts: list[bytes], patience: float) -> None:
        try:
            async with asyncio.timeout(patience):
                await self._connection.send_all(parts)
        except TimeoutError:
            self._connection.give_up("it does not read what is sent")

    def _confirmed(self, subject: bytes, _reply: bytes, body: bytes, headers: bytes | None) -> None:
        name, _, number = subject[len(self._prefix) :].partition(b".")
        batch = self._batches.get(name)
        if batch is not None:
            batch.answered(int(number), body, headers)


def write_headers(identity: str, headers: dict[str, str] | None) -> bytes:
    """`Nats-` headers are orders to the server: only the message's id may be one."""
    if not headers:
        return b"NATS/1.0\r\nNats-Msg-Id: %b\r\n\r\n" % identity.translate(_BREAKS).encode()
    lines = ["NATS/1.0"]
    if identity:
        lines.append(f"Nats-Msg-Id: {identity.translate(_BREAKS)}")
    for name, value in headers.items():
        clean = _NOT_IN_NAME.sub("-", name)
        if clean and not clean.lower().startswith("nats-"):
            lines.append(f"{clean}: {str(value).translate(_BREAKS)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "replace")
