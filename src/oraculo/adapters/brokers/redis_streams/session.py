"""The connections of one broker object while the server can be reached.

`orders` publishes, `control` does everything that is answered at once, and each queue that somebody waits for borrows a
connection of its own, because waiting (XREADGROUP BLOCK) blocks a connection. When `orders` or `control` is lost, the
session is over; a borrowed one is only lost for its queue.
"""

from __future__ import annotations

import asyncio
import math

from oraculo.adapters.brokers.redis_streams.link import Link, LinkLostError, ReplyError, connect
from oraculo.adapters.brokers.redis_streams.options import Options

CONNECT = 3.0  # seconds for a connection to be made
LARGEST = 512 * 1024 * 1024  # bytes of one value, unless the server says otherwise
SPARE = 8  # idle connections that are kept for the next who wait


class Session:
    """Made by `open`. `lost` has the reason when it is over."""

    control: Link
    orders: Link

    def __init__(self, options: Options) -> None:
        self.options = options
        self.largest = LARGEST
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.lost_at = math.inf
        self._links: set[Link] = set()
        self._spare: list[Link] = []
        self._closing: set[asyncio.Future[None]] = set()

    @classmethod
    async def open(cls, options: Options) -> Session:
        session = cls(options)
        try:
            async with asyncio.timeout(CONNECT):
                session.control = await session._connect()
                session.orders = await session._connect()
                await session._ask_largest()
        except TimeoutError:
            await session.close()
            raise LinkLostError(f"no connection within {CONNECT:g} s") from None
        except BaseException:
            await session.close()
            raise
        return session

    async def lend(self) -> Link:
        """A connection that may block."""
        while self._spare:
            link = self._spare.pop()
            if link.alive:
                return link
        try:
            async with asyncio.timeout(CONNECT):
                return await self._connect()
        except TimeoutError:
            raise LinkLostError(f"no connection within {CONNECT:g} s") from None
        except OSError as error:
            raise LinkLostError(str(error)) from None

    def give_back(self, link: Link) -> None:
        if link.alive and len(self._spare) < SPARE and not self.lost.done():
            self._spare.append(link)
        else:
            link.drop("not needed")

    def drop(self, reason: str) -> None:
        if not self.lost.done():
            self.lost.set_result(reason)
            self.lost_at = asyncio.get_running_loop().time()
        for link in list(self._links):
            link.drop(reason)

    async def close(self) -> None:
        """Leaves no socket behind."""
        self.drop("closed")
        if self._closing:
            await asyncio.wait(self._closing)

    async def ping(self) -> None:
        await asyncio.gather(self.control.call([("PING",)]), self.orders.call([("PING",)]))

    async def _connect(self) -> Link:
        link = await connect(self.options, self._gone)
        if self.lost.done():
            link.drop("too late")
            raise LinkLostError("the connection was lost")
        self._links.add(link)
        return link

    def _gone(self, link: Link, reason: str) -> None:
        self._links.discard(link)
        self._closing.add(link.closed)
        link.closed.add_done_callback(self._closing.discard)
        if link in (getattr(self, "control", None), getattr(self, "orders", None)):
            self.drop(reason)

    async def _ask_largest(self) -> None:
        (said,) = await self.control.call([("CONFIG", "GET", "proto-max-bulk-len")])
        if not isinstance(said, ReplyError) and len(said) == 2:
            self.largest = int(said[1])
