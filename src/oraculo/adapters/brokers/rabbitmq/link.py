"""One connection that is made at first use and made again, for ever, whenever it was lost; and channels on it.

There are two of these in a broker: the server stops reading from a connection that publishes when it runs out of memory
or disk, and acknowledgements must not be stuck behind that.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable
from typing import Any

import structlog

from oraculo.adapters.brokers.rabbitmq.url import Options
from oraculo.adapters.brokers.rabbitmq.wire import AMQPError, Wire, pika
from oraculo.errors import BrokerUnavailableError

log = structlog.get_logger("oraculo.broker")

RETRY_FIRST, RETRY_MOST = 0.1, 2.0
CONNECT = 3.0  # seconds for a whole handshake
TICK = 1.0  # how often silence is counted
GOODBYE = 0.5  # seconds that a polite end may take


class ChannelGoneError(BrokerUnavailableError):
    """The channel was closed; `code` is the server's (404: no such queue), 0 when the connection is gone."""

    def __init__(self, detail: str, code: int = 0) -> None:
        super().__init__(detail)
        self.code = code


class Pulse:
    """Wakes everybody who waits now."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def fire(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, seconds: float) -> None:
        """Returns when it fires or the time is over."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await asyncio.wait({waiter}, timeout=max(0.0, seconds))
        finally:
            if waiter in self._waiting:
                self._waiting.remove(waiter)


class Link:
    """`purpose` tells the two apart in logs and in the server's list of connections."""

    def __init__(self, options: Options, purpose: str) -> None:
        self.options = options
        self.error = ""
        self.reconnects = 0
        self._purpose = purpose
        self._wire: Wire | None = None
        self._first = True  # an attempt that is worth waiting for is under way
        self._again = False  # the end was asked for: no pause
        self._ever = False
        self._closed = False
        self._task: asyncio.Task[None] | None = None
        self._changed = Pulse()

    @property
    def used(self) -> bool:
        return self._task is not None

    @property
    def up(self) -> bool:
        return self._wire is not None

    async def wire(self, seconds: float, *, patient: bool = False) -> Wire:
        """The open connection. One that is made for the first time is waited for; one that is known to be down only by
        the patient."""
        self._start()
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while not (wire := self._wire):
            left = until - loop.time()
            if left <= 0 or self._closed or not (patient or self._first):
                raise BrokerUnavailableError(f"RabbitMQ at {self.options.place}: {self.error or 'no answer yet'}")
            await self._changed.wait(left)
        return wire

    async def reset(self) -> None:
        """Returns when it is there again, or when that takes too long."""
        wire, self._wire = self._wire, None
        if wire is None:
            return
        self._first = self._again = True
        await _hang_up(wire)
        with contextlib.suppress(BrokerUnavailableError):
            await self.wire(self.options.confirm_timeout)

    async def close(self) -> None:
        self._closed, self.error = True, "closed"
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        wire, self._wire, self._task = self._wire, None, None
        self._changed.fire()
        if wire is not None:
            await _hang_up(wire)

    # -- the supervisor ----------------------------------------------------------------------------------------------

    def _start(self) -> None:
        if self._task is None and not self._closed:
            self._task = asyncio.create_task(self._supervise())

    async def _supervise(self) -> None:
        pause = RETRY_FIRST
        while True:
            try:
                wire = await self._connect()
            except BrokerUnavailableError as error:
                self._is_down(str(error))
            else:
                pause = RETRY_FIRST
                self._is_up(wire)
                self._is_down(await self._watch(wire))
                if self._again:
                    continue
            await asyncio.sleep(pause * random.uniform(0.75, 1.25))
            pause = min(pause * 2, RETRY_MOST)

    async def _connect(self) -> Wire:
        wire = Wire(self._parameters(), asyncio.get_running_loop())
        try:
            ends: set[asyncio.Future[Any]] = {wire.opened, wire.closed}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            wire.drop(AMQPError("no longer wanted"))
            await asyncio.wait({wire.closed}, timeout=GOODBYE)
            raise
        if wire.closed.done():
            raise BrokerUnavailableError(reason_of(wire.closed.result()))
        return wire

    async def _watch(self, wire: Wire) -> str:
        """Until it is closed. The server sends heartbeats twice in the time given: silence for that long is the end."""
        silent, seen = 0.0, -1
        while not wire.closed.done():
            await asyncio.wait({wire.closed}, timeout=TICK)
            silent = silent + TICK if wire.bytes_received == seen else 0.0
            seen = wire.bytes_received
            if silent >= self.options.heartbeat:
                wire.drop(AMQPError(f"silent for {self.options.heartbeat} s"))
        return reason_of(wire.closed.result())

    def _is_up(self, wire: Wire) -> None:
        if self._ever:
            self.reconnects += 1
        if self.error:
            log.info("broker connection is back", broker="amqp", place=self.options.place, purpose=self._purpose)
        self._wire, self.error, self._ever, self._first, self._again = wire, "", True, False, False
        self._changed.fire()

    def _is_down(self, reason: str) -> None:
        if not self.error and not self._again:
            log.warning(
                "broker connection lost", broker="amqp", place=self.options.place, purpose=self._purpose, error=reason
            )
        self._wire, self.error, self._first = None, "" if self._again else reason, self._again
        self._changed.fire()

    def _parameters(self) -> Any:
        options = self.options
        context = options.context()
        logger = logging.getLogger("pika")
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.CRITICAL)  # it reports one lost connection in a dozen lines
        return pika.ConnectionParameters(
            host=options.host,
            port=options.port,
            virtual_host=options.vhost,
            credentials=pika.PlainCredentials(options.user, options.password),
            heartbeat=options.heartbeat,
            ssl_options=None if context is None else pika.SSLOptions(context, options.host),
            socket_timeout=CONNECT,
            stack_timeout=CONNECT,
            connection_attempts=1,
            client_properties={"connection_name": f"oraculo {self._purpose}"},
        )


