"""Port: collected data that are too large to be part of an order. Stored by their content; orders refer to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO, Protocol


@dataclass(frozen=True, slots=True)
class StoredData:
    """What was stored: the SHA-256 of its bytes, by which it is found, and how many there are."""

    digest: str
    size: int


@dataclass(frozen=True, slots=True)
class OpenedData:
    """Stored bytes as a file, and how many there are."""

    file: BinaryIO
    size: int


class OrderData(Protocol):
    """All verbs block: they are called in threads. What cannot be done is an OSError."""

    def put(self, chunks: Iterable[bytes], until: datetime, tenant: str) -> StoredData:
        """Store the bytes of all chunks at least until then, sealed for the tenant where payloads are. The same bytes
        of a tenant are stored once."""
        ...

    def open(self, digest: str) -> OpenedData | None:
        """The bytes, to be read and closed by the caller; None when there are none of that digest, or they cannot be
        read any more."""
        ...

    def link_key(self) -> bytes:
        """The key that links to the data are signed with: the same for all processes that share it."""
        ...

    def sweep(self, now: datetime) -> int:
        """Forget what need not be kept any more; how many that were."""
        ...
