"""Those who look at what was committed: metrics, logs, traces. They can wait; the next message cannot."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from oraculo.ports.observer import Observer, tell
from oraculo.ports.store import Batch

AFTER = 0.001  # seconds


class Onlookers:
    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = list(observers)
        self._unseen: list[Batch] = []
        self._timer: asyncio.TimerHandle | None = None

    def show(self, batch: Batch) -> None:
        """Soon, together with what comes in the meantime."""
        self._unseen.append(batch)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(AFTER, self.look)

    def look(self) -> None:
        """Now: whatever was committed since they looked last."""
        unseen, self._unseen = self._unseen, []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._observers:
            return
        for batch in unseen:
            told = tell(batch.steps)
            for observer in self._observers:
                observer.saw(batch, told)
