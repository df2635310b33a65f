"""Port: which Avro schema a number in front of a message stands for, and which number our own schemas have."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol


class Registry(Protocol):
    """`schema` and `number` tell what is known here; `learn` finds out. What a number stands for never changes."""

    def schema(self, number: int) -> str:
        """Return a schema as JSON text. KeyError: there is none. RegistryUnavailableError: `learn` never succeeded."""
        ...

    def number(self, record: str) -> int:
        """Return the number of the record's shipped schema. RegistryUnavailableError: `learn` never succeeded."""
        ...

    async def learn(self, numbers: Collection[int] = ()) -> None:
        """After this, all is known of our own schemas and of these numbers. RegistryUnavailableError otherwise."""
        ...

    async def close(self) -> None: ...