class Lane:
    """A channel: what pika leaves to callbacks can be awaited, and `lost` is called once when it is gone."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.alive = False
        self.gone = ChannelGoneError("the channel is not open")
        self.channel: Any = None
        self.number = 0
        self._answers: set[asyncio.Future[Any]] = set()

    async def open(self, seconds: float) -> None:
        with _translated():
            answer = self._answer()
            self.channel = self.wire.channel(on_open_callback=lambda _: self._opened(answer))
        self.number = int(self.channel.channel_number)
        self.channel.add_on_close_callback(self._closed)
        await self._wait(answer, seconds)

    async def call(self, method: Callable[..., Any], *args: Any, seconds: float, **kwargs: Any) -> Any:
        """One of the channel's methods with `callback=`; gives the server's answer."""
        answer = self._answer()
        with _translated():
            method(*args, callback=lambda frame: _resolve(answer, frame), **kwargs)
        return await self._wait(answer, seconds)

    def close(self) -> None:
        """Whatever it holds goes back to the server."""
        if self.alive:
            self.channel.close()

    def lost(self) -> None:
        """For subclasses."""

    def _answer(self) -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._answers.add(answer)
        return answer

    async def _wait(self, answer: asyncio.Future[Any], seconds: float) -> Any:
        try:
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError:
            raise BrokerUnavailableError(f"RabbitMQ did not answer within {seconds:g} s") from None
        finally:
            self._answers.discard(answer)

    def _opened(self, answer: asyncio.Future[Any]) -> None:
        self.alive = True
        _resolve(answer, None)

    def _closed(self, _channel: Any, reason: Exception) -> None:
        self.alive = False
        self.gone = ChannelGoneError(reason_of(reason), getattr(reason, "reply_code", 0))
        self.wire.receivers.pop(self.number, None)
        for answer in self._answers:
            if not answer.done():
                answer.set_exception(self.gone)
        self.lost()


class _translated:
    """pika's errors become ours."""

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> None:
        if isinstance(error, AMQPError):
            raise ChannelGoneError(reason_of(error)) from None


def reason_of(error: BaseException) -> str:
    """What happened, in a few words: pika wraps the cause several times."""
    inner = getattr(error, "exceptions", None) or [getattr(error, "exception", None)]
    if isinstance(inner[-1], BaseException):
        return reason_of(inner[-1])
    if error.args and isinstance(error.args[0], BaseException):
        return reason_of(error.args[0])
    text = getattr(error, "reply_text", "") or str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _resolve(answer: asyncio.Future[Any], value: Any) -> None:
    if not answer.done():
        answer.set_result(value)


async def _hang_up(wire: Wire) -> None:
    """Politely, so that acknowledgements on their way arrive; but not for long."""
    if wire.is_open:
        wire.close()
        await asyncio.wait({wire.closed}, timeout=GOODBYE)
    wire.drop(AMQPError("closed by us"))
    await asyncio.wait({wire.closed}, timeout=GOODBYE)
