"""Keeps a session with the server, for ever: connects, watches, connects again."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
from collections.abc import Awaitable, Callable

import structlog

from oraculo.adapters.brokers.redis_streams.link import LinkLostError
from oraculo.adapters.brokers.redis_streams.options import Options
from oraculo.adapters.brokers.redis_streams.session import Session
from oraculo.adapters.brokers.redis_streams.upkeep import Upkeep
from oraculo.errors import BrokerUnavailableError
from oraculo.ports.broker import Health

log = structlog.get_logger("oraculo.broker")

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0  # seconds between two attempts to connect
STEADY = 5.0  # a connection that lasted so long was a good one
GRACE = 2.0  # seconds that closing may take


class Supervisor:
    """`up` is set while there is a session. `leave` is called with it before it is closed for good."""

    def __init__(self, options: Options, upkeep: Upkeep, leave: Callable[[Session], Awaitable[None]]) -> None:
        self.up = asyncio.Event()
        self.closed = False
        self._session: Session | None = None
        self._options = options
        self._upkeep = upkeep
        self._leave = leave
        self._task: asyncio.Task[None] | None = None
        self._tried = asyncio.Event()  # the attempt to connect that was going on has ended
        self._hurry = asyncio.Event()
        self._error = "not connected yet"
        self._cut_since = math.inf
        self._sessions = 0
        self._told = False  # that the connection is lost

    @property
    def session(self) -> Session | None:
        """The one that stands, if any."""
        return None if self._session is None or self._session.lost.done() else self._session

    def begin(self) -> None:
        if self.closed:
            raise self.failure("closed")
        if self._task is None:
            self._cut_since = asyncio.get_running_loop().time()
            self._task = asyncio.create_task(self._run())

    async def connected(self) -> Session:
        """The session. The first connection is waited for; one that is known to be lost is not."""
        await self.tried()
        session = self.session
        if session is None:
            raise self.failure()
        return session

    async def tried(self) -> None:
        """Wait for the attempt to connect that goes on, if it is the first."""
        self.begin()
        if self._session is None and not self._tried.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._options.confirm_timeout):
                    await self._tried.wait()

    def cut_off_since(self, moment: float) -> bool:
        return (self._cut_since if self._session is None else self._session.lost_at) <= moment

    def failure(self, why: str = "") -> BrokerUnavailableError:
        return BrokerUnavailableError(f"redis {self._options.where}: {why or self._reason()}")

    def health(self) -> Health:
        connected = self.session is not None
        return Health(connected, "" if connected else self._reason(), max(0, self._sessions - 1))

    def _reason(self) -> str:
        lost = self._session is not None and self._session.lost.done()
        return self._session.lost.result() if lost and self._session is not None else self._error

    async def reset(self) -> None:
        self.begin()
        self._tried.clear()
        if self._session is not None:
            self._session.drop("a new connection was asked for")
            self._session = None
        self._hurry.set()
        await self.tried()

    async def close(self) -> None:
        self.closed = self._upkeep.stopped = True
        self._upkeep.hurry()
        if self._task is None:
            return
        if self.session is not None:
            await asyncio.wait({self._task}, timeout=GRACE)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        pause = FIRST_PAUSE
        while not self.closed:
            began = clock()
            session = await self._open()
            self._tried.set()
            if session is not None:
                await self._serve(session)
                if clock() - began > STEADY:
                    pause = FIRST_PAUSE
            if not self.closed:
                await self._rest(pause)
                pause = min(LONGEST_PAUSE, pause * 2)

    async def _open(self) -> Session | None:
        """One attempt."""
        session = None
        try:
            session = await Session.open(self._options)
            await self._upkeep.start(session)
            self._reached(session)
            return session
        except (OSError, LinkLostError) as error:
            self._unreachable(str(error) or type(error).__name__)
        except Exception as error:
            log.exception("a broker cannot be used", broker=self._options.where)
            self._unreachable(str(error))
        if session is not None:
            await session.close()
        return None

    async def _serve(self, session: Session) -> None:
        """Until the session is over."""
        try:
            await self._upkeep.run(session)
            if self.closed and not session.lost.done():
                await self._leave(session)
        except LinkLostError:
            pass  # session.lost says why
        except Exception:
            log.exception("the upkeep of a broker failed", broker=self._options.where)
        finally:
            await session.close()
            self._session = None
            self._cut_since = session.lost_at
            self.up.clear()
            if not self.closed:
                self._unreachable(session.lost.result())

    def _reached(self, session: Session) -> None:
        if self._told:
            log.info("broker connection is back", broker=self._options.where)
            self._told = False
        self._session = session
        self._sessions += 1
        self.up.set()

    def _unreachable(self, reason: str) -> None:
        self._error = reason
        if not self._told:
            log.warning("broker connection lost", broker=self._options.where, reason=reason)
            self._told = True

    async def _rest(self, pause: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause * random.uniform(0.75, 1.25)):
                await self._hurry.wait()
        self._hurry.clear()
