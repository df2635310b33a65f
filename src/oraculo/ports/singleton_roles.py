"""Port: work that one process at a time does for all processes on a store."""

from __future__ import annotations

from typing import Protocol


class SingletonRoles(Protocol):
    async def claim_duty(self, name: str) -> str | None:
        """Take a role, and return the note of the process that had it before ("" when there is none); None while
        another process that lives has it."""
        ...

    async def note_duty(self, name: str, note: str) -> None:
        """Leave a note for the process that has the role next. FencedError when another process has it already."""
        ...
