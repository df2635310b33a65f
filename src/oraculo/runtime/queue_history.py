"""How full the queues were in the last hour, for charts: a fixed number of looks in memory, lost with the process."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from oraculo.runtime.queue_status import QueueStanding

LOOK_INTERVAL_S = 10.0
HISTORY_MAX_LOOKS = 360  # an hour
HISTORY_MAX_QUEUES = 200  # those beyond are left out: whoever submits chooses their names


@dataclass(frozen=True, slots=True)
class Look:
    """One queue at one look. `number` counts the looks of this process."""

    number: int
    waiting: int
    taken: int
    sent_per_s: float
    answered_per_s: float


class QueueHistory:
    """The last looks at each queue."""

    def __init__(self) -> None:
        self.looks = 0
        self._of: dict[str, deque[Look]] = {}

    async def run(self, standings: Callable[[], Iterable[QueueStanding]]) -> None:
        """For ever: look at the queues now and then."""
        while True:
            self.look(standings())
            await asyncio.sleep(LOOK_INTERVAL_S)

    def look(self, standings: Iterable[QueueStanding]) -> None:
        """Keep how the queues stand now; forget queues of which nothing is left of the last hour."""
        self.looks += 1
        for one in standings:
            kept = self._of.get(one.queue)
            if kept is None:
                if len(self._of) >= HISTORY_MAX_QUEUES:
                    continue
                kept = self._of[one.queue] = deque(maxlen=HISTORY_MAX_LOOKS)
            kept.append(Look(self.looks, one.waiting or 0, one.taken or 0, one.sent_per_s, one.answered_per_s))
        first = self.looks - HISTORY_MAX_LOOKS
        for queue in [queue for queue, kept in self._of.items() if kept[-1].number <= first]:
            del self._of[queue]

    def of(self, queue: str) -> list[Look]:
        """The looks at one queue, oldest first."""
        return list(self._of.get(queue, ()))

    @property
    def queues(self) -> list[str]:
        """The queues that are remembered."""
        return list(self._of)
