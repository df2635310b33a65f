"""Port: orchestrations that have ended, to be forgotten one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class EndedRun:
    run: int
    tenant: str
    tipo: str | None
    closed_at: datetime
    settled: bool = True  # it owes nothing and waits for nothing


class EndedRuns(Protocol):
    async def ended_runs(self, after: EndedRun | None, before: datetime, limit: int) -> list[EndedRun]:
        """List what ended before an instant, in the order of ends, from behind `after` on."""
        ...

    async def forget_runs(self, runs: Sequence[int], read: int | None = None) -> int:
        """Forget those of them that have ended, owe nothing and wait for nothing; return how many. With `read`, only
        those that have no step beyond this position."""
        ...
