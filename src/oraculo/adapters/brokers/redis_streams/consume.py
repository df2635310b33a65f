"""Reading streams. Nothing is read unless a fetch waits for it.

A queue that is waited for has a task and a borrowed connection, on which the server holds the answer back until there
is something. Whatever arrives goes into the source, never to a caller directly, so a caller that goes away loses
nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Coroutine, Iterable
from typing import Any

from oraculo.adapters.brokers.kit.reconnect import Connector
from oraculo.adapters.brokers.redis_streams.connection import (
    REPLY_TIMEOUT_S,
    Command,
    Connection,
    ConnectionLostError,
    ReplyError,
)
from oraculo.adapters.brokers.redis_streams.publish import SERVER_REPLACED_CODES
from oraculo.adapters.brokers.redis_streams.session import Session
from oraculo.adapters.brokers.redis_streams.source import Source
from oraculo.adapters.brokers.redis_streams.upkeep import IDLE_TIMEOUT_S, Upkeep
from oraculo.adapters.brokers.redis_streams.url import Options
from oraculo.errors import BrokerUnavailableError

BLOCK_S = 2.0  # seconds that the server is asked to wait for messages
ERROR_PAUSE_S = 0.2
LOSS_PAUSE_S = 0.05
LEAVE_TIMEOUT_S = 1.0  # seconds for what is on its way here when we leave


class StreamReader:
    """Reads for the fetches of every queue."""

    def __init__(self, options: Options, connector: Connector[Session], upkeep: Upkeep) -> None:
        self._options = options
        self._connector = connector
        self._upkeep = upkeep
        self._tasks: set[asyncio.Task[None]] = set()

    async def first_attempt(self) -> None:
        """Wait for a connection that is being made; one that is known to be lost is not waited for."""
        if self._connector.closed:
            raise self._connector.unavailable()
        with contextlib.suppress(BrokerUnavailableError):
            await self._connector.get(self._options.confirm_timeout)

    async def arrival(self, source: Source, limit: int, since: float, until: float) -> None:
        """Return when the source has something, or when the time is over."""
        loop = asyncio.get_running_loop()
        while not source.ready and not self._connector.closed:
            if loop.time() >= until:
                self._explain(source, since)
                return
            waiter = source.join(limit, until)
            if source.reader is None:
                source.reader = self._spawn(self._read(source))
            if source.claim_at <= loop.time():
                self._upkeep.hurry()
            timer = loop.call_at(until, waiter.release)
            try:
                await waiter.future
            except asyncio.CancelledError:
                if source.leave(waiter):
                    self._unblock(source)
                source.wake()  # it may have been our turn, and we go away
                raise
            finally:
                timer.cancel()
                source.leave(waiter)

    def _explain(self, source: Source, since: float) -> None:
        """Nothing came: raise the reason, unless it is that there was nothing."""
        if self._connector.down_since <= since:
            raise self._connector.unavailable()
        if source.error:
            raise self._connector.unavailable(f"{source.name}: {source.error}")

    async def _read(self, source: Source) -> None:
        """Read for the fetches that wait, as long as there are any."""
        session, connection, lost = None, None, False
        try:
            while not self._connector.closed and await source.wanted(IDLE_TIMEOUT_S):
                try:
                    found = await self._connector.get(math.inf, math.inf)
                except BrokerUnavailableError:
                    return  # closed
                try:
                    if session is not found:
                        session, connection = found, None
                    if lost:  # perhaps with an answer on it
                        await self._upkeep.keep(session, source, strays=True)
                        lost = False
                    connection = connection or await session.lend()
                    await self._read_once(session, connection, source)
                except ConnectionLostError:
                    connection, lost = None, True
                    await asyncio.sleep(LOSS_PAUSE_S)
        finally:
            source.reader = None
            if session is not None and connection is not None:
                session.give_back(connection)

    async def _read_once(self, session: Session, connection: Connection, source: Source) -> None:
        count, left = source.demand(asyncio.get_running_loop().time())
        if not count:
            return
        block = int(min(left, BLOCK_S) * 1000) + 1
        source.blocked = connection
        try:
            (reply,) = await connection.call([self._read_command(source, count, block)], block / 1000 + REPLY_TIMEOUT_S)
        finally:
            source.blocked = None
        if isinstance(reply, ReplyError):
            if not await self._mend(session, source, reply):
                await asyncio.sleep(ERROR_PAUSE_S)
        else:
            source.arrived(reply[0][1] if reply else (), False)

    def _read_command(self, source: Source, count: int, block: int | None = None) -> Command:
        wait = () if block is None else ("BLOCK", block)
        group = self._options.group
        return ("XREADGROUP", "GROUP", group, source.consumer, "COUNT", count, *wait, "STREAMS", source.name, ">")

    async def _mend(self, session: Session, source: Source, error: ReplyError) -> bool:
        """The server does not let us read. True when the reason was that the stream or the group did not exist."""
        text = str(error)
        if text.startswith(("NOGROUP", "UNBLOCKED")):
            source.forget()
            group = self._options.group
            (made,) = await session.control.call([("XGROUP", "CREATE", source.name, group, "0", "MKSTREAM")])
            if not isinstance(made, ReplyError) or str(made).startswith("BUSYGROUP"):
                return True
            text = str(made)
        if text.startswith(SERVER_REPLACED_CODES):
            session.drop(text)
        source.error = text
        return False

    async def look(self, source: Source, limit: int) -> None:
        """Take what is there now. Nothing is lost if the caller is cancelled."""
        since = asyncio.get_running_loop().time()
        session = await self._connector.get(self._options.confirm_timeout)
        await asyncio.shield(self._spawn(self._read_now(session, source, limit)))
        if not source.ready:
            self._explain(source, since)

    async def _read_now(self, session: Session, source: Source, limit: int) -> None:
        try:
            for _ in range(2):
                (reply,) = await session.control.call(
                    [self._read_command(source, limit)], self._options.confirm_timeout
                )
                if not isinstance(reply, ReplyError):
                    source.arrived(reply[0][1] if reply else (), False)
                    break
                if not await self._mend(session, source, reply):
                    break
            if source.claim_at <= asyncio.get_running_loop().time():
                await self._upkeep.claim(session, [source], limit)
        except ConnectionLostError as error:
            source.error = str(error)

    # -- the end -----------------------------------------------------------------------------------------------------

    async def stop(self, sources: Iterable[Source]) -> bool:
        """End all reading. False if a message may still be on its way here."""
        blocked = set()
        for source in sources:
            if source.blocked is not None and source.reader is not None:
                self._unblock(source)
                blocked.add(source.reader)
        if blocked:
            await asyncio.wait(blocked, timeout=LEAVE_TIMEOUT_S)
        return all(task.done() for task in blocked)

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _unblock(self, source: Source) -> None:
        """Tell the server to end a read that blocks."""
        session = self._connector.current
        if session is not None and source.blocked is not None and source.blocked.client_id is not None:
            session.control.tell(("CLIENT", "UNBLOCK", source.blocked.client_id))

    def _spawn(self, what: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
