"""One MongoDB database to write to: confirmed by the majority, never twice, never older over newer.

What cannot be reached is SinkUnavailableError: the projection comes again. What MongoDB refuses for good is another
matter (a document that is too large, a rule of its own): in a collection that may have holes it is counted, logged and
kept as text in `audit_refused`; in any other, the projection stops there until an operator has looked.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

import structlog
from bson.errors import BSONError
from pymongo import AsyncMongoClient, IndexModel, ReplaceOne, WriteConcern
from pymongo.errors import BulkWriteError, OperationFailure, PyMongoError
from pymongo.monitoring import ConnectionPoolListener

from oraculo import redaction
from oraculo.adapters.sinks.mongo import collections
from oraculo.adapters.sinks.mongo.documents import ORDER, Document
from oraculo.errors import SettingsError, SinkUnavailableError

log = structlog.get_logger("oraculo.mongodb")

T = TypeVar("T")
Write = Callable[[Sequence[Document]], Awaitable[list[Document]]]

BATCH_DOCUMENTS = 500  # documents in one message
SERVER_SELECTION_TIMEOUT_MS = 5000  # for a server to be found
SOCKET_TIMEOUT_MS = 20_000  # for an answer
BREAKER_FAILURES = 5  # failures in a row after which the breaker counts as open
REFUSED_MAX_CHARS = 256 * 1024  # characters of a document that was refused
_DUPLICATE_KEY_CODE = 11000
_INDEX_CONFLICT_CODES = (85, 86)  # an index of that name is there, and is another one
# FerretDB 1 answers an update that it refuses without a field that the driver looks for: KeyError.
_DOCUMENT_ERRORS = (BulkWriteError, BSONError, OverflowError, UnicodeError, KeyError)
_DOCUMENT_ERROR_CODES = (2, 10334, 17280)  # codes of commands that are refused because of what they carry


class Pool(ConnectionPoolListener):
    """How many connections there are, and how many are in use."""

    def __init__(self) -> None:
        self.size = 0
        self.checked_out = 0

    def connection_created(self, event: Any) -> None:
        self.size += 1

    def connection_closed(self, event: Any) -> None:
        self.size -= 1

    def connection_checked_out(self, event: Any) -> None:
        self.checked_out += 1

    def connection_checked_in(self, event: Any) -> None:
        self.checked_out -= 1

    def _ignored(self, event: Any) -> None:
        pass

    pool_created = pool_ready = pool_cleared = pool_closed = connection_ready = _ignored
    connection_check_out_started = connection_check_out_failed = _ignored


class Writer:
    """`fail_open` names the collections that may have holes; `called` says which have another name in the database;
    `observe(collection, operation, seconds)` hears of every
    message to the server."""

    def __init__(
        self,
        url: str,
        database: str,
        *,
        max_pool: int,
        min_pool: int,
        fail_open: Collection[str] = (),
        called: Mapping[str, str] = MappingProxyType({}),
        observe: Callable[[str, str, float], None] = lambda _collection, _operation, _seconds: None,
    ) -> None:
        self.pool = Pool()
        self.max_pool = max_pool
        self.errors: Counter[tuple[str, str, str]] = Counter()  # (collection, operation, type of the error)
        self.left_out: Counter[str] = Counter()  # collection → documents that MongoDB refused
        self.indexes: Counter[tuple[str, str]] = Counter()  # (collection, what was found)
        self.failures = 0  # in a row
        self._called = dict(called)
        self._fail_open = frozenset(fail_open) | collections.FAIL_OPEN_COLLECTIONS
        self._observe = observe
        self._prepared = False
        try:
            self.client: AsyncMongoClient[Document] = AsyncMongoClient(
                url, tz_aware=True, event_listeners=[self.pool], **_options(url, max_pool, min_pool)
            )
            self.database = self.client.get_database(database, write_concern=WriteConcern("majority"))
        except (PyMongoError, ValueError) as error:
            raise SettingsError("MONGODB_URI", redaction.urls(url), str(error)) from None

    @property
    def open(self) -> bool:
        """The breaker: the server has not answered for a while. It is tried again, now and then, all the same."""
        return self.failures >= BREAKER_FAILURES

    async def close(self) -> None:
        await self.client.close()

    def _collection(self, name: str) -> Any:
        return self.database[self._called.get(name, name)]

    async def ping(self) -> str:
        """The version that it says it is."""
        return str((await self._reached("", "ping", self.client.server_info())).get("version"))

    # -- indexes -----------------------------------------------------------------------------------------------------

    async def prepare(self) -> None:
        """Every collection with its indexes; once, at the first write."""
        if self._prepared:
            return
        for name, wanted in collections.INDEXES.items():
            there = await self._reached(name, "list_indexes", self._collection(name).index_information())
            missing = [index for index in wanted if index.name not in there]
            self.indexes[name, "present"] += len(wanted) - len(missing)
            for index in missing:  # one by one: a conflict with one is no reason to go without the others
                await self._make(name, index)
        self._prepared = True

    async def _make(self, name: str, index: collections.Index) -> None:
        model = IndexModel(index.fields(), name=index.name, unique=index.unique)
        try:
            await self._reached(name, "create_index", self._collection(name).create_indexes([model]))
            self.indexes[name, "created"] += 1
        except SinkUnavailableError as error:
            if getattr(error.__cause__, "code", None) not in _INDEX_CONFLICT_CODES:
                raise
            self.indexes[name, "conflict"] += 1
            log.warning("an index is not as it should be", collection=name, index=index.name, error=str(error))

    # -- documents ---------------------------------------------------------------------------------------------------

    async def put(self, name: str, documents: Sequence[Document], *, fresh: bool) -> None:
        """As they are now, unless what is there is newer. `fresh`: most of them are not there yet."""
        for start in range(0, len(documents), BATCH_DOCUMENTS):
            some = documents[start : start + BATCH_DOCUMENTS]
            if fresh:
                there = await self.insert(name, some)
                if there:
                    await self._written(name, "replace", there, lambda few: self._replace(name, few))
            else:
                left = await self._written(name, "replace", some, lambda few: self._replace(name, few))
                await self.insert(name, left)

    async def insert(self, name: str, documents: Sequence[Document]) -> list[Document]:
        """Insert documents. Return the ones whose ids existed already; those stay as they are."""
        there: list[Document] = []
        for start in range(0, len(documents), BATCH_DOCUMENTS):
            some = documents[start : start + BATCH_DOCUMENTS]
            there += await self._written(name, "insert", some, lambda few: self._insert(name, few))
        return there

    async def _insert(self, name: str, documents: Sequence[Document]) -> list[Document]:
        try:
            await self._collection(name).insert_many(documents, ordered=False)
        except BulkWriteError as error:
            faults = error.details.get("writeErrors", [])
            if error.details.get("writeConcernErrors") or any(one["code"] != _DUPLICATE_KEY_CODE for one in faults):
                raise
            return [documents[one["index"]] for one in faults]
        return []

    async def _replace(self, name: str, documents: Sequence[Document]) -> list[Document]:
        """All of them, when some are not there, or newer there."""
        orders = [ReplaceOne({"_id": one["_id"], ORDER: {"$lt": one[ORDER]}}, one) for one in documents]
        done = await self._collection(name).bulk_write(orders, ordered=False)
        return [] if done.matched_count == len(documents) else list(documents)

    async def _written(self, name: str, operation: str, documents: Sequence[Document], write: Write) -> list[Document]:
        """What `write` says. One that is refused does not take the others with it: then they go one by one."""
        try:
            return await self._reached(name, operation, write(documents))
        except _DOCUMENT_ERRORS as error:
            if isinstance(error, BulkWriteError) and error.details.get("writeConcernErrors"):
                raise self._away(name, operation, error) from error
            if len(documents) == 1:
                await self._refused(name, operation, documents[0], error)
                return []
        said: list[Document] = []
        for one in documents:
            said += await self._written(name, operation, [one], write)
        return said

    async def _reached(self, name: str, operation: str, work: Awaitable[T]) -> T:
        begun = time.perf_counter()
        try:
            found = await work
        except _DOCUMENT_ERRORS:
            self.failures = 0  # it answers
            raise
        except OperationFailure as error:
            if error.code in _DOCUMENT_ERROR_CODES:
                raise BSONError(str(error)) from error
            raise self._away(name, operation, error) from error
        except (PyMongoError, OSError) as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # PyMongo may tell of a connection that broke instead
                raise asyncio.CancelledError from error
            self.failures += 1
            raise self._away(name, operation, error) from error
        finally:
            self._observe(name, operation, time.perf_counter() - begun)
        self.failures = 0
        return found

    def _away(self, name: str, operation: str, error: Exception) -> SinkUnavailableError:
        self.errors[name, operation, type(error).__name__] += 1
        return SinkUnavailableError(f"MongoDB: {str(error).partition(' (configured')[0][:300]}")

    async def _refused(self, name: str, operation: str, document: Document, error: Exception) -> None:
        self.errors[name, operation, type(error).__name__] += 1
        reason = _reason(error)
        if name not in self._fail_open:
            raise SinkUnavailableError(f"MongoDB refuses {name} {document['_id']}: {reason}") from error
        self.left_out[name] += 1
        log.error("MongoDB refuses a record for good", collection=name, id=document["_id"], error=reason)
        text = json.dumps(document, default=str)[:REFUSED_MAX_CHARS]  # whatever is in it
        kept = {"_id": f"{name}:{document['_id']}", "collection": name, "reason": reason, "document": text}
        await self._reached(collections.REFUSED, "insert", self._insert(collections.REFUSED, [kept]))


def _options(url: str, max_pool: int, min_pool: int) -> dict[str, Any]:
    """What the URL says itself is left to it."""
    ours = {
        "appname": "oraculo",
        "maxPoolSize": max_pool,
        "minPoolSize": min_pool,
        "serverSelectionTimeoutMS": SERVER_SELECTION_TIMEOUT_MS,
        "connectTimeoutMS": SERVER_SELECTION_TIMEOUT_MS,
        "socketTimeoutMS": SOCKET_TIMEOUT_MS,
    }
    return {name: value for name, value in ours.items() if f"{name.lower()}=" not in url.lower()}


def _reason(error: Exception) -> str:
    if isinstance(error, BulkWriteError):
        return "; ".join(str(one.get("errmsg")) for one in error.details.get("writeErrors", []))[:500]
    return (str(error) or type(error).__name__)[:500]
