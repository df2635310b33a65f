"""One connection to a server that is made at first use, and made again whenever it was lost, with growing pauses."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Generic, TypeVar

import structlog

from oraculo.adapters.brokers.kit.inbox import Broadcast
from oraculo.backoff import backoff
from oraculo.errors import BrokerUnavailableError
from oraculo.ports.broker import Health

log = structlog.get_logger("oraculo.broker")

RETRY_FIRST_S, RETRY_MAX_S = 0.1, 2.0
RETRY_JITTER = 0.25
STEADY_S = 5.0  # a connection that lasted so long was a good one: the next pauses are short again

C = TypeVar("C")


def pauses() -> Iterator[float]:
    """Yield the seconds between two attempts, spread so that many processes do not come back at the same moment."""
    for pause in backoff(RETRY_FIRST_S, RETRY_MAX_S):
        yield pause * random.uniform(1 - RETRY_JITTER, 1 + RETRY_JITTER)


class Connector(Generic[C]):
    """Keeps one connection.

    `connect` makes it, or raises one of `faults`; anything else it raises is logged as a fault of the client. `serve`
    runs as long as the connection stands and returns why it ended; it leaves nothing of it behind, also when it is
    cancelled. `alive` says of a connection that it is not lost, though `serve` may not have noticed yet. `title` begins
    every error; `labels` go to the log.
    """

    def __init__(
        self,
        title: str,
        connect: Callable[[], Awaitable[C]],
        serve: Callable[[C], Awaitable[str]],
        *,
        faults: tuple[type[BaseException], ...] = (BrokerUnavailableError, OSError),
        alive: Callable[[C], bool] = lambda _connection: True,
        labels: dict[str, str],
    ) -> None:
        self.error = ""  # why there is no connection; empty while one stands or is being made
        self.closed = False
        self.connections = 0
        self.down_since = 0.0  # when the connection was lost, or asked for first; infinite while one stands
        self._title = title
        self._connect = connect
        self._serve = serve
        self._faults = faults
        self._alive = alive
        self._labels = labels
        self._connection: C | None = None
        self._renewing = False
        self._changed = Broadcast()
        self._task: asyncio.Task[None] | None = None
        self._stop: asyncio.Future[None] | None = None

    @property
    def current(self) -> C | None:
        """The connection that stands, if there is one."""
        return self._connection if self._connection is not None and self._alive(self._connection) else None

    @property
    def used(self) -> bool:
        return self._task is not None

    @property
    def reconnects(self) -> int:
        return max(0, self.connections - 1)

    def health(self) -> Health:
        up = self.current is not None
        return Health(up, "" if up else self.error or "not connected yet", self.reconnects)

    def start(self) -> None:
        """Begin to connect. Every verb that needs the connection does it."""
        if self._task is None and not self.closed:
            loop = asyncio.get_running_loop()
            self.down_since = loop.time()
            self._stop = loop.create_future()
            self._task = loop.create_task(self._run(self._stop))

    async def get(self, being_made: float, known_down: float = 0.0) -> C:
        """The connection; BrokerUnavailableError if there is none after `being_made` seconds, or after `known_down`
        when it is known to be lost."""
        self.start()
        clock = asyncio.get_running_loop().time
        begin = clock()
        while (connection := self.current) is None:
            left = begin + (known_down if self.error else being_made) - clock()
            if left <= 0 or self.closed:
                await asyncio.sleep(0)  # a caller that tries again at once must not keep us from connecting
                raise self.unavailable()
            await self._changed.wait(left)
        return connection

    def unavailable(self, reason: str = "") -> BrokerUnavailableError:
        return BrokerUnavailableError(f"{self._title}: {reason or self.error or 'no connection in time'}")

    def renew(self) -> None:
        """Make the connection again at once; the caller takes the present one down. Verbs wait for the new one."""
        if self._connection is not None:
            self._renewing, self._connection = True, None

    async def close(self, grace: float = 0.0) -> None:
        """End for good. `serve` has `grace` seconds to end by itself, then it is cancelled; verbs that wait get an
        error."""
        self.closed, self.error = True, "closed"
        self._changed.fire()
        if self._task is None or self._stop is None:
            return
        if grace and self._connection is not None:
            await asyncio.wait({self._task}, timeout=grace)
        if not self._stop.done():
            self._stop.set_result(None)
        await asyncio.wait({self._task})

    async def _run(self, stop: asyncio.Future[None]) -> None:
        """Never cancelled, so that nothing that is being taken down is cut short: it is told to stop."""
        clock = asyncio.get_running_loop().time
        attempts = pauses()
        while not self.closed:
            connection = await self._attempt(stop)
            if connection is not None:
                since = clock()
                self._is_up(connection)
                self._is_down(await self._end_of(connection, stop))
                if clock() - since > STEADY_S:
                    attempts = pauses()
                if self._renewing:
                    continue
            if not self.closed:
                await asyncio.wait({stop}, timeout=next(attempts))

    async def _attempt(self, stop: asyncio.Future[None]) -> C | None:
        opening = asyncio.ensure_future(self._connect())
        await _first(opening, stop)
        if opening.cancelled():
            return None
        error = opening.exception()
        if error is None:
            return opening.result()
        self._renewing = False
        self._is_down(str(error) or type(error).__name__, None if isinstance(error, self._faults) else error)
        return None

    async def _end_of(self, connection: C, stop: asyncio.Future[None]) -> str:
        serving = asyncio.ensure_future(self._serve(connection))
        await _first(serving, stop)
        if serving.cancelled():
            return "closed"
        error = serving.exception()
        if error is None:
            return serving.result()
        if not isinstance(error, self._faults):
            log.error("broker connection given up", exc_info=error, **self._labels)
        return str(error) or type(error).__name__

    def _is_up(self, connection: C) -> None:
        self.connections += 1
        if self.error and not self.closed:
            log.info("broker connection is back", **self._labels)
        if not self.closed:
            self._connection, self.error, self._renewing, self.down_since = connection, "", False, math.inf
        self._changed.fire()

    def _is_down(self, reason: str, fault: BaseException | None = None) -> None:
        self._connection = None
        self.down_since = min(self.down_since, asyncio.get_running_loop().time())
        if not self._renewing and not self.closed:
            if not self.error:
                event = "broker connection lost" if self.connections else "broker unreachable"
                log.warning(event, error=reason, exc_info=fault, **self._labels)
            self.error = reason
        self._changed.fire()


async def _first(work: asyncio.Future[C], stop: asyncio.Future[None]) -> None:
    """Wait until the work has ended, or end it when it is time to stop."""
    ends: set[asyncio.Future[Any]] = {work, stop}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if not work.done():
        work.cancel()
        await asyncio.wait({work})
