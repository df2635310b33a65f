"""Metrics, logs and traces read what was committed a moment later, so that they do not hold up the next commit.

The moment is longer than an orchestration of quick tasks takes from one commit to the next, so what they do is not part
of how long it takes. Who scrapes the metrics has everything read first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from oraculo.ports.journal import Batch
from oraculo.ports.observer import Observer, group_by_type
from oraculo.runtime.kernel.transaction import Transaction

DELAY_S = 0.01


class ObserverFanOut:
    """Shows every committed batch to all observers, in the order of the commits."""

    def __init__(self, observers: Sequence[Observer] = ()) -> None:
        self._observers = list(observers)
        self._unseen: list[Batch] = []
        self._timer: asyncio.TimerHandle | None = None

    def committed(self, transaction: Transaction) -> None:
        """Show it soon, together with what is committed in the meantime."""
        self._unseen.append(transaction.batch)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(DELAY_S, self.flush)

    def flush(self) -> None:
        """Show what was committed since the last time, now."""
        unseen, self._unseen = self._unseen, []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._observers:
            return
        for batch in unseen:
            told = group_by_type(batch.steps)
            for observer in self._observers:
                observer.saw(batch, told)
