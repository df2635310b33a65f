"""Threads for plain worker functions.

Not a ThreadPoolExecutor: its threads are joined when the interpreter ends, so a function that never returns would keep
the process alive for ever. These are daemons. A call that is abandoned (cancelled) keeps its thread until the function
returns; the next call simply gets another one, so abandoned work never starves the rest. The caller bounds how many
calls are made at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Protocol

_Call = tuple[Callable[[], Any], "asyncio.Future[tuple[Any, BaseException | None]]"]


class PlainCalls(Protocol):
    """A place where plain functions run."""

    async def run(self, function: Callable[[], Any]) -> Any: ...

    def close(self) -> None: ...


class Threads:
    """Daemon threads that run plain functions. They belong to the event loop that makes the first call."""

    def __init__(self) -> None:
        self._idle = 0
        self._started = 0
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()

    async def run(self, function: Callable[[], Any]) -> Any:
        """Run `function` in a thread; return what it returns, raise what it raises."""
        loop = asyncio.get_running_loop()
        if self._idle:
            self._idle -= 1
        else:
            self._started += 1
            name = f"oraculo-worker-{self._started}"
            threading.Thread(target=self._serve, args=(loop,), name=name, daemon=True).start()
        future: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
        self._calls.put((function, future))
        value, error = await future
        if error is not None:
            raise error
        return value

    def close(self) -> None:
        """End idle threads; busy ones end when their function returns."""
        for _ in range(self._started):
            self._calls.put(None)

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        while (call := self._calls.get()) is not None:
            function, future = call
            value: Any = None
            error: BaseException | None = None
            try:
                value = function()
            except BaseException as raised:  # SystemExit and StopIteration too: they are how the work failed
                error = raised
            with contextlib.suppress(RuntimeError):  # the loop is gone, and no caller waits
                loop.call_soon_threadsafe(self._done, future, value, error)
            del call, function, future, value, error

    def _done(
        self, future: asyncio.Future[tuple[Any, BaseException | None]], value: Any, error: BaseException | None
    ) -> None:
        self._idle += 1
        if not future.done():
            future.set_result((value, error))
