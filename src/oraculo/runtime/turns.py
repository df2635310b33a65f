"""Long work on the event loop in turns: others run whenever a turn is used up."""

from __future__ import annotations

import asyncio

TURN_S = 0.01


class Turns:
    """Counts the time since others last ran. `pause` is cheap until a turn is over."""

    def __init__(self, turn_s: float = TURN_S) -> None:
        self._turn_s = turn_s
        self._clock = asyncio.get_running_loop().time
        self._since = self._clock()

    async def pause(self) -> None:
        """Let others run when this turn is over."""
        if self._clock() - self._since >= self._turn_s:
            await asyncio.sleep(0)
            self._since = self._clock()
