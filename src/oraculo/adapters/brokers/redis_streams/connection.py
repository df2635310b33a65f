"""One connection to a Redis server: commands go out at once, answers come back in order.

Many callers share it and none waits for the answer of another. A caller that is cancelled leaves the connection
whole; a command is sent once and never again by itself, so nothing is doubled behind the caller's back. hiredis packs
and parses; error answers are values (`ReplyError`), because in a batch each command has its own fate.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, cast

from oraculo.adapters.brokers.redis_streams.url import Options
from oraculo.errors import MissingExtraError

try:
    from hiredis import ProtocolError, Reader, pack_command
    from hiredis import ReplyError as ReplyError
except ImportError:
    raise MissingExtraError("a redis:// broker", "redis") from None

Command = Sequence[bytes | str | int]
pack = cast(Callable[[Command], bytes], pack_command)

REPLY_TIMEOUT_S = 5.0  # seconds for an answer; a server that takes longer is as good as gone
_UNFINISHED = object()


class ConnectionLostError(Exception):
    """The connection is gone; what was sent and not answered may or may not have been done."""


class _Awaited:
    __slots__ = ("future", "into", "left")

    def __init__(self, future: asyncio.Future[list[Any]] | None, into: list[Any], left: int) -> None:
        self.future = future
        self.into = into
        self.left = left


class Connection(asyncio.Protocol):
    """`on_lost` is called once, with the reason. `client_id` is what the server calls this connection, if it says."""

    def __init__(self, on_lost: Callable[[Connection, str], None]) -> None:
        self.client_id: int | None = None
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._reader = Reader(notEnoughData=_UNFINISHED)
        self._awaited: deque[_Awaited] = deque()
        self._room = asyncio.Event()
        self._room.set()
        self._error: str | None = None
        self._transport: asyncio.Transport
        self.closed: asyncio.Future[None] = self._loop.create_future()  # the socket is gone

    @property
    def alive(self) -> bool:
        return self._error is None

    # -- what callers do ---------------------------------------------------------------------------------------------

    def send(self, data: bytes, replies: int, into: list[Any]) -> None:
        """Send packed commands. `into` is filled as their answers come, so that those that came before the connection
        broke are known."""
        self._check()
        self._awaited.append(_Awaited(None, into, replies))
        self._transport.write(data)

    async def answers(self, data: bytes, replies: int) -> list[Any]:
        """Send packed commands and wait for their answers; everything that was sent before has been answered then."""
        self._check()
        future: asyncio.Future[list[Any]] = self._loop.create_future()
        self._awaited.append(_Awaited(future, [], replies))
        self._transport.write(data)
        return await future

    def tell(self, command: Command) -> None:
        """Send a command whose answer is not needed."""
        if self._error is None:
            self.send(pack(command), 1, [])

    async def call(self, commands: Sequence[Command], patience: float = REPLY_TIMEOUT_S) -> list[Any]:
        """One round trip for all of them. The connection is dropped when there is no answer in time."""
        try:
            async with asyncio.timeout(patience):
                return await self.answers(b"".join(map(pack, commands)), len(commands))
        except TimeoutError:
            self.drop(f"no answer within {patience:g} s")
            raise ConnectionLostError(self._error) from None

    async def room(self) -> None:
        """Returns when the server has taken enough of what was sent."""
        await self._room.wait()
        self._check()

    def drop(self, reason: str) -> None:
        """Give it up: everybody who waits is told."""
        if self._error is not None:
            return
        self._error = reason
        self._room.set()
        self._transport.abort()
        for awaited in self._awaited:
            if awaited.future is not None and not awaited.future.done():
                awaited.future.set_exception(ConnectionLostError(reason))
        self._awaited.clear()
        self._on_lost(self, reason)

    def _check(self) -> None:
        if self._error is not None:
            raise ConnectionLostError(self._error)

    # -- asyncio.Protocol --------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._error is not None:
            return
        awaited = self._awaited
        self._reader.feed(data)
        gets = self._reader.gets
        try:
            while (reply := gets()) is not _UNFINISHED:
                first = awaited[0]
                first.into.append(reply)
                first.left -= 1
                if not first.left:
                    awaited.popleft()
                    if first.future is not None and not first.future.done():
                        first.future.set_result(first.into)
        except (ProtocolError, IndexError) as error:
            self.drop(f"the server does not speak the protocol of Redis: {error}")

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def connection_lost(self, error: Exception | None) -> None:
        self.drop(str(error) if error else "the server closed the connection")
        self.closed.set_result(None)


async def connect(options: Options, on_lost: Callable[[Connection, str], None]) -> Connection:
    """A connection that may give commands. OSError or ConnectionLostError when it cannot be had."""
    context = None if options.tls is None else options.tls.context()
    _, connection = await asyncio.get_running_loop().create_connection(
        lambda: Connection(on_lost), options.host, options.port, ssl=context
    )
    try:
        await _introduce(connection, options)
    except BaseException:
        connection.drop("no agreement with the server")
        raise
    return connection


async def _introduce(connection: Connection, options: Options) -> None:
    needed: list[Command] = []
    if options.password:
        needed.append(("AUTH", *([options.user] if options.user else []), options.password))
    if options.db:
        needed.append(("SELECT", options.db))
    needed.append(("PING",))
    replies = await connection.call([*needed, ("CLIENT", "SETNAME", "oraculo"), ("CLIENT", "ID")])
    for reply in replies[: len(needed)]:
        if isinstance(reply, ReplyError):
            raise ConnectionLostError(str(reply))
    connection.client_id = replies[-1] if isinstance(replies[-1], int) else None
