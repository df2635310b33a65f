"""Port: destinations that an operator paused: no order goes out to them, from any process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from oraculo.ports.system_events import SystemEvent

EVERYTHING = "*"  # the target that stands for every destination; no queue has this name


@dataclass(frozen=True, slots=True)
class DestinationPause:
    """`target` is a queue, or EVERYTHING."""

    target: str
    actor: str
    reason: str
    since: datetime


class DestinationPauses(Protocol):
    async def destination_pauses(self) -> list[DestinationPause]:
        """List them, by target."""
        ...

    async def put_destination_pause(self, pause: DestinationPause, event: SystemEvent) -> bool:
        """Keep a pause, and record the event with it; False, and nothing is changed, when the target is paused."""
        ...

    async def remove_destination_pause(self, target: str, event: SystemEvent) -> bool:
        """Remove a pause, and record the event with it; False when the target is not paused."""
        ...


class DestinationGate(Protocol):
    """What senders of orders ask."""

    @property
    def any_paused(self) -> bool:
        """False while `holds` says no of every queue."""
        ...

    def holds(self, queue: str) -> bool:
        """Return whether no order may go to this queue now."""
        ...

    def listen(self, listener: Callable[[], None]) -> None:
        """Call it when something may go that was held."""
        ...

    async def wait_open(self, queue: str, timeout_s: float) -> bool:
        """Wait until this queue is not paused; False when it still is after so many seconds."""
        ...
