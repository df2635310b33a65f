"""Port: the one clock that decides deadlines."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The time of this process."""

    def now(self) -> datetime:
        """Aware UTC; never goes back while the process lives, whatever happens to the wall clock."""
        ...

    def not_before(self, at: datetime) -> None:
        """Move forward to `at` if the clock shows an earlier time."""
        ...

    def follow(self, at: datetime) -> None:
        """Show `at` from now on: the time of the store, which several processes go by."""
        ...
