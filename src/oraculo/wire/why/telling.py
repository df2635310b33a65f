"""What sentences about a run need: its names, its language, and the shape in which a decision is told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from oraculo.core.flow.profile import specs_in
from oraculo.core.sentences import Language
from oraculo.core.state import Orchestration
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import Status
from oraculo.wire.why import words

NAMES_SHOWN = 3


@dataclass(slots=True)
class DecisionTold:
    """One decision: its sentence, what else there is to say of it, and the documents that it stands on."""

    sentence: str
    details: list[str] = field(default_factory=list)
    ticket: int | None = None
    attempt: int | None = None
    documents: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Telling:
    """`only` is the ticket that is asked about; None: the whole run."""

    state: Orchestration
    language: Language
    only: int | None = None

    def say(self, word: str, **values: object) -> str:
        return words.sentence(self.language, word, **values)

    def status(self, one: Status) -> str:
        return words.status(self.language, one)

    def by(self, actor: str | None) -> str:
        return "" if not actor else self.say("by", actor=actor)

    def concerns(self, positions: Iterable[int]) -> bool:
        return self.only is None or self.only in positions

    def name(self, position: int) -> str:
        """What a user calls a ticket; an item or a round by its number."""
        state = self.state
        if position >= len(state.tickets):
            return ticket_id(state.run, position)
        specs, task = specs_in(state.plan), state.plan.tasks[position]
        if position < len(specs):
            return specs[position].task_id
        if state.ending is not None and position >= state.undoes:
            return self.say("undo.of", name=self.name(state.undoing[position - state.undoes]))
        named = state.plan.profile.name_of(position) or task.queue or task.name or task.kind.value
        block = None if state.blocks is None else state.blocks.of(position)
        return named if block is None else self.say("item", name=named, n=block.number(position))

    def names(self, positions: Sequence[int]) -> str:
        """A few of many; of the ticket that is asked about only itself."""
        if self.only is not None and self.only in positions:
            return self.name(self.only)
        shown = ", ".join(self.name(position) for position in positions[:NAMES_SHOWN])
        left = len(positions) - NAMES_SHOWN
        return self.say("more", names=shown, n=left) if left > 0 else shown

    def one_of(self, positions: Sequence[int]) -> int | None:
        """The ticket that a decision about these is about, if it is one."""
        if self.only is not None and self.only in positions:
            return self.only
        return positions[0] if len(positions) == 1 else None


def instant(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")


def because(text: str) -> str:
    return f": {text}" if text else ""


def length(milliseconds: float) -> str:
    """A length of time in its own unit."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def milliseconds(span: timedelta) -> int:
    return round(span / timedelta(milliseconds=1))
