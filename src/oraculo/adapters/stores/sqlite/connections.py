"""Connections to one SQLite database: a writer in a thread of its own, and a few readers that never wait for it."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import apsw
import orjson

from oraculo.adapters.stores.numbered import refuse_outdated
from oraculo.adapters.stores.sqlite.locks import make_private
from oraculo.adapters.stores.sqlite.schema import current_version, migrate
from oraculo.errors import StoreUnavailableError

T = TypeVar("T")
Work = Callable[[apsw.Connection], T]

MEMORY = ":memory:"
READER_THREADS = 2
BUSY_TIMEOUT_MS = 5000
WRITER_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
    "wal_autocheckpoint=4000",
    "cache_size=-4096",
)


class Connections:
    """`threads=False` runs everything in the caller's thread. `may_migrate=False` refuses a database whose schema is
    not up to date instead of changing it. What SQLite refuses is a StoreUnavailableError."""

    def __init__(self, path: str, *, threads: bool, may_migrate: bool) -> None:
        self.path = path
        self._threads = threads
        self._may_migrate = may_migrate
        self._inline: apsw.Connection | None = None
        self._jobs: queue.SimpleQueue[tuple[Work[Any], asyncio.Future[Any]] | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._readers: ThreadPoolExecutor | None = None
        self._of_thread: dict[int, apsw.Connection] = {}  # thread → its connection to read from

    async def open(self) -> None:
        """Make the database if it is not there, and bring its schema up to date."""
        if not self._threads:
            self._inline = self._connect()
            return
        loop = asyncio.get_running_loop()
        opened: asyncio.Future[None] = loop.create_future()
        self._writer = threading.Thread(target=self._write_loop, args=(loop, opened), name="sqlite-writer", daemon=True)
        self._writer.start()
        await opened
        if self.path != MEMORY:
            self._readers = ThreadPoolExecutor(READER_THREADS, thread_name_prefix="sqlite-reader")

    async def close(self) -> None:
        """Readers first: the writer, closing last, folds the write-ahead log into the database."""
        if self._readers is not None:
            await asyncio.to_thread(self._readers.shutdown)
            self._readers = None
        for connection in self._of_thread.values():
            connection.close()
        self._of_thread.clear()
        if self._writer is not None:
            self._jobs.put(None)
            await asyncio.to_thread(self._writer.join)
            self._writer = None
        elif self._inline is not None:
            self._inline.close()
        self._inline = None

    async def write(self, work: Work[T]) -> T:
        """Run `work` on the connection that writes, one after the other in the order of the calls."""
        if not self._threads:
            return self.run_inline(work)
        if self._writer is None:
            raise StoreUnavailableError("the store is closed")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._jobs.put((work, future))
        return await future

    async def read(self, work: Work[T]) -> T:
        """Run `work` on a connection that only reads; it sees everything that was written before the call."""
        if self._readers is None:
            return await self.write(work)
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._readers, lambda: work(self._reader()))
        except apsw.Error as error:
            raise _translated(error) from error

    def run_inline(self, work: Work[T]) -> T:
        """Run `work` now, in this thread; for a database that was opened without threads."""
        if self._inline is None:
            raise StoreUnavailableError("the store is closed")
        try:
            return work(self._inline)
        except apsw.Error as error:
            raise _translated(error) from error

    def version(self) -> int:
        """The schema of the database file, opened or not; 0 when there is no file."""
        if not Path(self.path).is_file():
            return 0
        try:
            connection = apsw.Connection(self.path, flags=apsw.SQLITE_OPEN_READONLY)
            try:
                connection.set_busy_timeout(BUSY_TIMEOUT_MS)
                return current_version(connection)
            finally:
                connection.close()
        except apsw.Error as error:
            raise StoreUnavailableError(f"cannot read the database {self.path!r}: {error}") from error

    def _connect(self) -> apsw.Connection:
        if not self._may_migrate:
            refuse_outdated("sqlite", self.version())
        try:
            if self.path != MEMORY:
                make_private(self.path)
            connection = apsw.Connection(self.path)
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            for pragma in WRITER_PRAGMAS:
                connection.execute(f"PRAGMA {pragma}").fetchall()
            migrate(connection)
        except (apsw.Error, OSError) as error:
            raise StoreUnavailableError(f"cannot open the database {self.path!r}: {error}") from error
        return connection

    def _reader(self) -> apsw.Connection:
        """The connection of this thread of the pool."""
        thread = threading.get_ident()
        connection = self._of_thread.get(thread)
        if connection is None:
            connection = apsw.Connection(self.path, flags=apsw.SQLITE_OPEN_READONLY)
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            connection.execute("PRAGMA wal_autocheckpoint=0").fetchall()
            self._of_thread[thread] = connection
        return connection

    def _write_loop(self, loop: asyncio.AbstractEventLoop, opened: asyncio.Future[None]) -> None:
        try:
            connection = self._connect()
        except BaseException as error:
            loop.call_soon_threadsafe(_fail, opened, error)
            return
        loop.call_soon_threadsafe(_finish, opened, None)
        while (job := self._jobs.get()) is not None:
            work, future = job
            try:
                result = work(connection)
            except BaseException as error:
                loop.call_soon_threadsafe(_fail, future, _translated(error))
            else:
                loop.call_soon_threadsafe(_finish, future, result)
        connection.close()


def fetch(connection: apsw.Connection, sql: str, values: Sequence[Any] = ()) -> list[Any]:
    """Run one statement and return all its rows; SQLite's columns have no static type."""
    return connection.execute(sql, tuple(values)).fetchall()


def json_list(values: Iterable[object]) -> str:
    """The values as one parameter, for `json_each` to unpack."""
    return orjson.dumps(list(values)).decode()


def _finish(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)


def _translated(error: BaseException) -> BaseException:
    if isinstance(error, apsw.Error):
        return StoreUnavailableError(f"the database refused: {error}")
    return error
