"""How one notice of an orchestration stands."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from oraculo.core.events import NoticeDelivered, NoticeFailed, NoticeGivenUp, NoticeSent


class NoticePhase(StrEnum):
    OWED = "owed"
    BACKOFF = "backoff"
    DELIVERED = "delivered"
    GIVEN_UP = "given_up"


@dataclass(slots=True)
class NoticeState:
    target: str  # "webhook", "fila" or "pai"
    phase: NoticePhase = NoticePhase.OWED
    attempt: int = 0
    due_at: datetime | None = None
    detail: str = ""

    def take_in(self, event: NoticeSent | NoticeDelivered | NoticeFailed | NoticeGivenUp) -> None:
        """Make an event about this notice true."""
        match event:
            case NoticeSent(_, attempt):
                self.phase, self.attempt, self.due_at = NoticePhase.OWED, attempt, None
            case NoticeDelivered(_, _, detail):
                self.phase, self.detail = NoticePhase.DELIVERED, detail
            case NoticeFailed(_, _, detail, retry_at, _):
                self.phase, self.detail, self.due_at = NoticePhase.BACKOFF, detail, retry_at
            case NoticeGivenUp(_, _, detail, _, _):
                self.phase, self.detail = NoticePhase.GIVEN_UP, detail


def quiet_notices(webhook: str | None, queue: str | None, has_parent: bool) -> tuple[NoticeState, ...]:
    """The notices of an orchestration that begins: nothing is owed before its end."""
    targets = [name for name, target in (("webhook", webhook), ("fila", queue), ("pai", has_parent)) if target]
    return tuple(NoticeState(target, NoticePhase.BACKOFF) for target in targets)
