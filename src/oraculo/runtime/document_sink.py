"""What projections have in common that keep documents of their own in the store (predicted durations, trails).

One process follows the journal at a time; each has the documents in memory, and reads what another one has added every
few seconds. Documents and the position up to which they go are one transaction: no step counts twice, and
`forget_projected` makes all of it again from the journal.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Iterable, Mapping

from oraculo.errors import SinkUnavailableError
from oraculo.ports.projected import ProjectedChange, ProjectedDocuments
from oraculo.ports.projection import Entry, Sink

REFRESH_INTERVAL_S = 5.0
_UNKNOWN = -1


class DocumentSink(Sink):
    """`name` is the projection. A subclass keeps the documents in memory, in the form that it works with."""

    gather_s = 0.5  # what is learnt is of no use to anybody at once

    def __init__(self, store: ProjectedDocuments) -> None:
        self._store = store
        self._version = _UNKNOWN  # of the documents that are in memory

    @abstractmethod
    def clear(self) -> None:
        """Forget everything: the documents are read anew, or made anew."""

    @abstractmethod
    def load(self, documents: Mapping[str, bytes]) -> None:
        """Take in documents that are new in the store."""

    @abstractmethod
    def learn(self, entry: Entry) -> None:
        """Take in one step of the journal."""

    @abstractmethod
    def changes(self) -> dict[str, bytes | None]:
        """The documents that were changed since they were written last; None of one that is gone."""

    @abstractmethod
    def written(self) -> None:
        """Forget which documents were changed."""

    async def run(self) -> None:
        """Read what other processes add, for ever."""
        while True:
            await self.refresh()
            await asyncio.sleep(REFRESH_INTERVAL_S)

    async def refresh(self) -> int:
        """Read what is new in the store; return the position of the journal up to which it goes."""
        mark = await self._store.projected_mark(self.name)
        if mark.version == self._version:
            return mark.position
        if mark.version < self._version or self._version == _UNKNOWN:
            self.clear()
            self._version = 0
        self.load(await self._store.projected(self.name, self._version))
        self._version = mark.version
        return mark.position

    async def record(self, entries: Iterable[Entry]) -> None:
        """Learn from these steps, as far as they are not in the documents yet."""
        known = last = await self.refresh()
        version, self._version = self._version, _UNKNOWN  # read again, unless all of it is written
        for entry in entries:
            if entry.step.position > known:
                last = entry.step.position
                self.learn(entry)
        if last == known:
            self._version = version
            return
        change = ProjectedChange(last, self.changes())
        if await self._store.save_projected(self.name, version, change) is None:
            raise SinkUnavailableError("another process has learnt the same meanwhile")
        self.written()
        self._version = version + 1
