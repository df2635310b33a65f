"""PostgreSQL databases for tests: each has its own, made from a template that has all tables already."""

from __future__ import annotations

import fcntl
import os
import secrets
from contextlib import AsyncExitStack

import psycopg

from oraculo.adapters.stores.postgres.store import PostgresStore
from servers import run_folder, shared

TEMPLATE = "oraculo_template"
_made: set[str] = set()  # servers that have the template


async def database(server: str | None = None, *, empty: bool = False) -> str:
    """The URL of a new database on the shared server, or on the one with this URL; `empty` leaves the tables out."""
    url = server or shared("postgres")
    name = f"t_{secrets.token_hex(6)}"
    if not empty:
        await _template(url)
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(f"CREATE DATABASE {name}{'' if empty else f' TEMPLATE {TEMPLATE}'}".encode())
    return named(url, name)


async def opened(stack: AsyncExitStack, url: str) -> PostgresStore:
    return await stack.enter_async_context(PostgresStore(url))


async def sql(url: str, statement: str) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(statement.encode())


def named(url: str, name: str) -> str:
    """Another database of the same server."""
    return f"{url.rpartition('/')[0]}/{name}"


async def _template(url: str) -> None:
    if url in _made:
        return
    descriptor = os.open(run_folder() / "template.lock", os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            cursor = await connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (TEMPLATE,))
            if await cursor.fetchone() is None:
                await connection.execute(f"CREATE DATABASE {TEMPLATE}_new".encode())
                async with PostgresStore(named(url, f"{TEMPLATE}_new")):
                    pass
                await connection.execute(f"ALTER DATABASE {TEMPLATE}_new RENAME TO {TEMPLATE}".encode())
    finally:
        os.close(descriptor)
    _made.add(url)
