"""Row-level security on a real PostgreSQL: what a session for one tenant is shown of another, whatever it asks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.pq import Trace

from contracts.writing import batch, begin, write
from core.given import coleta, plan
from databases import database, opened, sql, unbound
from oraculo.adapters.stores import shared_sql
from oraculo.adapters.stores.postgres import dead_letters, row_security, statistics, system_events
from oraculo.adapters.stores.postgres.connections import TENANT_SETTING, ReconnectingConnection, Server, fetch, once
from oraculo.adapters.stores.postgres.store import PostgresStore
from oraculo.core.tenants import in_tenant
from oraculo.ports.catalogue import Query
from oraculo.ports.dead_letters import DeadLetter
from oraculo.ports.journal import Key
from oraculo.ports.schedules import StoredSchedule
from oraculo.ports.system_events import SystemEvent
from oraculo.runtime.tenant_store import TenantStore

TENANTS = ("acme", "globex", "default")
SINCE = timedelta(days=3650)


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
async def url() -> str:
    return await database()


def mark(tenant: str) -> str:
    """A text that is in everything that the tenant has, and in nothing else."""
    return f"canary-{tenant}-7qx"


async def filled(store: PostgresStore) -> dict[str, int]:
    """The same in three tenants: a run with a result, a key and a label, a dead letter, a schedule and an event."""
    runs = {}
    for tenant in TENANTS:
        name = in_tenant(tenant, f"um-{mark(tenant)}")
        wanted = plan([coleta("youtube", attempts=1, parametros=f'{{"q":"{mark(tenant)}"}}'.encode())])
        story = begin(name, wanted, fingerprint=f"sha-{mark(tenant)}")
        queue = in_tenant(tenant, "escavador_youtube")
        dead = DeadLetter(queue, "not_json", mark(tenant), mark(tenant).encode(), name)
        key = Key(in_tenant(tenant, f"k-{mark(tenant)}"), f"sha-{mark(tenant)}", story.run)
        await store.append(batch(story.started, dead=[dead], keys=[key]))
        await write(store, story.confirm(when=1), story.ok(0, f'"{mark(tenant)}"'.encode(), when=2), when=2)
        body = f'{{"q":"{mark(tenant)}"}}'.encode()
        assert await store.save_schedule(StoredSchedule(in_tenant(tenant, "noite"), body, b"{}", None)) is not None
        at = story.state.started_at
        await store.record_system_event(SystemEvent("teste", at, {"o": mark(tenant)}, tenant=tenant))
        runs[tenant] = story.run
    return runs


async def raw(url: str, tenant: str | None) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables, as a session of the owner of the database sees them that reads for `tenant`."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        if tenant is not None:
            await connection.execute("SELECT set_config(%s, %s, false)", (TENANT_SETTING, tenant))
        tables = await connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
        found = {}
        for (table,) in await tables.fetchall():
            found[table] = await (await connection.execute(f"SELECT * FROM {table}".encode())).fetchall()
        return found


def text_of(rows: Any) -> str:
    return repr(rows)


# -- what the server shows ---------------------------------------------------------------------------------------------


async def test_every_table_but_the_number_of_the_schema_is_bound_for_its_owner_too(url: str) -> None:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        cursor = await connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
            " AND NOT (relrowsecurity AND relforcerowsecurity)"
        )
        assert await cursor.fetchall() == [("schema_version",)]  # another: give it policies, as migration 24 does


@pytest.mark.parametrize("tenant", TENANTS)
async def test_raw_statements_of_a_tenant_show_no_byte_of_another(url: str, stack: AsyncExitStack, tenant: str) -> None:
    await filled(await opened(stack, url))
    seen = await raw(url, tenant)
    for table in ("runs", "journal", "results", "run_destinos", "idempotency_keys", "dead_letters", "schedules"):
        assert len(seen[table]) >= 1, table
    assert mark(tenant) in text_of(seen)
    for other in set(TENANTS) - {tenant}:
        assert mark(other) not in text_of(seen)
        assert other == "default" or other not in text_of(seen)


@pytest.mark.parametrize("said", [None, "", "nobody", "acm", "ACME", "%"])
async def test_a_session_that_reads_for_nobody_that_is_there_sees_nothing(
    url: str, stack: AsyncExitStack, said: str | None
) -> None:
    await filled(await opened(stack, url))
    seen = await raw(url, said)
    assert {table for table, rows in seen.items() if rows} == {"schema_version"}


async def test_a_session_for_nobody_and_one_for_a_tenant_write_no_run(url: str, stack: AsyncExitStack) -> None:
    runs = await filled(await opened(stack, url))
    for said in ("", "acme"):
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            await connection.execute("SELECT set_config(%s, %s, false)", (TENANT_SETTING, said))
            changed = await connection.execute("UPDATE runs SET status = 'x'")
            assert changed.rowcount == 0
            assert (await connection.execute("DELETE FROM journal")).rowcount == 0
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
                await connection.execute("INSERT INTO results (run, body) VALUES (1, '{}')")
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
                await connection.execute(
                    "INSERT INTO system_events (at, kind, body, tenant) VALUES (1, 'x', '{}', 'globex')"
                )
    assert len(runs) == len((await raw(unbound(url), None))["runs"])


# -- what the store asks -----------------------------------------------------------------------------------------------


async def test_queries_whose_condition_was_lost_show_no_byte_of_another(
    url: str, stack: AsyncExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every query of the store that names the tenant is made to forget it."""
    store = await opened(stack, url)
    runs = await filled(store)
    for module in (shared_sql, dead_letters, statistics, system_events):
        monkeypatch.setattr(module, "only", lambda tenant, mark, word="AND": ("", []))
    found = await store.summary(f"um-{mark('default')}")
    assert found is not None
    since = found.created_at - SINCE
    for tenant in TENANTS:
        seen = store.seen_by(tenant)
        every = [
            await seen.find(Query(limit=50, tenant=None)),
            await seen.nearest_deadlines(50),
            await seen.dead_letters(tenant=None),
            await seen.dead_letter_groups(),
            await seen.system_events(50),
            await seen.schedules(tenant, "", 50),
            await seen.activity(since, SINCE),
            await seen.failures(since),
            [await seen.events(run, 0, 50) for run in runs.values()],
            [await seen.result(run) for run in runs.values()],
            [await seen.schedule(in_tenant(one, "noite")) for one in TENANTS],
            [await seen.summary(in_tenant(one, f"um-{mark(one)}")) for one in TENANTS],
            await seen.destinations(list(runs.values()), 50),
            await seen.keyed([in_tenant(one, f"k-{mark(one)}") for one in TENANTS]),
        ]
        assert mark(tenant) in text_of(every)
        for other in set(TENANTS) - {tenant}:
            assert mark(other) not in text_of(every), (tenant, other)
            assert str(runs[other]) not in text_of(every), (tenant, other)
    assert text_of(await store.find(Query(limit=50, tenant=None))).count("canary") >= len(
        TENANTS
    )  # the fleet sees all of them


