"""A channel of a connection: what pika leaves to callbacks can be awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from oraculo.adapters.brokers.rabbitmq.transport import AMQPError, AmqpTransport
from oraculo.errors import BrokerUnavailableError


class ChannelGoneError(BrokerUnavailableError):
    """The channel was closed; `code` is the server's (404: no such queue), 0 when the connection is gone."""

    def __init__(self, detail: str, code: int = 0) -> None:
        super().__init__(detail)
        self.code = code


class Channel:
    """One channel. `lost` is called once, when the server or a lost connection has closed it."""

    def __init__(self, transport: AmqpTransport) -> None:
        self.transport = transport
        self.alive = False
        self.gone = ChannelGoneError("the channel is not open")
        self.channel: Any = None
        self.number = 0
        self._answers: set[asyncio.Future[Any]] = set()

    async def open(self, seconds: float) -> None:
        with _translated():
            answer = self._answer()
            self.channel = self.transport.channel(on_open_callback=lambda _: self._opened(answer))
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
        self.transport.receivers.pop(self.number, None)
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
