"""Connections that come back: one is made when it is needed, dropped when it broke, and made again at the next use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg.waiting import wait_async

from oraculo.adapters.stores.postgres import arrays
from oraculo.errors import FencedError, SettingsError, StoreError, StoreUnavailableError

T = TypeVar("T")
Connection = AsyncConnection[tuple[Any, ...]]

PATIENCE = 35.0  # seconds for one exchange; the server gives up before
READERS = 4
RETRY_FIRST, RETRY_MOST = 0.05, 1.0  # seconds between two attempts to connect
NETWORK = {  # a server that vanished is noticed; what the URL says comes first
    "application_name": "oraculo",
    "connect_timeout": "5",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
    "target_session_attrs": "read-write",  # a standby cannot help
}
SESSION = {
    "idle_in_transaction_session_timeout": "5s",  # a frozen process must not keep what it has locked
    "lock_timeout": "10s",
    "statement_timeout": "30s",
    "jit": "off",
    "TimeZone": "UTC",
}
# Plans of the writer are made once, perhaps when the tables are empty: they have to be those that suit large ones.
WRITER = {"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off"}


class _Impatient(AsyncConnection[tuple[Any, ...]]):
    """psycopg asks the server to cancel what a cancelled task was waiting for, and waits up to 10 s for that. A server
    that does not answer would hold up whoever gave up on it, so the connection is closed instead."""

    async def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:  # noqa: ASYNC109
        try:
            return await wait_async(gen, self.pgconn.socket, interval=interval, timeout=timeout)
        except asyncio.CancelledError:
            self.pgconn.finish()
            raise


class Server:
    """Where the database is. A server that does not answer is left alone for a moment, by all connections together."""

    def __init__(self, url: str) -> None:
        try:
            self._options = {**NETWORK, **{k: str(v) for k, v in conninfo_to_dict(url).items() if v is not None}}
        except psycopg.Error:  # its text may hold the password
            raise SettingsError("ORACULO_STORE", url.partition("://")[0] + "://…", "a URL that libpq takes") from None
        self.closed = False
        self._wait = 0.0
        self._not_before = 0.0
        self._why = ""

    @property
    def shown(self) -> str:
        """Without the password."""
        known = self._options
        return f"{known.get('dbname', '')} on {known.get('host', 'this machine')}"

    async def connect(self, settings: dict[str, str]) -> Connection:
        if self.closed:
            raise StoreUnavailableError("the store is closed")
        loop = asyncio.get_running_loop()
        if loop.time() < self._not_before:
            raise StoreUnavailableError(self._why)
        try:
            connection = await _Impatient.connect(autocommit=True, prepare_threshold=None, **self._options)  # type: ignore[arg-type]
            try:
                arrays.register(connection)
                values = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in settings.items())
                await connection.execute(f"SELECT {values}".encode())
            except BaseException:
                await connection.close()
                raise
        except (psycopg.Error, OSError) as error:
            self._wait = min(RETRY_MOST, self._wait * 2 or RETRY_FIRST)
            self._not_before = loop.time() + self._wait
            self._why = f"cannot reach the database {self.shown}: {_line(error)}"
            raise StoreUnavailableError(self._why) from error
        self._wait = 0.0
        return connection


class Line:
    """One connection, again and again."""

    def __init__(self, server: Server, settings: dict[str, str] | None = None) -> None:
        self._server = server
        self._settings = {**SESSION, **(settings or {})}
        self._connection: Connection | None = None

    @property
    def connected(self) -> bool:
        return self._connection is not None and not self._connection.closed

    async def get(self) -> Connection:
        if self._server.closed:
            raise StoreUnavailableError("the store is closed")
        if self._connection is not None and self._connection.closed:
            await self.drop()
        if self._connection is None:
            self._connection = await self._server.connect(self._settings)
        return self._connection

    async def drop(self) -> None:
        """Whatever was under way on it is undone by the server."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    @asynccontextmanager
    async def exchange(self) -> AsyncIterator[Connection]:
        """Errors become ours. A connection of which it is not known what it is doing is dropped."""
        connection = await self.get()
        try:
            async with asyncio.timeout(PATIENCE):
                yield connection
        except BaseException as error:
            if connection.closed or not isinstance(error, psycopg.Error | StoreError):
                await self.drop()
            elif connection.info.transaction_status is not TransactionStatus.IDLE:
                await self._roll_back(connection)
            if isinstance(error, psycopg.Error | OSError | TimeoutError):
                raise StoreUnavailableError(f"the database refused: {_line(error)}") from error
            raise

    async def _roll_back(self, connection: Connection) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                await connection.execute("ROLLBACK")
        except (psycopg.Error, OSError, TimeoutError):
            await self.drop()


class Pool:
    """A few lines for whoever does not write orchestrations."""

    def __init__(self, server: Server, size: int = READERS) -> None:
        self._lines = [Line(server) for _ in range(size)]
        self._free = list(self._lines)
        self._slots = asyncio.Semaphore(size)

    async def read(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Once more on a new connection when the one at hand turns out to be dead."""
        async with self._line() as line:
            used_before = line.connected
            try:
                async with line.exchange() as connection:
                    return await work(connection)
            except StoreUnavailableError as error:
                if not used_before or not lost(error):
                    raise
            async with line.exchange() as connection:
                return await work(connection)

    async def write(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """One transaction."""
        async with self._line() as line, line.exchange() as connection, connection.transaction():
            return await work(connection)

    @asynccontextmanager
    async def _line(self) -> AsyncIterator[Line]:
        async with self._slots:
            line = self._free.pop()
            try:
                yield line
            finally:
                self._free.append(line)

    async def close(self) -> None:
        for line in self._lines:
            await line.drop()


def lost(error: StoreUnavailableError) -> bool:
    """The connection turned out to be dead, which says nothing about the next one."""
    cause = error.__cause__
    return isinstance(cause, psycopg.OperationalError) and (cause.sqlstate or "57P").startswith(("57P", "08"))


def fenced(name: str) -> FencedError:
    return FencedError(f"the lease of {name!r} ran out, and another process took over")


def _line(error: BaseException) -> str:
    """The first line of what libpq or the server said; neither repeats the password."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__
