"""The audit chain as MongoDB has it, for whoever compares it with the journal."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from pymongo.errors import PyMongoError

from oraculo.adapters.sinks.mongo import collections
from oraculo.adapters.sinks.mongo.writer import Writer
from oraculo.errors import SinkUnavailableError
from oraculo.wire.audit import Record

_ORDER = [("run", 1), ("seq", 1)]


class ChainReader:
    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def count(self) -> int:
        try:
            return int(await self._writer.database[collections.CHAIN].estimated_document_count())
        except (PyMongoError, OSError) as error:
            raise SinkUnavailableError(f"MongoDB: {error}") from error

    async def of(self, runs: Sequence[int]) -> dict[int, list[Record]]:
        found: dict[int, list[Record]] = {}
        async for record in self._find({"run": {"$in": list(runs)}}):
            found.setdefault(record["run"], []).append(record)
        return found

    async def chains(self) -> AsyncIterator[tuple[Any, list[Record]]]:
        """All of it, one orchestration after the other."""
        run: Any = None
        records: list[Record] = []
        async for record in self._find({}):
            if records and record.get("run") != run:
                yield run, records
                records = []
            run = record.get("run")
            records.append(record)
        if records:
            yield run, records

    async def _find(self, query: dict[str, Any]) -> AsyncIterator[Record]:
        try:
            async for record in self._writer.database[collections.CHAIN].find(query).sort(_ORDER):
                yield record
        except (PyMongoError, OSError) as error:
            raise SinkUnavailableError(f"MongoDB: {error}") from error

    async def close(self) -> None:
        await self._writer.close()
