"""Port: a memory that several processes share and that may forget at any time. Nothing is true because it is here."""

from __future__ import annotations

from typing import Protocol


class Cache(Protocol):
    """It never fails: what is away knows nothing and keeps nothing."""

    async def get(self, key: str) -> bytes | None: ...

    async def put(self, key: str, value: bytes, seconds: float) -> None: ...

    async def turn(self, name: str, owner: str, seconds: float) -> bool:
        """Is it this owner's turn, for so long? True for one at a time, and for everybody while it is away."""
        ...

    async def close(self) -> None: ...
