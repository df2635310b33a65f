"""Time that costs nothing: an event loop whose clock jumps to the next timer, and a wall clock that can be set.

No threads, no sockets, no real waiting. Whatever runs on this loop runs the same way every time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, TypeVar, TypeVarTuple

from oraculo.adapters import clock

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

EPOCH = 1_760_000_000.0  # where the wall clock of every world begins


class StuckError(Exception):
    """Raised when nothing is ready and nothing is scheduled: a deadlock."""


class _Jump:
    """Stands where the loop expects a selector: waiting is moving the clock."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise StuckError("nothing is scheduled")
        if timeout > 0:
            self._loop.jump(timeout)
        return []


class VirtualLoop(asyncio.BaseEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._selector = _Jump(self)
        self.set_exception_handler(lambda _loop, _context: None)  # what a killed process left behind

    def time(self) -> float:
        return self._now

    def jump(self, length: float) -> None:
        scheduled: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        until = self._now + length
        self._now = max(self._now, min(until, scheduled[0].when()) if scheduled else until)

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        """Call it here and now: there are no threads."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    async def create_connection(self, *_args: Any, **_options: Any) -> Any:
        """There is no network."""
        raise OSError("a simulated world has no network: give the function something in its place")

    def _process_events(self, _events: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass


def run(make: Callable[[VirtualLoop], Coroutine[Any, Any, T]]) -> T:
    """Run one coroutine on a loop of its own; whatever is left over when it returns is cancelled."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(make(loop))
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=60))
        loop.close()


@contextmanager
def wall_clock(wall: Callable[[], float], elapsed: Callable[[], float]) -> Iterator[None]:
    """The product's own clock class, over a wall clock and a steady clock that belong to the world."""
    names = vars(clock)
    saved = {"time": names["time"], "_elapsed": names["_elapsed"]}
    names.update(time=SimpleNamespace(time=wall), _elapsed=elapsed)
    try:
        yield
    finally:
        names.update(saved)
