"""An operator who pauses and resumes the orchestration of a small world, and what must hold for its orders."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Protocol

from oraculo.core.commands import Command, PauseRun, ResumeRun
from oraculo.core.effects import Begin, Effect, Publish
from oraculo.core.events import Event, TicketRequeued, TicketsDispatched, TicketWithdrawn
from oraculo.core.vocabulary import Verdict
from oraculo.simulation.invariants import CheckedJournal
from oraculo.simulation.trace import Trace

RULE = "nothing goes out while it is paused, and nothing is lost"
WORLDS_SHARE = 0.4  # of worlds that have such an operator
PAUSE_SHARE = 0.2  # of the actions there


class PausedWorld(Protocol):
    """What the operator sees of a world, and does to it."""

    journal: CheckedJournal
    trace: Trace
    now: datetime

    def do(self, command: Command, expected: Verdict | None = None) -> None: ...


class Pauser:
    """`chance` is of his own: other worlds stay as they were."""

    def __init__(self, world: PausedWorld, chance: Random) -> None:
        self._world = world
        self._chance = chance
        self._is_there = chance.random() < WORLDS_SHARE
        self._unsent: set[tuple[int, int]] = set()  # (position, attempt) that were released and not to be sent yet

    def act(self) -> None:
        """Sometimes pause or resume, mostly what is not so already."""
        if not self._is_there or self._chance.random() >= PAUSE_SHARE:
            return
        journal = self._world.journal
        resumes = journal.pauses.paused is (self._chance.random() < 0.8)
        ended, same = journal.status is not None, resumes is not journal.pauses.paused
        expected = Verdict.IDLE if ended else Verdict.DUPLICATE if same else Verdict.APPLIED
        self._world.do(ResumeRun("já pode", "ana") if resumes else PauseRun("espera", "ana"), expected)
        self._world.now += timedelta(seconds=self._chance.choice((0, 1, 90)))

    def ends_pause(self) -> bool:
        """Resume what is paused; return whether it was."""
        paused = self._world.journal.pauses.paused
        if paused:
            self._world.do(ResumeRun(), Verdict.APPLIED)
        return paused

    def to_be_sent(self) -> list[tuple[int, int]]:
        """(position, attempt) of the orders that have to be sent after a restart."""
        seen = () if self._world.journal.pauses.paused else enumerate(self._world.journal.tickets)
        return [(position, one.attempt) for position, one in seen if one.phase == "owed"]

    def check_sent(self, events: Sequence[Event], effects: Sequence[Effect]) -> None:
        """While it is paused nothing goes out; when it is not, all that was released does."""
        for event in events:
            if isinstance(event, TicketsDispatched):
                self._unsent |= {(position, event.attempt) for position in event.tickets}
            elif isinstance(event, TicketRequeued):
                self._unsent.add((event.ticket, event.attempt))
            elif isinstance(event, TicketWithdrawn) and event.wait is None:
                self._unsent.add((event.ticket, event.attempt + 1))
        going = [one for effect in effects if isinstance(effect, Publish | Begin) for one in effect.tickets]
        paused, seen, violate = (
            self._world.journal.pauses.paused,
            self._world.journal.tickets,
            self._world.trace.violate,
        )
        if going and paused:
            violate(RULE, f"{going} go out")
        if len(going) != len(set(going)):
            violate(RULE, f"{going} go out twice")
        left = self._unsent.difference(going)
        self._unsent = {(p, attempt) for p, attempt in left if (seen[p].phase, seen[p].attempt) == ("owed", attempt)}
        if self._unsent and not paused:
            violate(RULE, f"{sorted(self._unsent)} are not sent")
