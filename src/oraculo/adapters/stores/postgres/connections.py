"""Connections that come back: one is made when it is needed, dropped when it broke, and made again at the next use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from copy import copy
from typing import Any, TypeVar, cast

import psycopg
from psycopg import AsyncConnection, AsyncCursor
from psycopg.abc import Params, PQGen, Query, QueryNoTemplate
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg.waiting import wait_async

from oraculo.adapters.stores.postgres import arrays, own_database
from oraculo.backoff import backoff
from oraculo.errors import FencedError, SettingsError, StoreError, StoreUnavailableError

T = TypeVar("T")

EXCHANGE_TIMEOUT_S = 35.0  # longer than statement_timeout: the server gives up first
POOL_CONNECTIONS = 4
CONNECT_PAUSE_FIRST_S, CONNECT_PAUSE_MAX_S = 0.05, 1.0
CONNECTION_OPTIONS = {  # a server that vanished is noticed; what the URL says comes first
    "application_name": "oraculo",
    "connect_timeout": "5",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
    "target_session_attrs": "read-write",  # a standby cannot help
}
TENANT_SETTING = "oraculo.tenant"  # for whom a session reads; docs/adr/0111
FLEET = "*"  # it works on what all tenants have
SESSION_SETTINGS = {
    TENANT_SETTING: FLEET,
    "idle_in_transaction_session_timeout": "5s",  # a frozen process must not keep what it has locked
    "lock_timeout": "10s",
    "statement_timeout": "30s",
    "jit": "off",
    "TimeZone": "UTC",
}
_READ_AS = f"SELECT set_config('{TENANT_SETTING}', %s, true)".encode()
# The writer plans its statements once, perhaps when the tables are empty: plans that suit large tables are forced.
WRITER_SETTINGS = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}


class Connection(AsyncConnection[tuple[Any, ...]]):
    """A connection that is closed when a task that waits for it is cancelled. psycopg would ask the server to cancel
    the statement, and wait up to 10 s for a server that may not answer at all.

    While `tenant` is set, each statement sees what that tenant may see: the setting goes with it in one exchange, and
    ends with it."""

    tenant: str | None = None

    async def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:  # noqa: ASYNC109
        try:
            return await wait_async(gen, self.pgconn.socket, interval=interval, timeout=timeout)
        except asyncio.CancelledError:
            self.pgconn.finish()
            raise

    async def execute(
        self, query: Query, params: Params | None = None, *, prepare: bool | None = None, binary: bool = False
    ) -> AsyncCursor[tuple[Any, ...]]:
        query = cast(QueryNoTemplate, query)
        if self.tenant is None:
            return await super().execute(query, params, prepare=prepare, binary=binary)
        async with self.pipeline():
            await super().execute(_READ_AS, (self.tenant,))
            return await super().execute(query, params, prepare=prepare, binary=binary)


class Server:
    """The database server. After a failed attempt to connect, all connections together leave it alone for a moment."""

    def __init__(self, url: str) -> None:
        try:
            self._options = {
                **CONNECTION_OPTIONS,
                **{k: str(v) for k, v in conninfo_to_dict(url).items() if v is not None},
            }
        except psycopg.Error:  # its text may hold the password
            raise SettingsError("ORACULO_STORE", url.partition("://")[0] + "://…", "a URL that libpq takes") from None
        self.closed = False
        self._is_settled = not own_database.is_temporals(self._options)  # which database it is
        self._beside_temporal = False
        self._pauses = backoff(CONNECT_PAUSE_FIRST_S, CONNECT_PAUSE_MAX_S)
        self._not_before = 0.0
        self._why = ""

    @property
    def shown(self) -> str:
        """The database and its host, for people; never the password."""
        known = self._options
        return f"{known.get('dbname', '')} on {known.get('host', 'this machine')}"

    async def connect(self, settings: dict[str, str]) -> Connection:
        if self.closed:
            raise StoreUnavailableError("the store is closed")
        loop = asyncio.get_running_loop()
        if loop.time() < self._not_before:
            raise StoreUnavailableError(self._why)
        try:
            await self._settle_database()
            connection = await Connection.connect(autocommit=True, prepare_threshold=None, **self._options)  # type: ignore[arg-type]
            try:
                arrays.register(connection)
                values = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in settings.items())
                await connection.execute(f"SELECT {values}".encode())
            except BaseException:
                await connection.close()
                raise
        except (psycopg.Error, OSError) as error:
            self._not_before = loop.time() + next(self._pauses)
            self._why = f"cannot reach the database {self.shown}: {_first_line(error)}"
            raise StoreUnavailableError(self._why) from error
        self._pauses = backoff(CONNECT_PAUSE_FIRST_S, CONNECT_PAUSE_MAX_S)
        return connection

    async def _settle_database(self) -> None:
        """Leave a database of Temporal's to Temporal. The first connection finds out, for all of them."""
        if not self._is_settled:
            used = await own_database.own_database(self._options)
            self._beside_temporal = used != self._options["dbname"]
            self._options["dbname"] = used
            self._is_settled = True

    async def make_database(self) -> None:
        """Make the database beside Temporal's, where that is the one to use and it is missing."""
        try:
            await self._settle_database()
        except (psycopg.Error, OSError) as error:
            raise StoreUnavailableError(f"cannot reach the database {self.shown}: {_first_line(error)}") from error
        if self._beside_temporal:
            await own_database.make_own_database(self._options)


