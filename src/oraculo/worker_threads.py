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
from typing import Any

_Call = tuple[Callable[[], Any], "asyncio.Future[tuple[Any, BaseException | None]]"]


class Threads:
    """Belongs to the event loop that makes the first call."""

    def __init__(self) -> None:
        self._idle = 0
        self._started = 0
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()

    async def run(self, function: Callable[[], Any]) -> Any:
        """What `function` returns, or raises, in a thread."""
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
        """Idle threads end; busy ones end when their function returns."""
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
            with contextlib.suppress(RuntimeError):  # the loop is gone, and nobody waits
                loop.call_soon_threadsafe(self._done, future, value, error)
            del call, function, future, value, error

    def _done(
        self, future: asyncio.Future[tuple[Any, BaseException | None]], value: Any, error: BaseException | None
    ) -> None:
        self._idle += 1
        if not future.done():
            future.set_result((value, error))
