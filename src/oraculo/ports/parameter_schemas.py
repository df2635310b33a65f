"""Port: the JSON Schemas that workers declared for the parameters of their queues."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class ParameterSchemas(Protocol):
    async def put_parameter_schema(self, queue: str, body: bytes, at: datetime) -> None:
        """Keep the schema of a queue, or replace it."""
        ...

    async def parameter_schemas(self) -> dict[str, bytes]:
        """Map each queue that has a schema to it."""
        ...

    async def remove_parameter_schema(self, queue: str) -> bool:
        """Forget the schema of a queue; return whether there was one."""
        ...
