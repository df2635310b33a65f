"""Port: which Avro schema a number in front of a message stands for, and which number our own schemas have."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol


class Registry(Protocol):
    """`schema` and `number` tell what is known here; `learn` finds out. What a number stands for never changes."""

    def schema(self, number: int) -> str:
        """JSON text. KeyError: there is no such schema. RegistryUnavailableError: nobody has asked yet."""
        ...

    def number(self, record: str) -> int:
        """Of the shipped schema of this record. RegistryUnavailableError: nobody has asked yet."""
        ...

    async def learn(self, numbers: Collection[int] = ()) -> None:
        """After this, all is known of our own schemas and of these numbers. RegistryUnavailableError otherwise."""
        ...

    async def close(self) -> None: ...
