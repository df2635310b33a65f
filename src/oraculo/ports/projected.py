"""Port: what projections keep in the store: documents by key, read from the journal, and made again when they are lost.

A change is written only over the version it was made of, with all its documents or none, so two processes that read the
same steps count them once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from oraculo.ports.sla import ToldAlert


@dataclass(frozen=True, slots=True)
class ProjectedMark:
    """Where a projection stands: how often it was written, and the last position of the journal that is in it."""

    version: int = 0
    position: int = 0


@dataclass(slots=True)
class ProjectedChange:
    """Documents to be written, or removed where there is None; `position` is the last one of the journal in them.
    `told` are alerts that were found; one whose id is known was told before, and is left out."""

    position: int
    documents: dict[str, bytes | None] = field(default_factory=dict)
    told: Sequence[ToldAlert] = ()


class ProjectedDocuments(Protocol):
    async def projected_mark(self, projection: str) -> ProjectedMark:
        """Where a projection stands; version 0 when nothing was ever written."""
        ...

    async def projected(self, projection: str, after_version: int = 0) -> Mapping[str, bytes]:
        """Map the keys of its documents that were written after a version to what they hold."""
        ...

    async def save_projected(self, projection: str, expected: int, change: ProjectedChange) -> frozenset[str] | None:
        """Write a change over version `expected` in one transaction, and return the ids of alerts that are new; None
        when it has another version by now."""
        ...

    async def forget_projected(self, projection: str) -> None:
        """Remove all documents of a projection and its cursor, so that it reads the journal from its beginning."""
        ...
