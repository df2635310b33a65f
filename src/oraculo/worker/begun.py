"""A coroutine that is begun at once and goes on only if it has to wait.

Many functions of workers never wait: they need neither a time limit, since nothing could interrupt them, nor what the
event loop does to enforce one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Generator
from typing import Any


class Begun(Awaitable[Any]):
    """`ended` with its `value` when the coroutine came to its end without waiting. Otherwise awaiting it, in the task
    in which it was begun, goes on where it waits."""

    __slots__ = ("_coroutine", "_waits_for", "ended", "value")

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._coroutine = coroutine
        self._waits_for: Any = None
        self.ended = False
        self.value: Any = None
        try:
            self._waits_for = coroutine.send(None)
        except StopIteration as end:
            self.ended, self.value = True, end.value

    def __await__(self) -> Generator[Any, Any, Any]:
        coroutine, waits_for = self._coroutine, self._waits_for
        try:
            while True:
                try:
                    sent = yield waits_for
                except GeneratorExit:
                    coroutine.close()
                    raise
                except BaseException as error:
                    waits_for = coroutine.throw(error)
                else:
                    waits_for = coroutine.send(sent)
        except StopIteration as end:
            return end.value
