"""PostgreSQL databases for tests: each has its own, made from a template that has all tables already.

They belong to an ordinary user, as those of an installation should: row-level security binds no superuser. `unbound`
is for a test that looks at the tables themselves.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from contextlib import AsyncExitStack

import psycopg
from tools.servers.postgres import USER

from oraculo.adapters.stores.postgres.store import PostgresStore
from servers import run_folder, shared

TEMPLATE = "oraculo_template"
OWNER = "oraculo_dono"
_made: set[str] = set()  # servers that have the template


async def database(server: str | None = None, *, empty: bool = False) -> str:
    """The URL of a new database on the shared server, or on the one with this URL; `empty` leaves the tables out."""
    url = server or shared("postgres")
    name = f"t_{secrets.token_hex(6)}"
    await _template(url)
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        of = "" if empty else f" TEMPLATE {TEMPLATE}"
        await connection.execute(f"CREATE DATABASE {name}{of} OWNER {OWNER}".encode())
    return _owned(named(url, name))


async def opened(stack: AsyncExitStack, url: str) -> PostgresStore:
    return await stack.enter_async_context(PostgresStore(url))


async def sql(url: str, statement: str) -> None:
    async with await psycopg.AsyncConnection.connect(unbound(url), autocommit=True) as connection:
        await connection.execute(statement.encode())


def unbound(url: str) -> str:
    """The same database as the superuser sees it."""
    return url.replace(f"//{OWNER}@", f"//{USER}@")


def named(url: str, name: str) -> str:
    """Another database of the same server."""
    return f"{url.rpartition('/')[0]}/{name}"


def _owned(url: str) -> str:
    return url.replace(f"//{USER}@", f"//{OWNER}@")


async def _template(url: str) -> None:
    if url in _made:
        return
    descriptor = os.open(run_folder() / "template.lock", os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            cursor = await connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (TEMPLATE,))
            if await cursor.fetchone() is None:
                await connection.execute(f"CREATE ROLE {OWNER} LOGIN".encode())
                await connection.execute(f"CREATE DATABASE {TEMPLATE}_new OWNER {OWNER}".encode())
                async with PostgresStore(_owned(named(url, f"{TEMPLATE}_new"))):
                    pass
                await connection.execute(f"ALTER DATABASE {TEMPLATE}_new RENAME TO {TEMPLATE}".encode())
    finally:
        os.close(descriptor)
    _made.add(url)
