"""One order that is owed to a worker, as it travels through the effect runner."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from oraculo.core.state import Orchestration
from oraculo.ports.broker import Outgoing

# Filters out (position, attempt) pairs of a run that are known to be settled.
StillOwed = Callable[[int, Sequence[tuple[int, int]]], Sequence[tuple[int, int]]]

# Learns how far these runs are in a store that others write to, before `FilterOwed` is asked. Raises StoreError.
LookAt = Callable[[Sequence[int]], Awaitable[None]]


class FilterOwed(Protocol):
    """Filters out (position, attempt) pairs of a run that are settled; the store is asked when the run is not in
    memory. With `running_too` tickets that are with workers still count. Raises StoreError."""

    async def __call__(
        self, run: int, tickets: Sequence[tuple[int, int]], *, running_too: bool
    ) -> Sequence[tuple[int, int]]: ...


async def keep_all(run: int, tickets: Sequence[tuple[int, int]], *, running_too: bool) -> Sequence[tuple[int, int]]:
    return tickets


async def look_at_nothing(runs: Sequence[int]) -> None:
    """For engines whose `FilterOwed` asks the store itself."""


FIRST_ATTEMPTS = tuple((position, 1) for position in range(64))  # most of what is ever confirmed


@dataclass(slots=True)
class OwedOrder:
    """`message` is written when it is about to be published, so that what waits takes no room."""

    state: Orchestration
    position: int
    attempt: int
    since: datetime
    message: Outgoing | None = None
    pauses: int = 0  # that its orchestration had behind it when the order was taken
    was_running: bool = False  # when it was taken: the broker forgot it, and it is sent again
    maybe_sent: bool = False  # before a pause, by an earlier one of the same attempt

    @property
    def run(self) -> int:
        return self.state.run

    @property
    def queue(self) -> str:
        return self.state.plan.tasks[self.position].queue

    @property
    def pair(self) -> tuple[int, int]:
        """Its position and attempt."""
        if self.attempt == 1 and self.position < len(FIRST_ATTEMPTS):
            return FIRST_ATTEMPTS[self.position]
        return self.position, self.attempt

    @property
    def order(self) -> tuple[int, int, int]:
        return self.state.run, self.position, self.attempt

    @property
    def is_retry(self) -> bool:
        return self.attempt > 1
