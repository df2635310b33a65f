"""What the checks know: what workers really said, and how the records tell each ticket and notice."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from oraculo.core.vocabulary import Status


@dataclass(slots=True)
class Answer:
    """What a worker really said; found again by the digest of its bytes."""

    ticket: str
    attempt: int
    ok: bool
    definitivo: bool
    dados: Any
    echoed: bool = True  # it named its ticket and attempt


class Knowledge(Protocol):
    """What the world knows beside the journal."""

    def answer(self, digest: int) -> Answer | None: ...

    def confirmed(self, message_id: str) -> bool:
        """A broker really confirmed this message."""
        ...

    def honest_timeouts(self) -> bool:
        """Nobody hangs and nothing is lost here: a timeout cannot happen."""
        ...


@dataclass(slots=True)
class Seen:
    """One ticket as the records tell it."""

    phase: str = "waiting"
    attempt: int = 0
    confirmed_at: datetime | None = None
    retry_at: datetime | None = None
    answered: set[int] = field(default_factory=set)
    status: Status = Status.PENDENTE
    dados: bytes = b"null"


@dataclass(slots=True)
class SeenNotice:
    attempt: int = 0
    phase: str = "quiet"
    retry_at: datetime | None = None
