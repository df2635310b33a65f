"""Long waits: they end when the caller leaves, and when the server wants to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

T = TypeVar("T")


class Waits:
    """All waits of one app. `stop` ends them, and lets no new one begin: call it before the server is told to exit."""

    def __init__(self) -> None:
        self.stopping = False
        self._watchers: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._watchers)

    def stop(self) -> None:
        self.stopping = True
        for watcher in self._watchers:
            watcher.cancel()

    @contextmanager
    def watch(self, receive: Receive) -> Iterator[asyncio.Task[None]]:
        """A task that is done as soon as waiting has no sense any more."""
        watcher = asyncio.create_task(_until_gone(receive))
        self._watchers.add(watcher)
        if self.stopping:
            watcher.cancel()
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)
            watcher.cancel()

    async def either(self, receive: Receive, work: Coroutine[Any, Any, T]) -> T | None:
        """What `work` gives; None, and `work` cancelled, when the caller left or the server stops."""
        task = asyncio.create_task(work)
        try:
            with self.watch(receive) as watcher:
                await asyncio.wait((task, watcher), return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class EventStream(StreamingResponse):
    """Server-Sent Events that stop with the caller or the server, whichever is first; `closed` is called then."""

    media_type = "text/event-stream"

    def __init__(self, content: Any, waits: Waits, closed: Callable[[], None]) -> None:
        super().__init__(content, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._waits = waits
        self._closed = closed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if await self._waits.either(receive, self._stream(send)) is None and self._waits.stopping:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except OSError:
            pass  # the caller left while we wrote
        finally:
            self._closed()

    async def _stream(self, send: Send) -> bool:
        await self.stream_response(send)
        return True
