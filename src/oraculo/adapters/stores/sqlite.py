"""SQLite store: WAL, synchronous=FULL, one writer thread, group commit.

Speed comes from shape. A batch is a handful of statements, whatever its size: the rows travel as one JSON text and
`json_each` unpacks them inside SQLite, so the interpreter lock is released for the whole statement and the commit runs
beside the event loop instead of in its way. Reads use connections of their own and never wait for the writer.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self, TypeVar

import apsw

from oraculo.adapters.stores import sqlite_find as finding
from oraculo.adapters.stores import sqlite_read as read
from oraculo.adapters.stores import sqlite_write as write
from oraculo.adapters.stores.sqlite_schema import migrate
from oraculo.errors import StoreUnavailableError
from oraculo.ports.store import (
    Asked,
    Batch,
    Bucket,
    DeadLetter,
    FailingQueue,
    Found,
    Key,
    Lag,
    Live,
    Query,
    Recorded,
    Summary,
    SystemEvent,
)

T = TypeVar("T")

READERS = 2


class SqliteStore:
    """`SqliteStore("oraculo.db")`; `:memory:` lives as long as the object. `threads=False` runs everything in the
    caller's thread, which is what a deterministic simulation wants. `exclusive=True` is for whoever runs an engine on
    it: a second one is refused while the first lives. So nobody else can have written what is known in memory."""

    shared = False

    def __init__(self, path: str, *, threads: bool = True, exclusive: bool = False) -> None:
        self.path = path
        self._exclusive = exclusive and path != ":memory:"
        self._lock: int | None = None
        self._threads = threads
        self._writer: apsw.Connection | None = None
        self._jobs: queue.SimpleQueue[tuple[Callable[[Any], Any], asyncio.Future[Any]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._readers: ThreadPoolExecutor | None = None
        self._local = threading.local()
        self._reader_connections: list[apsw.Connection] = []

    async def open(self) -> Self:
        if self._exclusive:
            self._lock = lock(f"{self.path}.lock")
        try:
            await self._open()
        except BaseException:
            self._unlock()
            raise
        return self

    async def _open(self) -> None:
        if not self._threads:
            self._writer = self._connect()
            return
        loop = asyncio.get_running_loop()
        opened: asyncio.Future[None] = loop.create_future()
        self._thread = threading.Thread(target=self._write_loop, args=(loop, opened), name="sqlite-writer", daemon=True)
        self._thread.start()
        await opened
        if self.path != ":memory:":
            self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="sqlite-reader")

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Readers first: the writer, closing last, folds the write-ahead log into the database."""
        if self._readers is not None:
            await asyncio.to_thread(self._readers.shutdown)
            self._readers = None
        for connection in self._reader_connections:
            connection.close()
        self._reader_connections.clear()
        if self._thread is not None:
            self._jobs.put(None)
            await asyncio.to_thread(self._thread.join)
            self._thread = None
        elif self._writer is not None:
            self._writer.close()
        self._writer = None
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    # -- connections -------------------------------------------------------------------------------------------------

    def _connect(self) -> apsw.Connection:
        try:
            if self.path != ":memory:":
                Path(self.path).parent.mkdir(parents=True, exist_ok=True)
            connection = apsw.Connection(self.path)
            connection.set_busy_timeout(5000)
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "wal_autocheckpoint=4000"):
                connection.execute(f"PRAGMA {pragma}").fetchall()
            connection.execute("PRAGMA cache_size=-65536").fetchall()
            migrate(connection)
        except (apsw.Error, OSError) as error:
            raise StoreUnavailableError(f"cannot open the database {self.path!r}: {error}") from error
        return connection

    def _reader(self) -> apsw.Connection:
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = apsw.Connection(self.path, flags=apsw.SQLITE_OPEN_READONLY)
            connection.set_busy_timeout(5000)
            connection.execute("PRAGMA wal_autocheckpoint=0").fetchall()
            self._local.connection = connection
            self._reader_connections.append(connection)
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

    async def _write(self, work: Callable[[apsw.Connection], T]) -> T:
        if not self._threads:
            return self._inline(work)
        if self._thread is None:
            raise StoreUnavailableError("the store is closed")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._jobs.put((work, future))
        return await future

    async def _read(self, work: Callable[[apsw.Connection], T]) -> T:
        if self._readers is None:
            return await self._write(work)
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._readers, lambda: work(self._reader()))
        except apsw.Error as error:
            raise _translated(error) from error

    def _inline(self, work: Callable[[apsw.Connection], T]) -> T:
        if self._writer is None:
            raise StoreUnavailableError("the store is closed")
        try:
            return work(self._writer)
        except apsw.Error as error:
            raise _translated(error) from error

    # -- the port ----------------------------------------------------------------------------------------------------

    async def begin(self, asked: Asked) -> Found:
        if not (asked.names or asked.keys or 0 in asked.known.values()):
            return Found()
        return await self._read(lambda c: read.found(c, asked))

    async def abandon(self) -> None:
        pass

    async def append(self, batch: Batch) -> None:
        statements = write.statements(batch)
        await self._write(lambda c: write.apply(c, statements))

    async def locate(self, correlation_ids: Sequence[str]) -> dict[str, int]:
        return await self._read(lambda c: read.locate(c, correlation_ids))

    async def keyed(self, keys: Sequence[str]) -> dict[str, Key]:
        return await self._read(lambda c: read.keyed(c, keys))

    async def load(self, runs: Sequence[int]) -> dict[int, list[Recorded]]:
        return await self._read(lambda c: read.load(c, runs))

    async def live(self) -> list[Live]:
        return await self._read(read.live)

    async def last_instant(self) -> datetime | None:
        return await self._read(read.last_instant)

    async def summary(self, correlation_id: str) -> Summary | None:
        return await self._read(lambda c: finding.summary(c, correlation_id))

    async def find(self, query: Query) -> list[Summary]:
        return await self._read(lambda c: finding.find(c, query))

    async def count(self, query: Query) -> int:
        return await self._read(lambda c: finding.count(c, query))

    async def activity(self, since: datetime, step: timedelta) -> list[Bucket]:
        return await self._read(lambda c: finding.activity(c, since, step))

    async def failures(self, since: datetime) -> list[FailingQueue]:
        return await self._read(lambda c: finding.failures(c, since))

    async def nearest_deadlines(self, limit: int) -> list[Summary]:
        return await self._read(lambda c: finding.nearest_deadlines(c, limit))

    async def events(self, run: int, after: int, limit: int) -> list[Recorded]:
        return await self._read(lambda c: read.events(c, run, after, limit))

    async def tail(self, after: int, limit: int, tipo: str | None = None) -> list[Recorded]:
        return await self._read(lambda c: read.tail(c, after, limit, tipo))

    async def result(self, run: int) -> bytes | None:
        return await self._read(lambda c: read.result(c, run))

    async def count_by_status(self) -> dict[str, int]:
        return await self._read(read.count_by_status)

    async def counts(self) -> dict[tuple[str, str], int]:
        return await self._read(read.counts)

    async def dead_letters(
        self, *, before: int | None = None, limit: int = 50, queue: str | None = None, reason: str | None = None
    ) -> list[DeadLetter]:
        return await self._read(lambda c: read.dead_letters(c, before, limit, queue, reason))

    async def dead_letter(self, id: int) -> DeadLetter | None:
        return await self._read(lambda c: read.dead_letter(c, id))

    async def dead_letter_groups(self) -> list[tuple[str, str, int]]:
        return await self._read(read.dead_letter_groups)

    async def remove_dead_letters(self, ids: Sequence[int], outcome: str) -> int:
        return await self._write(lambda c: write.remove_dead_letters(c, ids, outcome))

    async def record_system_event(self, event: SystemEvent) -> None:
        await self._write(lambda c: write.record_system_event(c, event))

    async def system_events(self, limit: int = 50, kind: str | None = None) -> list[SystemEvent]:
        return await self._read(lambda c: read.system_events(c, limit, kind))

    async def later_system_events(self, after: int, limit: int) -> list[SystemEvent]:
        return await self._read(lambda c: read.later_system_events(c, after, limit))

    async def cursors(self) -> dict[str, int]:
        return await self._read(read.cursors)

    async def claim_cursor(self, name: str) -> int | None:
        known = (await self._read(read.cursors)).get(name)
        return await self._write(lambda c: write.claim_cursor(c, name)) if known is None else known

    async def move_cursor(self, name: str, to: int) -> None:
        await self._write(lambda c: write.move_cursor(c, name, to))

    async def lag(self, after: int) -> Lag:
        return await self._read(lambda c: read.lag(c, after))

    async def queues(self) -> list[str]:
        return await self._read(read.queues)

    async def put_task_type(self, tipo: str, body: bytes, at: datetime) -> None:
        await self._write(lambda c: write.put_task_type(c, tipo, body, at))

    async def task_types(self) -> dict[str, bytes]:
        return await self._read(read.task_types)

    async def remove_task_type(self, tipo: str) -> bool:
        return await self._write(lambda c: write.remove_task_type(c, tipo))

    async def prune(self, before: datetime, limit: int, read: int | None = None) -> int:
        return await self._write(lambda c: write.prune(c, before, limit, read))

    async def durability(self) -> str:
        if self.path == ":memory:":
            return "best-effort"
        level = await self._write(lambda c: int(read.fetch(c, "PRAGMA synchronous")[0][0]))
        return "power-safe" if level >= 2 else "crash-safe"


def lock(path: str) -> int:
    """Hold the file until it is closed, or until the process dies, however it dies."""
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StoreUnavailableError(f"cannot open {path!r}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise StoreUnavailableError(
            f"another Oráculo is running on {path.removesuffix('.lock')!r}:"
            " stop it, or give this one another ORACULO_STORE"
        ) from None
    return descriptor


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