async def test_a_tenant_removes_its_own_dead_letters_only(url: str, stack: AsyncExitStack) -> None:
    store = await opened(stack, url)
    await filled(store)
    ids = [one.id for one in await store.dead_letters()]
    assert await store.seen_by("acme").remove_dead_letters(ids, "discarded") == 1
    assert sorted(one.tenant for one in await store.dead_letters()) == ["default", "globex"]
    assert (await store.counts())["espaco_acme.escavador_youtube", "discarded"] == 1


async def test_what_a_tenant_reads_costs_one_exchange_and_leaves_nothing_behind(url: str, tmp_path: Path) -> None:
    """What libpq sends and gets, in order: everything is sent before the first answer is waited for."""
    own = ReconnectingConnection(Server(url))
    setting = f"SELECT current_setting('{TENANT_SETTING}')"
    with (tmp_path / "trace").open("w+") as trace:
        async with own.exchange() as connection:
            connection.tenant = "acme"
            connection.pgconn.trace(trace.fileno())
            connection.pgconn.set_trace_flags(Trace.SUPPRESS_TIMESTAMPS)
            assert await fetch(connection, setting) == [("acme",)]
            connection.pgconn.untrace()
            connection.tenant = None
            assert await fetch(connection, setting) == [("*",)]
        await own.drop()
        trace.seek(0)
        sides = [line[0] for line in trace.read().splitlines()]
    assert "".join(side for side, _ in groupby(sides)) == "FB"


async def test_a_statement_that_fails_for_a_tenant_leaves_the_connection_to_the_fleet(url: str) -> None:
    own = ReconnectingConnection(Server(url))
    async with own.exchange() as connection:
        connection.tenant = "acme"
        with pytest.raises(psycopg.errors.DivisionByZero):
            await fetch(connection, "SELECT 1 / 0")
        connection.tenant = None
        assert await fetch(connection, f"SELECT current_setting('{TENANT_SETTING}')") == [("*",)]
    await own.drop()


async def test_tenants_that_read_at_once_are_not_confused(url: str, stack: AsyncExitStack) -> None:
    store = await opened(stack, url)
    await filled(store)

    async def one(tenant: str) -> tuple[str, str]:
        return tenant, text_of(await TenantStore(store, tenant).find(Query(limit=50)))

    for tenant, seen in await asyncio.gather(*(one(tenant) for tenant in TENANTS * 30)):
        assert mark(tenant) in seen
        assert not any(mark(other) in seen for other in set(TENANTS) - {tenant})


# -- when it is switched on --------------------------------------------------------------------------------------------


async def test_while_a_process_of_an_older_version_runs_it_waits(url: str, stack: AsyncExitStack) -> None:
    async def on() -> bool:
        return await once(row_security.is_on, ReconnectingConnection(Server(url)))

    older, newer = await opened(stack, url), await opened(stack, url)
    await older.join("antigo", timedelta(seconds=600))
    await sql(url, "UPDATE members SET names_tenant = false")  # as a process that does not know of it has joined
    await newer.join("novo", timedelta(seconds=600))
    for table in await raw(unbound(url), None):
        await sql(url, f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
    async with PostgresStore(url):
        assert not await on()
    await older.leave()
    async with PostgresStore(url):
        assert await on()
