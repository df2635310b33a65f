"""Port: somewhere else that what the journal says is kept, in the order of commits: an audit, a topic.

The journal is the buffer. When a sink cannot be reached nothing is dropped and nothing is kept aside: the cursor of its
projection stays where it is, and everything is handed over again, in order, when the sink is back. So a step may come
twice, also from two processes for a moment, and a sink must not mind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from oraculo.core.events import OrchestrationStarted
from oraculo.core.state import Orchestration
from oraculo.ports.journal import Recorded
from oraculo.ports.system_events import SystemEvent


@dataclass(slots=True)
class Entry:
    """One step of the journal, and the orchestration as it is after it."""

    step: Recorded
    state: Orchestration


class Sink(Protocol):
    """Inherit from it to have what most sinks want."""

    name: str  # of its cursor; never the same for two sinks on one store
    tipo: str | None = None  # the only type of orchestrations that it wants to hear of; the others cost nothing
    gather_s: float = 0.02  # how long a commit waits for more commits, to be handed over together
    only_lately: timedelta | None = None  # what is older than this when it begins to read is skipped

    def wants(self, _started: OrchestrationStarted) -> bool:
        """Whether the steps of an orchestration that began like this are handed over. The same answer every time."""
        return True

    async def record(self, entries: Iterable[Entry]) -> None:
        """Steps in the order of commits; durable there when it returns. Go through them once and take what you need of
        each before you ask for the next: a state goes on changing. SinkUnavailableError: all of them come again."""
        ...

    async def note(self, events: Sequence[SystemEvent]) -> None:
        """What happened to the system itself, oldest first; durable there when it returns."""
        return None

    async def close(self) -> None:
        """Nothing more is handed over."""
        return None
