"""Port: task types that were registered while the system ran."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class TaskTypeRegistry(Protocol):
    async def put_task_type(self, tipo: str, body: bytes, at: datetime) -> None:
        """Register a task type, or replace the one of that name."""
        ...

    async def task_types(self) -> dict[str, bytes]:
        """Map the name of each task type to its document."""
        ...

    async def remove_task_type(self, tipo: str) -> bool:
        """Remove a task type; return whether it was there."""
        ...
