"""Workers as this process sees them: by what they ask for and answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from oraculo.core.commands import RecordResult
from oraculo.core.tenants import local_name
from oraculo.ports.clock import Clock
from oraculo.runtime.workers import error_said

FORGOTTEN_AFTER = timedelta(minutes=10)
WORKERS_MAX, WORKER_MAX_QUEUES = 2000, 200  # of those that are remembered; others are served too
QUEUES_REMEMBERED_MAX = 20_000  # over all workers


@dataclass(slots=True)
class WorkerSeen:
    """`over` says how it gets its work. Of those that take it from a broker only the answers are known. `key` tells it
    from one of the same name of another tenant."""

    key: str
    queues: set[str]
    last_seen: datetime
    over: str = "http"
    leased: int = 0
    answered: int = 0
    failed: int = 0
    last_error: dict[str, Any] | None = None

    def take(self, answer: RecordResult, now: datetime) -> None:
        """Note how its last order failed, if it did."""
        if not answer.ok:
            self.failed += 1
            self.last_error = error_said(answer, now)

    @property
    def name(self) -> str:
        """What it calls itself."""
        return local_name(self.key)


class SeenWorkers:
    """Those that were seen lately. Anyone may call himself anything, so that what is remembered has a limit."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queues = 0
        self.by_key: dict[str, WorkerSeen] = {}

    def at(self, key: str, queue: str, over: str) -> WorkerSeen | None:
        """What is known of a worker, now that it was seen at this queue; None when too many are known already."""
        seen, now = self.by_key.get(key), self._clock.now()
        if seen is None:
            if len(self.by_key) >= WORKERS_MAX:
                return None
            seen = self.by_key[key] = WorkerSeen(key, set(), now, over)
        full = len(seen.queues) >= WORKER_MAX_QUEUES or self._queues >= QUEUES_REMEMBERED_MAX
        if queue not in seen.queues and not full:
            seen.queues.add(queue)
            self._queues += 1
        seen.last_seen = now
        return seen

    def forget(self) -> None:
        """Forget those that were not seen for long."""
        before = self._clock.now() - FORGOTTEN_AFTER
        for key in [key for key, seen in self.by_key.items() if seen.last_seen < before]:
            self._queues -= len(self.by_key.pop(key).queues)
