"""Port: the keys that payloads of tenants are sealed with, each wrapped by a master key that is not stored."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


class UnknownDataKeyError(Exception):
    """Something is sealed with a key that is not in memory: read the keys once more, and try again."""


@dataclass(frozen=True, slots=True)
class StoredDataKey:
    """A key of a tenant. The highest `generation` seals, all of them open. `wrapped` is None once it was forgotten."""

    id: str
    tenant: str
    generation: int
    wrapped: bytes | None
    master: str  # which master key wrapped it
    created_at: datetime
    forgotten_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ForgottenKeys:
    """What came of forgetting the keys of a tenant: how many were forgotten; none while runs of it are live."""

    keys: int
    live_runs: int
    schedules: int


class DataKeys(Protocol):
    async def data_keys(self) -> list[StoredDataKey]:
        """List the keys of all tenants, forgotten ones too, by tenant and generation."""
        ...

    async def add_data_key(self, key: StoredDataKey) -> bool:
        """Keep a new key; False when its tenant has one of that generation already."""
        ...

    async def rewrap_data_key(self, key: StoredDataKey) -> bool:
        """Replace how a key is wrapped; False when it was forgotten meanwhile."""
        ...

    async def forget_data_keys(self, tenant: str, at: datetime) -> ForgottenKeys:
        """Forget the keys of a tenant for good, in one transaction: what they sealed cannot be read any more. Its
        schedules go with them, and digests of its requests. Nothing happens while the tenant has live runs."""
        ...

    async def reseal(self, tenant: str) -> int:
        """Seal all rows of a tenant that are in clear, or under an older key, with its newest key, page by page; return
        how many there were. Rows whose key was forgotten stay as they are."""
        ...
