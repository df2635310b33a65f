"""What is peculiar to PostgreSQL: a server that dies, connections that break, lost answers, and what its text is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from tools.servers.proxy import Proxy
from tools.servers.server import free_port

from contracts.writing import batch, begin, finished, write
from core.given import plan
from databases import database, named, opened, sql
from oraculo.adapters.stores.numbered import migrations
from oraculo.adapters.stores.postgres import connections
from oraculo.adapters.stores.postgres.store import PostgresStore
from oraculo.errors import SettingsError, StoreError, StoreTooNewError, StoreUnavailableError
from oraculo.ports.catalogue import Query
from oraculo.ports.dead_letters import DeadLetter
from oraculo.ports.journal import LockRequest
from servers import own
from waiting import DEADLINE_S, until


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
async def url() -> str:
    return await database()


async def at_last(store: PostgresStore, name: str) -> None:
    """It can be written to again."""

    async def written() -> bool:
        return bool(await finished(store, name))

    await until(written, ignoring=(StoreUnavailableError,))


def through(proxy: Proxy, url: str) -> str:
    """The same database, seen through the proxy."""
    head, _, name = url.rpartition("/")
    return f"{head.rpartition(':')[0]}:{proxy.port}/{name}"


# -- faults ------------------------------------------------------------------------------------------------------------


async def test_a_server_that_is_killed_under_load_loses_nothing_and_is_found_again(tmp_path: Path) -> None:
    server = own("postgres", tmp_path)
    await asyncio.to_thread(server.start)
    try:
        async with PostgresStore(server.url) as store:
            acknowledged: list[str] = []
            refused = 0
            stop = False

            async def load() -> None:
                nonlocal refused
                number = 0
                while not stop:
                    number += 1
                    try:
                        await finished(store, f"n{number}")
                        acknowledged.append(f"n{number}")
                    except StoreUnavailableError:
                        refused += 1
                        await asyncio.sleep(0.005)

            task = asyncio.create_task(load())
            for _ in range(2):
                enough = len(acknowledged) + 10

                async def busy(enough: int = enough) -> bool:
                    return len(acknowledged) >= enough

                await until(busy)
                await asyncio.to_thread(server.kill)
                with pytest.raises(StoreUnavailableError):
                    await store.counts()
                await asyncio.to_thread(server.start)
            await at_last(store, "depois")
            stop = True
            await task
            assert refused
            assert set(await store.locate(acknowledged)) == set(acknowledged)
            found = await store.find(Query(limit=100_000))
            loaded = await store.load([one.run for one in found])
            assert all(len(loaded[one.run]) == 2 for one in found), "a batch was written in part"
            assert sum(len(steps) for steps in loaded.values()) == len(await store.tail(0, 1_000_000))
    finally:
        await asyncio.to_thread(server.kill)


async def test_who_gives_up_on_a_frozen_server_is_not_held_up(tmp_path: Path) -> None:
    """Ten seconds is what psycopg takes by itself; ours takes none."""
    server = own("postgres", tmp_path)
    await asyncio.to_thread(server.start)
    try:
        async with PostgresStore(server.url) as store:
            await finished(store, "antes")
            server.freeze()
            async with asyncio.timeout(8):
                for call in (store.counts, lambda: finished(store, "durante")):
                    with pytest.raises(TimeoutError):
                        async with asyncio.timeout(0.2):
                            await call()
            server.thaw()
            await at_last(store, "depois")
    finally:
        server.thaw()
        await asyncio.to_thread(server.kill)


async def test_nobody_notices_connections_that_were_cut_between_two_calls(url: str, stack: AsyncExitStack) -> None:
    store = await opened(stack, url)
    story = await finished(store, "a")
    await asyncio.gather(*(store.locate(["a"]) for _ in range(20)))
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
    await sql(url, cut + "pg_backend_pid()")
    for _ in range(20):
        assert await store.locate(["a"]) == {"a": story.run}
    await finished(store, "b")  # nothing was written before: it begins anew


async def test_a_connection_that_is_reset_is_made_again(url: str, stack: AsyncExitStack) -> None:
    with Proxy(int(url.rpartition(":")[2].partition("/")[0])) as proxy:
        store = await opened(stack, through(proxy, url))
        story = begin(wanted=plan(2))
        await write(store, story.started)
        await store.begin(LockRequest({story.run: story.state.version}))
        proxy.reset()
        with pytest.raises(StoreUnavailableError):
            await write(store, story.ok(0))
        await at_last(store, "depois")
        (steps,) = (await store.load([story.run])).values()
        assert len(steps) == 1
        await store.close()


async def test_a_commit_without_an_answer_is_not_known_to_be_durable(url: str, stack: AsyncExitStack) -> None:
    witness = await opened(stack, url)
    with Proxy(int(url.rpartition(":")[2].partition("/")[0])) as proxy:
        store = await opened(stack, through(proxy, url))
        story = begin("escrita")
        await store.begin(LockRequest(names=["escrita"]))
        proxy.cut_after(0, reset=True)
        with pytest.raises(StoreUnavailableError):
            await write(store, story.started)

        async def there() -> bool:
            return bool(await witness.locate(["escrita"]) and await store.locate(["escrita"]))

        proxy.heal()
        await until(there, ignoring=(StoreUnavailableError,))
        found = await store.begin(LockRequest(names=["escrita"]))
        assert found.runs == {"escrita": story.run} and len(found.news[story.run]) == 1
        await store.abandon()
        await store.close()


async def test_what_a_frozen_process_has_locked_becomes_free(
    url: str, stack: AsyncExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert connections.SESSION_SETTINGS["idle_in_transaction_session_timeout"] == "5s"
    monkeypatch.setitem(connections.SESSION_SETTINGS, "idle_in_transaction_session_timeout", "200ms")
    frozen, other = await opened(stack, url), await opened(stack, url)
    await frozen.join("parado", timedelta(minutes=1))
    story = begin(wanted=plan(2))
    await write(frozen, story.started)
    asked = LockRequest({story.run: story.state.version})
    await frozen.begin(asked)
    async with asyncio.timeout(DEADLINE_S):
        await other.begin(asked)
        await write(other, story.ok(0))
    with pytest.raises(StoreUnavailableError):
        await write(frozen, begin().started)
    await at_last(frozen, "acordado")


async def test_a_listener_that_was_cut_comes_back_and_says_that_something_may_have_happened(
    url: str, stack: AsyncExitStack
) -> None:
    store, writer = await opened(stack, url), await opened(stack, url)
    async with asyncio.timeout(DEADLINE_S):
        await store.changed(DEADLINE_S)
        waiting = asyncio.create_task(store.changed(DEADLINE_S))
        await sql(
            url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = "
            "current_database()"
        )  # fmt: skip
        await waiting
        await finished(writer)
        await store.changed(DEADLINE_S)


async def test_a_server_that_is_away_is_not_asked_all_the_time() -> None:
    with Proxy(free_port()) as proxy:
        store = PostgresStore(f"postgresql://ana@127.0.0.1:{proxy.port}/oraculo")
        for _ in range(500):
            with pytest.raises(StoreUnavailableError, match=r"cannot reach the database oraculo on 127\.0\.0\.1"):
                await store.counts()
        assert 1 <= proxy.accepted < 100
        await store.close()


async def test_a_task_that_is_cancelled_in_the_middle_leaves_nothing_behind(url: str, stack: AsyncExitStack) -> None:
    store, other = await opened(stack, url), await opened(stack, url)
    story = begin(wanted=plan(3))
    await write(store, story.started)
    asked = LockRequest({story.run: story.state.version})
    await other.begin(asked)
    waiting = asyncio.create_task(store.begin(asked))
    await asyncio.wait([waiting], timeout=0.1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await other.abandon()
    await store.begin(asked)
    await write(store, story.ok(0))


# -- what it says ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ana:segredo@127.0.0.1:9/x",
        "postgres://ana:segredo@127.0.0.1:9,127.0.0.1:10/x?target_session_attrs=read-write",
        "postgresql://127.0.0.1:9/x?user=ana&password=segredo",
        "postgresql://ana:segredo@127.0.0.1:9/x?nada=1",
        "postgresql://ana:segredo@[::1/x",
    ],
)
async def test_the_password_is_never_shown(url: str) -> None:
    with pytest.raises((StoreError, SettingsError)) as caught:
        async with PostgresStore(url):
            pass
    assert "segredo" not in f"{caught.value!r} {caught.value}"
    error: BaseException | None = caught.value
    while error is not None:
        assert "segredo" not in str(error)
        error = error.__cause__


async def test_how_durable_it_is(url: str, stack: AsyncExitStack) -> None:
    assert await (await opened(stack, url)).durability() == "power-safe"
    await sql(url, f"ALTER DATABASE {url.rpartition('/')[2]} SET synchronous_commit = off")
    assert await (await opened(stack, url)).durability() == "best-effort"


async def test_text_that_postgresql_does_not_have(url: str, stack: AsyncExitStack) -> None:
    store = await opened(stack, url)
    for name in ("a\x00b", "\ud800"):
        assert await store.locate([name]) == {} and await store.summary(name) is None
        assert await store.find(Query(text=name)) == [] and await store.find(Query(destino=name)) == []
        assert (await store.begin(LockRequest(names=[name], keys=[name]))).runs == {}
        await store.abandon()
    dead = DeadLetter("q\x00", "not_json", "não é \x00", b"\x00\xff", "c\x00", {"h\x00": "\x00"})
    await store.append(batch(dead=[dead]))
    (kept,) = await store.dead_letters()
    assert kept.body == dead.body and kept.headers == dead.headers and kept.detail == "não é \ufffd"


# -- its schema --------------------------------------------------------------------------------------------------------


async def test_many_start_at_once_on_an_empty_database(stack: AsyncExitStack) -> None:
    url = await database(empty=True)
    stores = await asyncio.gather(*(opened(stack, url) for _ in range(4)))
    await finished(stores[0], "um")
    assert await stores[3].locate(["um"])


async def test_a_newer_database_is_refused(stack: AsyncExitStack) -> None:
    url = await database()
    await sql(url, "INSERT INTO schema_version VALUES (99)")
    newest = migrations("postgres")[-1][0]
    with pytest.raises(StoreTooNewError, match=f"schema 99, this Oráculo knows up to {newest}:"):
        await opened(stack, url)


async def test_a_database_without_anything_of_ours_is_left_alone_when_it_should_be() -> None:
    url = await database(empty=True)
    store = PostgresStore(url)
    with pytest.raises(StoreUnavailableError, match="there is no Oráculo in the database"):
        await store.open(create=False)
    await store.close()
    async with await psycopg.AsyncConnection.connect(url) as connection:
        cursor = await connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
        assert await cursor.fetchone() == (0,)


async def test_a_database_that_is_not_there() -> None:
    url = named(await database(), "nunca")
    with pytest.raises(StoreUnavailableError, match='database "nunca" does not exist'):
        async with PostgresStore(url):
            pass