class ReconnectingConnection:
    """One connection that is made when it is needed, dropped when it broke, and made again at the next use."""

    def __init__(
        self, server: Server, settings: dict[str, str] | None = None, *, timeout_s: float | None = EXCHANGE_TIMEOUT_S
    ) -> None:
        self._server = server
        self._timeout_s = timeout_s
        self._settings = {**SESSION_SETTINGS, **(settings or {})}
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
        """Close the connection; the server undoes a transaction that was under way on it."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    @asynccontextmanager
    async def exchange(self) -> AsyncIterator[Connection]:
        """Use the connection, for `timeout_s` at most. Errors of the client become StoreUnavailableError; a connection
        whose state is unknown afterwards is dropped, a transaction that was left open is rolled back."""
        connection = await self.get()
        try:
            async with asyncio.timeout(self._timeout_s):
                yield connection
        except BaseException as error:
            if connection.closed or not isinstance(error, psycopg.Error | StoreError):
                await self.drop()
            elif connection.info.transaction_status is not TransactionStatus.IDLE:
                await self._roll_back(connection)
            if isinstance(error, psycopg.Error | OSError | TimeoutError):
                raise StoreUnavailableError(f"the database refused: {_first_line(error)}") from error
            raise

    async def _roll_back(self, connection: Connection) -> None:
        try:
            async with asyncio.timeout(EXCHANGE_TIMEOUT_S):
                await connection.execute("ROLLBACK")
        except (psycopg.Error, OSError, TimeoutError):
            await self.drop()


class Pool:
    """A few connections for everything but transactions that write orchestrations. What is done with them sees what
    `tenant` may see; without one, everything."""

    def __init__(self, server: Server, size: int = POOL_CONNECTIONS) -> None:
        self.tenant: str | None = None
        self._all = [ReconnectingConnection(server) for _ in range(size)]
        self._free = list(self._all)
        self._slots = asyncio.Semaphore(size)

    def seen_by(self, tenant: str) -> Pool:
        """The same connections, used for a tenant."""
        pool = copy(self)
        pool.tenant = tenant
        return pool

    async def read(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Do `work` once; or twice, when the connection from the pool turns out to be dead."""
        async with self._one() as own:
            used_before = own.connected
            try:
                async with own.exchange() as connection, self._reading(connection):
                    return await work(connection)
            except StoreUnavailableError as error:
                if not used_before or not is_connection_loss(error):
                    raise
            async with own.exchange() as connection, self._reading(connection):
                return await work(connection)

    async def write(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Do `work` in one transaction."""
        async with self._one() as own, own.exchange() as connection, connection.transaction():
            if self.tenant is not None:
                await connection.execute(_READ_AS, (self.tenant,))
            return await work(connection)

    @asynccontextmanager
    async def _reading(self, connection: Connection) -> AsyncIterator[None]:
        connection.tenant = self.tenant
        try:
            yield
        finally:
            connection.tenant = None

    @asynccontextmanager
    async def _one(self) -> AsyncIterator[ReconnectingConnection]:
        async with self._slots:
            own = self._free.pop()
            try:
                yield own
            finally:
                self._free.append(own)

    async def close(self) -> None:
        for own in self._all:
            await own.drop()


async def once(work: Callable[[Connection], Awaitable[T]], own: ReconnectingConnection) -> T:
    """Do one exchange on a connection that is closed afterwards."""
    try:
        async with own.exchange() as connection:
            return await work(connection)
    finally:
        await own.drop()


async def fetch(connection: Connection, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Run one statement and return all its rows."""
    return await (await connection.execute(sql.encode(), values)).fetchall()


def is_connection_loss(error: StoreUnavailableError) -> bool:
    """True if the connection turned out to be dead, which says nothing about a new one."""
    cause = error.__cause__
    return isinstance(cause, psycopg.OperationalError) and (cause.sqlstate or "57P").startswith(("57P", "08"))


def taken_over(name: str) -> FencedError:
    """The error of a member that writes after another one has taken over from it."""
    return FencedError(f"the lease of {name!r} ran out, and another process took over")


def _first_line(error: BaseException) -> str:
    """The first line of what libpq or the server said; neither repeats the password."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__
