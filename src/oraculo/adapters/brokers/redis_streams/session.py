"""The connections of one broker object while the server can be reached.

`orders` publishes, `control` does everything that is answered at once, and each queue that a fetch waits for borrows a
connection of its own, because waiting (XREADGROUP BLOCK_S) blocks a connection. When `orders` or `control` is lost, the
session is over; a borrowed one is only lost for its queue.
"""

from __future__ import annotations

import asyncio

from oraculo.adapters.brokers.redis_streams.connection import Connection, ConnectionLostError, ReplyError, connect
from oraculo.adapters.brokers.redis_streams.url import Options

CONNECT_TIMEOUT_S = 3.0  # seconds for a connection to be made
VALUE_MAX_BYTES = 512 * 1024 * 1024  # bytes of one value, unless the server says otherwise
IDLE_CONNECTIONS_MAX = 8  # idle connections that are kept for the next who wait


class Session:
    """Made by `open`. `lost` has the reason when it is over."""

    control: Connection
    orders: Connection

    def __init__(self, options: Options) -> None:
        self.options = options
        self.largest = VALUE_MAX_BYTES
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._connections: set[Connection] = set()
        self._spare: list[Connection] = []
        self._closing: set[asyncio.Future[None]] = set()

    @classmethod
    async def open(cls, options: Options) -> Session:
        session = cls(options)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                session.control = await session._connect()
                session.orders = await session._connect()
                await session._ask_largest()
        except TimeoutError:
            await session.close()
            raise ConnectionLostError(f"no connection within {CONNECT_TIMEOUT_S:g} s") from None
        except BaseException:
            await session.close()
            raise
        return session

    async def lend(self) -> Connection:
        """A connection that may block."""
        while self._spare:
            connection = self._spare.pop()
            if connection.alive:
                return connection
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                return await self._connect()
        except TimeoutError:
            raise ConnectionLostError(f"no connection within {CONNECT_TIMEOUT_S:g} s") from None
        except OSError as error:
            raise ConnectionLostError(str(error)) from None

    def give_back(self, connection: Connection) -> None:
        if connection.alive and len(self._spare) < IDLE_CONNECTIONS_MAX and not self.lost.done():
            self._spare.append(connection)
        else:
            connection.drop("not needed")

    def drop(self, reason: str) -> None:
        if not self.lost.done():
            self.lost.set_result(reason)
        for connection in list(self._connections):
            connection.drop(reason)

    async def close(self) -> None:
        """Leaves no socket behind."""
        self.drop("closed")
        if self._closing:
            await asyncio.wait(self._closing)

    async def ping(self) -> None:
        await asyncio.gather(self.control.call([("PING",)]), self.orders.call([("PING",)]))

    async def _connect(self) -> Connection:
        connection = await connect(self.options, self._gone)
        if self.lost.done():
            connection.drop("too late")
            raise ConnectionLostError("the connection was lost")
        self._connections.add(connection)
        return connection

    def _gone(self, connection: Connection, reason: str) -> None:
        self._connections.discard(connection)
        self._closing.add(connection.closed)
        connection.closed.add_done_callback(self._closing.discard)
        if connection in (getattr(self, "control", None), getattr(self, "orders", None)):
            self.drop(reason)

    async def _ask_largest(self) -> None:
        (said,) = await self.control.call([("CONFIG", "GET", "proto-max-bulk-len")])
        if not isinstance(said, ReplyError) and len(said) == 2:
            self.largest = int(said[1])
