"""Talk to a running Oráculo from Python, blocking or with asyncio.

    with Client() as oraculo:
        run = oraculo.submit({"coletas": [{"fonte": "youtube"}]})
        print(oraculo.result(run.correlation_id, wait=30))

`AsyncClient` has the same methods with `await`. What they ask of the server, and what they make of its answers, is
written once in `client_calls`; here are only the two ways to send. Refusals raise ApiError with the problem document,
no answer at all raises ServerUnreachableError.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, Self, TypeVar
from urllib.parse import urlsplit

import httpx2

from oraculo import client_calls as calls
from oraculo.client_calls import Answer, Call, Page, Pause, Script, Submitted
from oraculo.client_stream import EventStream
from oraculo.errors import ApiError, OraculoError, ServerUnreachableError, SettingsError

__all__ = ["ApiError", "AsyncClient", "Client", "Page", "ServerUnreachableError", "Submitted"]

P = ParamSpec("P")
T = TypeVar("T")

DEFAULT_URL = "http://127.0.0.1:8000"
TIMEOUT = 15.0
SILENCE = 60.0  # a stream has a sign of life every 15 s; four missed ones are a dead connection
MAX_EVENT = 64 * 1024 * 1024


class _Manners:
    """What both clients know: where the server is, who asks, how long to wait."""

    def __init__(self, url: str | None = None, api_key: str | None = None, timeout: float = TIMEOUT) -> None:
        self.url = (url or os.environ.get("ORACULO_URL") or DEFAULT_URL).rstrip("/")
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingsError("ORACULO_URL", self.url, "http://host:port or https://host:port")
        key = api_key if api_key is not None else os.environ.get("ORACULO_API_KEY", "")
        self._timeout = timeout
        self._options: dict[str, Any] = {
            "base_url": self.url,
            "headers": {"Authorization": f"Bearer {key}"} if key else {},
            # What is on this machine is never reached through a proxy.
            "trust_env": parts.hostname not in ("localhost", "127.0.0.1", "::1"),
            "limits": httpx2.Limits(max_connections=None, max_keepalive_connections=64),
        }

    def _request(self, call: Call, *, stream: bool = False) -> dict[str, Any]:
        content = call.content()
        headers = dict(call.headers)
        if content is not None:
            headers["Content-Type"] = "application/json"
        read = SILENCE if stream else self._timeout + call.patience
        return {
            "method": call.method,
            "url": call.path,
            "params": dict(call.query) or None,
            "content": content,
            "headers": headers,
            "timeout": httpx2.Timeout(self._timeout, read=read, pool=None),
        }

    def _unreachable(self, error: Exception) -> ServerUnreachableError:
        absent = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.InvalidURL)
        return ServerUnreachableError(self.url, str(error) or type(error).__name__, connected=not absent)


_FAILED = (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL)


def _blocking(build: Callable[P, Script[T]]) -> Callable[Concatenate[Client, P], T]:
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._play(build(*args, **kwargs))

    return _with_self(method, build)


def _awaited(build: Callable[P, Script[T]]) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._play(build(*args, **kwargs))

    return _with_self(method, build)


def _with_self(method: Callable[P, T], build: Callable[..., Any]) -> Callable[P, T]:
    """So that `help` shows the script's name, text and arguments."""
    update_wrapper(method, build)
    shown = inspect.signature(build)
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    gives = str(shown.return_annotation).removeprefix("Script[").removesuffix("]")
    shown = shown.replace(parameters=[first, *shown.parameters.values()], return_annotation=gives)
    method.__signature__ = shown  # type: ignore[attr-defined]
    return method


