"""What `doctor` finds about a PostgreSQL store."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from oraculo import redaction
from oraculo.adapters.stores.instants import from_micros
from oraculo.adapters.stores.numbered import migrations
from oraculo.bootstrap.adapters import store_of
from oraculo.cli.findings import Finding, broken, fine, projections, warning
from oraculo.cli.inputs import now
from oraculo.cli.journal import projection_types
from oraculo.errors import MissingExtraError, OraculoError
from oraculo.runtime.project import journal_cursors

if TYPE_CHECKING:
    from oraculo.adapters.stores.postgres.connections import Connection

POSTGRES_MIN_VERSION = 140000  # as `server_version_num` has it
CONNECTIONS_PER_PROCESS = 6  # of each process
CONNECT_TIMEOUT_S = 10.0  # seconds


def examine(url: str) -> list[Finding]:
    where = redaction.urls(url)
    try:
        return asyncio.run(_examine(url, where))
    except MissingExtraError as error:
        return [broken("store", str(error), f"pip install 'oraculo[{error.extra}]'")]
    except (OraculoError, TimeoutError) as error:
        text = f"{where}: {error or 'no answer'}"
        return [broken("store", text, "start the server, or change ORACULO_STORE (docs/postgres.md)")]


async def _examine(url: str, where: str) -> list[Finding]:
    store_of(url)  # says which extra is missing
    from oraculo.adapters.stores.postgres.connections import ReconnectingConnection, Server
    from oraculo.adapters.stores.postgres.schema import current_version

    own = ReconnectingConnection(Server(url))
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S), own.exchange() as connection:
            found = [*await _server(connection, where)]
            version = await current_version(connection)
            found.append(_schema(version))
            if version:
                found += [await _row_security(connection), *await _content(connection)]
            return found
    finally:
        await own.drop()


async def _server(connection: Connection, where: str) -> list[Finding]:
    from oraculo.adapters.stores.postgres.connections import fetch
    from oraculo.adapters.stores.postgres.schema import durability as durability_of

    ((number, version, most),) = await fetch(
        connection,
        "SELECT current_setting('server_version_num')::int, current_setting('server_version'),"
        " current_setting('max_connections')::int",
    )
    found = [fine("store", f"{where}: PostgreSQL {version}")]
    if number < POSTGRES_MIN_VERSION:
        found = [
            broken(
                "store", f"{where}: PostgreSQL {version}", f"use PostgreSQL {POSTGRES_MIN_VERSION // 10000} or newer"
            )
        ]
    durability = await durability_of(connection)
    if durability == "power-safe":
        found.append(fine("durability", durability))
    else:
        text = "set synchronous_commit, fsync and full_page_writes to on (docs/postgres.md)"
        found.append(warning("durability", durability, text))
    if most < 3 * CONNECTIONS_PER_PROCESS:
        text = f"raise max_connections: every process of Oráculo uses {CONNECTIONS_PER_PROCESS}"
        found.append(warning("connections", f"at most {most}", text))
    return found


def _schema(current: int) -> Finding:
    newest = migrations("postgres")[-1][0]
    if current > newest:
        return broken("schema", f"{current}; this version knows up to {newest}", "use the newer Oráculo that wrote it")
    if current == newest:
        return fine("schema", str(current))
    return fine("schema", f"{current or 'none yet'}; the next start brings it to {newest}")


async def _row_security(connection: Connection) -> Finding:
    from oraculo.adapters.stores.postgres import row_security

    if await row_security.is_passed(connection):
        text = "use an ordinary user that owns the database (docs/postgres.md)"
        return warning("row security", "not for this user, whom no policy of the database binds", text)
    if not await row_security.is_on(connection):
        text = "run `oraculo migrate` once no process of an older version runs"
        return warning("row security", "off: a query that forgets its tenant shows them all", text)
    return fine("row security", "on")


async def _content(connection: Connection) -> list[Finding]:
    from oraculo.adapters.stores.postgres import cursors, dead_letters, members, statistics
    from oraculo.adapters.stores.postgres.connections import fetch

    ((clock,),) = await fetch(connection, "SELECT oraculo_now()")
    found = []
    if abs(apart := (from_micros(clock) - now()).total_seconds()) > 5:
        text = "set both clocks; Oráculo goes by the database's"
        found.append(warning("clock", f"the database's is {apart:+.0f} s from this one", text))
    alive = [one for one in await members.members(connection) if one.lease_until > from_micros(clock)]
    names = ", ".join(one.name for one in alive)
    found.append(fine("members", f"{len(alive)}: {names}" if alive else "none: no engine runs on it"))
    counts = await statistics.count_by_status(connection)
    if counts:
        text = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
        found.append(fine("orchestrations", text))
    if dead := sum(count for _, _, count in await dead_letters.dead_letter_groups(connection)):
        found.append(warning("dead letters", f"{dead}", "look at them with: oraculo dlq ls"))
    if await fetch(connection, "SELECT 1 FROM pg_class WHERE relname = 'cursors' AND pg_table_is_visible(oid)"):
        known, types = journal_cursors(await cursors.cursors(connection)), projection_types()
        found += projections({name: await cursors.lag(connection, at, types.get(name)) for name, at in known})
    return found
