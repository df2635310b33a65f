"""Port: what the messages of an engine are sealed with, where payloads are sealed at rest."""

from __future__ import annotations

from typing import Protocol


class MessageSeal(Protocol):
    async def seal(self, tenant: str, plain: bytes) -> bytes:
        """Seal a message with the key of a tenant."""
        ...

    async def open(self, sealed: bytes) -> bytes:
        """What `seal` was given. ErasedError when the key of its tenant was forgotten."""
        ...
