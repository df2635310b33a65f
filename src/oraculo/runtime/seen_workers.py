"""Workers as this process sees them: by what they ask for and answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from oraculo.core.commands import RecordResult
from oraculo.core.tenants import local_name
from oraculo.runtime.workers import error_said


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