class Client(_Manners):
    """Blocking. `url` defaults to ORACULO_URL, `api_key` to ORACULO_API_KEY."""

    def __init__(self, url: str | None = None, api_key: str | None = None, timeout: float = TIMEOUT) -> None:
        super().__init__(url, api_key, timeout)
        self._http = httpx2.Client(**self._options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    submit = _blocking(calls.submit)
    result = _blocking(calls.result)
    get = _blocking(calls.get)
    list = _blocking(calls.listing)
    cancel = _blocking(calls.cancel)
    decide = _blocking(calls.decide)
    events = _blocking(calls.events)
    ticket = _blocking(calls.ticket)
    brokers = _blocking(calls.brokers)
    replicas = _blocking(calls.replicas)
    metrics = _blocking(calls.metrics)
    workers = _blocking(calls.workers)
    dead_letters = _blocking(calls.dead_letters)
    dead_letter = _blocking(calls.dead_letter)
    requeue_dead_letter = _blocking(calls.requeue_dead_letter)
    requeue_dead_letters = _blocking(calls.requeue_dead_letters)
    discard_dead_letter = _blocking(calls.discard_dead_letter)
    discard_dead_letters = _blocking(calls.discard_dead_letters)
    task_types = _blocking(calls.task_types)
    task_type = _blocking(calls.task_type)
    put_task_type = _blocking(calls.put_task_type)
    remove_task_type = _blocking(calls.remove_task_type)
    health = _blocking(calls.health)
    ready = _blocking(calls.ready)

    def stream(self, correlation_id: str, after: int = 0) -> Iterator[dict[str, Any]]:
        """Every event from number `after` on, as it happens, until the orchestration has ended. Reconnects by itself;
        skips nothing and repeats nothing."""
        stream = EventStream(correlation_id, after)
        while not stream.over:
            try:
                with self._http.stream(**self._request(stream.call(), stream=True)) as response:
                    if response.status_code != 200:
                        calls.answer(response.status_code, response.headers, response.read())
                    for one in httpx2.EventSource(response, MAX_EVENT):
                        event = stream.take(one.event, one.data)
                        if event is not None:
                            yield event
            except _FAILED as error:
                self._play(stream.broken(self._unreachable(error)))
            except OraculoError as error:
                self._play(stream.broken(error))
            else:
                self._play(stream.broken(self._unreachable(ConnectionError("the stream was cut"))))

    def _play(self, script: Script[T]) -> T:
        """Do what the script says, and return what it returns."""
        try:
            wanted = next(script)
            while True:
                try:
                    got = self._do(wanted)
                except OraculoError as error:
                    wanted = script.throw(error)
                else:
                    wanted = script.send(got)
        except StopIteration as stop:
            value: T = stop.value
            return value

    def _do(self, wanted: Call | Pause) -> Answer | None:
        if isinstance(wanted, Pause):
            time.sleep(wanted.seconds)
            return None
        try:
            response = self._http.request(**self._request(wanted))
        except _FAILED as error:
            raise self._unreachable(error) from error
        return calls.answer(response.status_code, response.headers, response.content)


class AsyncClient(_Manners):
    """The same with asyncio."""

    def __init__(self, url: str | None = None, api_key: str | None = None, timeout: float = TIMEOUT) -> None:
        super().__init__(url, api_key, timeout)
        self._http = httpx2.AsyncClient(**self._options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    submit = _awaited(calls.submit)
    result = _awaited(calls.result)
    get = _awaited(calls.get)
    list = _awaited(calls.listing)
    cancel = _awaited(calls.cancel)
    decide = _awaited(calls.decide)
    events = _awaited(calls.events)
    ticket = _awaited(calls.ticket)
    brokers = _awaited(calls.brokers)
    replicas = _awaited(calls.replicas)
    metrics = _awaited(calls.metrics)
    workers = _awaited(calls.workers)
    dead_letters = _awaited(calls.dead_letters)
    dead_letter = _awaited(calls.dead_letter)
    requeue_dead_letter = _awaited(calls.requeue_dead_letter)
    requeue_dead_letters = _awaited(calls.requeue_dead_letters)
    discard_dead_letter = _awaited(calls.discard_dead_letter)
    discard_dead_letters = _awaited(calls.discard_dead_letters)
    task_types = _awaited(calls.task_types)
    task_type = _awaited(calls.task_type)
    put_task_type = _awaited(calls.put_task_type)
    remove_task_type = _awaited(calls.remove_task_type)
    health = _awaited(calls.health)
    ready = _awaited(calls.ready)

    async def stream(self, correlation_id: str, after: int = 0) -> AsyncIterator[dict[str, Any]]:
        """Every event from number `after` on, as it happens, until the orchestration has ended. Reconnects by itself;
        skips nothing and repeats nothing."""
        stream = EventStream(correlation_id, after)
        while not stream.over:
            try:
                async with self._http.stream(**self._request(stream.call(), stream=True)) as response:
                    if response.status_code != 200:
                        calls.answer(response.status_code, response.headers, await response.aread())
                    async for one in httpx2.EventSource(response, MAX_EVENT):
                        event = stream.take(one.event, one.data)
                        if event is not None:
                            yield event
            except _FAILED as error:
                await self._play(stream.broken(self._unreachable(error)))
            except OraculoError as error:
                await self._play(stream.broken(error))
            else:
                await self._play(stream.broken(self._unreachable(ConnectionError("the stream was cut"))))

    async def call(self, call: Call) -> Answer:
        """One call as it is; for what has no method of its own."""
        got = await self._do(call)
        assert got is not None
        return got

    async def _play(self, script: Script[T]) -> T:
        try:
            wanted = next(script)
            while True:
                try:
                    got = await self._do(wanted)
                except OraculoError as error:
                    wanted = script.throw(error)
                else:
                    wanted = script.send(got)
        except StopIteration as stop:
            value: T = stop.value
            return value

    async def _do(self, wanted: Call | Pause) -> Answer | None:
        if isinstance(wanted, Pause):
            await asyncio.sleep(wanted.seconds)
            return None
        try:
            response = await self._http.request(**self._request(wanted))
        except _FAILED as error:
            raise self._unreachable(error) from error
        return calls.answer(response.status_code, response.headers, response.content)
