"""Port: how far each projection has read the journal.

A cursor is moved by one process at a time; another one takes over when that process dies.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(slots=True)
class Lag:
    """The part of the journal that a cursor has still to read: from the first unread step to the end."""

    steps: int = 0  # positions from the first unread step to the end; 0: nothing is unread
    since: datetime | None = None  # when the first unread step was recorded
    end: int = 0  # the last position of the journal, or that of the cursor when it is beyond

    @property
    def read(self) -> int:
        """The highest position up to which nothing is unread."""
        return self.end - self.steps


class Cursors(Protocol):
    async def cursors(self) -> dict[str, int]:
        """Map the name of each projection to the last position that it has read."""
        ...

    async def claim_cursor(self, name: str) -> int | None:
        """Make this process the one that moves a cursor, and return where it is (0: nothing read yet); None while
        another process that lives moves it."""
        ...

    async def move_cursor(self, name: str, to: int) -> None:
        """Move a cursor forward, never back. FencedError when another process has claimed it meanwhile."""
        ...

    async def lag(self, after: int, tipo: str | None = None) -> Lag:
        """What the journal holds beyond position `after`; with `tipo`, only orchestrations of that type count as
        unread. One consistent view: every step that is committed later has a position above `Lag.end`."""
        ...
