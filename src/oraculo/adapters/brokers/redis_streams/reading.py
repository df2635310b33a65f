"""Read streams for those who fetch. Nothing is read unless somebody waits for it.

A queue that is waited for has a task and a borrowed connection, on which the server holds the answer back until there
is something. Whatever arrives goes into the source, never to a caller directly, so a caller that goes away loses
nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

from oraculo.adapters.brokers.redis_streams.link import PATIENCE, Command, Link, LinkLostError, ReplyError
from oraculo.adapters.brokers.redis_streams.options import Options
from oraculo.adapters.brokers.redis_streams.publish import ELSEWHERE
from oraculo.adapters.brokers.redis_streams.session import Session
from oraculo.adapters.brokers.redis_streams.source import Source
from oraculo.adapters.brokers.redis_streams.supervisor import Supervisor
from oraculo.adapters.brokers.redis_streams.upkeep import HOARD, Upkeep

BLOCK = 2.0  # seconds that the server is asked to wait for messages
AFTER_ERROR = 0.2
AFTER_LOSS = 0.05
LEAVING = 1.0  # seconds for what is on its way here when we leave


class Reading:
    def __init__(self, options: Options, supervisor: Supervisor, upkeep: Upkeep) -> None:
        self._options = options
        self._supervisor = supervisor
        self._upkeep = upkeep
        self._tasks: set[asyncio.Task[None]] = set()

    async def arrival(self, source: Source, limit: int, since: float, until: float) -> None:
        """Returns when there is something, or when the time is over."""
        loop = asyncio.get_running_loop()
        while not source.ready and not self._supervisor.closed:
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
        """Nothing came. Say why, when it is not because there was nothing."""
        if self._supervisor.cut_off_since(since):
            raise self._supervisor.failure()
        if source.error:
            raise self._supervisor.failure(f"{source.name}: {source.error}")

    async def _read(self, source: Source) -> None:
        """Read for those who wait, as long as somebody does."""
        session, link, lost = None, None, False
        try:
            while not self._supervisor.closed and await source.wanted(HOARD):
                await self._supervisor.up.wait()
                try:
                    if session is not self._supervisor.session:
                        session, link = self._supervisor.session, None
                    if session is None:
                        raise LinkLostError("it was lost just now")
                    if lost:  # perhaps with an answer on it
                        await self._upkeep.keep(session, source, strays=True)
                        lost = False
                    link = link or await session.lend()
                    await self._read_once(session, link, source)
                except LinkLostError:
                    link, lost = None, True
                    await asyncio.sleep(AFTER_LOSS)
        finally:
            source.reader = None
            if session is not None and link is not None:
                session.give_back(link)

    async def _read_once(self, session: Session, link: Link, source: Source) -> None:
        count, left = source.demand(asyncio.get_running_loop().time())
        if not count:
            return
        block = int(min(left, BLOCK) * 1000) + 1
        source.blocked = link
        try:
            (reply,) = await link.call([self._reading(source, count, block)], block / 1000 + PATIENCE)
        finally:
            source.blocked = None
        if isinstance(reply, ReplyError):
            if not await self._mend(session, source, reply):
                await asyncio.sleep(AFTER_ERROR)
        else:
            source.arrived(reply[0][1] if reply else (), False)

    def _reading(self, source: Source, count: int, block: int | None = None) -> Command:
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
        if text.startswith(ELSEWHERE):
            session.drop(text)
        source.error = text
        return False

    async def look(self, source: Source, limit: int) -> None:
        """One look at what is there, which ends well even if the caller goes away."""
        since = asyncio.get_running_loop().time()
        session = await self._supervisor.connected()
        await asyncio.shield(self._spawn(self._read_now(session, source, limit)))
        if not source.ready:
            self._explain(source, since)

    async def _read_now(self, session: Session, source: Source, limit: int) -> None:
        try:
            for _ in range(2):
                (reply,) = await session.control.call([self._reading(source, limit)], self._options.confirm_timeout)
                if not isinstance(reply, ReplyError):
                    source.arrived(reply[0][1] if reply else (), False)
                    break
                if not await self._mend(session, source, reply):
                    break
            if source.claim_at <= asyncio.get_running_loop().time():
                await self._upkeep.claim(session, [source], limit)
        except LinkLostError as error:
            source.error = str(error)

    # -- the end -----------------------------------------------------------------------------------------------------

    async def stop(self, sources: Iterable[Source]) -> bool:
        """No more reading, and nothing is lost on its way here. False when that cannot be said for certain."""
        blocked = set()
        for source in sources:
            if source.blocked is not None and source.reader is not None:
                self._unblock(source)
                blocked.add(source.reader)
        if blocked:
            await asyncio.wait(blocked, timeout=LEAVING)
        return all(task.done() for task in blocked)

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _unblock(self, source: Source) -> None:
        """The server need not wait for us any more, and must not give us anything."""
        if self._supervisor.session is not None and source.blocked is not None and source.blocked.client_id is not None:
            self._supervisor.session.control.tell(("CLIENT", "UNBLOCK", source.blocked.client_id))

    def _spawn(self, what: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
