"""Port: the part of an engine that carries out effects (orders for workers, notices) after they were committed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from oraculo.core.effects import Effect
from oraculo.core.state import Orchestration


@dataclass(frozen=True, slots=True)
class EffectBacklog:
    """A snapshot of what is committed and not carried out yet."""

    waiting: int = 0  # effects under way, or waiting to be
    held_back: int = 0  # orders that wait for room under the ceiling
    paused: int = 0  # orders that wait because their destination is paused
    oldest: datetime | None = None  # since when the oldest unconfirmed message is owed
    published: int = 0  # messages, or tasks, that were confirmed so far
    failing_since: datetime | None = None  # nothing can be published since then
    without_queue: Mapping[str, int] = field(default_factory=dict)  # queue → orders that wait for it, or for room there


class EffectSink(Protocol):
    """Takes effects right after their commit and carries them out in the background, at least once each. What the
    outcome of an effect changes comes back to the engine as a command."""

    def take(self, state: Orchestration, effects: Iterable[Effect]) -> None:
        """Queue these effects of a state that was just committed. Returns at once."""
        ...

    def take_together(self, owed: Sequence[tuple[Orchestration, Sequence[Effect]]]) -> None:
        """Queue what many states owe that are known at once, after a restart or an outage: under a ceiling the most
        urgent of all goes first, in whichever order they are given."""
        ...

    def settled(self, state: Orchestration) -> None:
        """Note that this orchestration has moved: what it no longer has with workers makes room under the ceiling."""
        ...

    def ended(self, run: int) -> None:
        """Forget what is kept for an orchestration that has ended."""
        ...

    def unrecorded(self, run: int) -> list[tuple[int, int]] | None:
        """Return (position, attempt) of orders that a broker has confirmed and that are not handed in yet: none when
        all were handed in but not committed, None when everything is recorded."""
        ...

    async def run(self) -> None:
        """Carry effects out until cancelled."""
        ...

    async def close(self) -> None:
        """Cancel what is under way. The journal still owes it."""
        ...

    def backlog(self) -> EffectBacklog: ...
