"""The audit chain as MongoDB has it, to be compared with the journal."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import bson
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

    async def documents(self, collection: str, keys: Sequence[str]) -> dict[str, Record]:
        """The documents of a collection with these keys, those that are there."""
        return {one["_id"]: one async for one in self._all(collection, {"_id": {"$in": list(keys)}})}

    async def refused(self, collection: str, keys: Sequence[str]) -> set[str]:
        """Return the keys whose documents MongoDB refused for good, and which were left out."""
        named = {f"{collection}:{key}": key for key in keys}
        return {named[one["_id"]] async for one in self._all(collections.REFUSED, {"_id": {"$in": list(named)}})}

    def stored_form(self, document: Record) -> Record:
        """A document as it would come back from MongoDB: times in milliseconds, for one."""
        options = self._writer.database.codec_options
        return bson.decode(bson.encode(document, codec_options=options), codec_options=options)

    async def _all(self, collection: str, query: dict[str, Any]) -> AsyncIterator[Record]:
        try:
            async for one in self._writer.database[collection].find(query):
                yield one
        except (PyMongoError, OSError) as error:
            raise SinkUnavailableError(f"MongoDB: {error}") from error

    async def close(self) -> None:
        await self._writer.close()
