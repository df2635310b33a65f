"""Loops that run in the background until they are stopped, and are restarted when they fail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from oraculo.errors import OraculoError

log = structlog.get_logger("oraculo.engine")

RESTART_DELAY_S = 0.1

Loop = Callable[[], Awaitable[None]]


async def for_ever(loop: Loop) -> None:
    """Run the loop; log a failure and run it again."""
    while True:
        try:
            await loop()
        except asyncio.CancelledError:
            raise
        except OraculoError as error:
            log.error("loop failed, restarted", error=str(error))
        except Exception:
            log.exception("loop failed, restarted")
        await asyncio.sleep(RESTART_DELAY_S)


class Loops:
    """Loops that are started and stopped together."""

    def __init__(self) -> None:
        self._loops: dict[str, Loop] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def add(self, name: str, loop: Loop) -> None:
        """Run this one too, from `start` on."""
        self._loops[name] = loop

    def start(self) -> None:
        for name, loop in self._loops.items():
            self._begin(name, loop)

    def add_started(self, name: str, loop: Loop) -> None:
        """Run this one too, from now on."""
        self.add(name, loop)
        self._begin(name, loop)

    def _begin(self, name: str, loop: Loop) -> None:
        self._tasks.append(asyncio.create_task(for_ever(loop), name=name))

    async def stop(self) -> None:
        """Cancel all of them; they have ended when it returns."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
