"""Port: the one clock that decides deadlines."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """Aware UTC; never goes back while the process lives, whatever happens to the wall clock."""
        ...
