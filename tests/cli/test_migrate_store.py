"""`migrate-store`: everything arrives, nothing is mixed up, and what was under way goes on."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from contracts.writing import batch, begin, finished, write
from core.given import at, plan
from databases import database
from oraculo.adapters.stores.postgres.store import PostgresStore
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.bench.work import REQUEST, make_worker
from oraculo.bootstrap.adapters import store_of
from oraculo.cli.exits import CommandError
from oraculo.cli.migrate_store import migrate_store
from oraculo.core.access import AccessRole, Limits
from oraculo.errors import SettingsError, StoreError
from oraculo.ports.api_keys import ApiKey, KeySession
from oraculo.ports.catalogue import Query
from oraculo.ports.dead_letters import DeadLetter
from oraculo.ports.journal import Key, LockRequest
from oraculo.ports.store import Store
from oraculo.ports.system_events import SystemEvent
from oraculo.ports.token_keys import StoredTokenKey
from oraculo.ports.users import LocalUser
from oraculo.service import Oraculo
from oraculo.settings.settings import load


async def content(store: Store) -> dict[str, Any]:
    """All that can be read of it."""
    found = await store.find(Query(limit=100_000))
    keys = (await store.begin(LockRequest(keys=["chave"]))).keys
    await store.abandon()
    return {
        "runs": found,
        "journal": await store.tail(0, 1_000_000),
        "results": {one.run: await store.result(one.run) for one in found},
        "live": await store.live(),
        "queues": await store.queues(),
        "keys": keys,
        "dead": await store.dead_letters(limit=1000),
        "types": await store.task_types(),
        "counts": await store.counts(),
        "events": await store.system_events(limit=1000),
        "api_keys": await store.api_keys(),
        "open_of_key": await store.open_runs_of("kaaaaaaaaaaa"),
        "session": await store.session("s1"),
        "token_keys": await store.token_keys(),
        "users": await store.users(),
    }


async def moved(source: str, target: str) -> None:
    """The command itself, in this process."""
    await asyncio.to_thread(migrate_store, source, target)


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'de.db'}"


async def filled(store: Store) -> None:
    for number in range(2500):
        if number % 500 == 0:
            await store.prune(at(5), 1)  # positions with holes
        if number % 50 == 0:
            await finished(store, f"n{number}", when=number)
    owing, running, told = begin("deve"), begin("roda", plan(2)), begin("avisa", plan(1, fila="f"))
    await store.append(batch(owing.started, keys=[Key("chave", "f", owing.run)], counts={("q", "applied"): 3}))
    await write(store, running.started, running.confirm(), running.ok(0, '{"título":"☃\\u0000"}'.encode()))
    await write(store, told.started, told.ok(0))
    await write(store, begin("de uma chave", actor="kaaaaaaaaaaa").started)
    await store.append(
        batch(dead=[DeadLetter("q", "not_json", "não \\ \t \n", bytes(range(256)), "c", {"h": "ç"})] * 3)
    )
    await store.remove_dead_letters([3], "discarded")
    await store.put_task_type("tipo", b'{"coletas":[]}', at(1))
    await store.record_system_event(SystemEvent("broker_switched", at(2), {"de": "a"}))
    key = ApiKey(
        "k1",
        AccessRole.TRABALHADOR,
        "default",
        ("q",),
        "ç",
        at(1),
        "local",
        "d",
        at(9),
        used_at=at(3),
        limits=Limits(5, 0.5),
    )
    await store.add_api_key(key)
    await store.put_user(LocalUser("ana", "acme", (AccessRole.ADMIN,), "$h", at(1), "local", at(2), at(3)))
    await store.add_session(KeySession("s1", "k1", "d", at(9)), at(1))
    await store.add_first_token_key(StoredTokenKey("t1", bytes(range(224, 256)), at(1), at(1)))
    await store.succeed_token_keys(StoredTokenKey("t2", b"\0" * 32, at(2), at(3)), at(9), at(2))


async def test_there_and_back_again(sqlite: str) -> None:
    url = await database(empty=True)
    async with SqliteStore(sqlite.removeprefix("sqlite:///")) as store:
        await filled(store)
        before = await content(store)
    await moved(sqlite, url)
    async with PostgresStore(url) as store:
        assert await content(store) == before
        await store.join("primeiro", timedelta(minutes=1))
        dead, runs = await store.rescue()
        assert [one.name for one in dead] == ["migrate-store"]
        assert runs == sorted(one.run for one in before["live"] if one.owes)
        assert await store.rescue() == ([], [])
        await store.leave()
        await finished(store, "depois")
        await store.append(batch(dead=[DeadLetter("q", "x", "", b"")]))
        after = await content(store)
        assert after["journal"][-1].position > before["journal"][-1].position and after["dead"][0].id == 4
        await store.join("segundo", timedelta(milliseconds=1))
        await store.rescue()
        await store.leave()
        after = await content(store)
    back = f"{sqlite}.volta"
    await moved(url, back)
    async with SqliteStore(back.removeprefix("sqlite:///")) as store:
        assert await content(store) == after
        await finished(store, "fim")
        assert (await store.tail(after["journal"][-1].position, 10))[0].position > after["journal"][-1].position


async def test_what_is_under_way_goes_on_in_the_other_store(sqlite: str) -> None:
    url = await database()
    async with Oraculo(load({"ORACULO_STORE": sqlite}, None)) as oraculo:
        accepted = await oraculo.submit_many([REQUEST] * 20)
    await moved(sqlite, url)
    async with Oraculo(load({"ORACULO_STORE": url}, None), workers=[make_worker()]) as oraculo:
        results = [await oraculo.result(one.correlation_id, wait=60) for one in accepted]
    assert [result and result["status"] for result in results] == ["concluida"] * 20


async def test_a_target_with_something_in_it_is_refused(sqlite: str) -> None:
    url = await database()
    for place in (url, sqlite):
        async with store_of(place) as store:
            await finished(store, "já está")
    for source, target in ((sqlite, url), (url, sqlite)):
        with pytest.raises(StoreError, match=r"is not empty \(runs, run_destinos, journal, results\)"):
            await moved(source, target)
        async with store_of(target) as store:
            assert len(await store.find(Query())) == 1


async def test_a_store_that_an_engine_works_on_is_refused(sqlite: str, stack: AsyncExitStack) -> None:
    url, empty = await database(), await database()
    engine: Store = await stack.enter_async_context(store_of(sqlite, exclusive=True))
    with pytest.raises(StoreError, match="another Oráculo is running"):
        await moved(sqlite, empty)
    await engine.close()
    member = await stack.enter_async_context(PostgresStore(url))
    await member.join("ocupado", timedelta(minutes=1))
    for source, target in ((url, f"{sqlite}.outro"), (sqlite, url)):
        with pytest.raises(StoreError, match=r"is running on .* \(ocupado\)"):
            await moved(source, target)


async def test_from_or_to_nowhere(sqlite: str) -> None:
    url = await database(empty=True)
    with pytest.raises(CommandError, match="no database"):
        await moved(sqlite, url)
    with pytest.raises(StoreError, match="there is no Oráculo"):
        await moved(url, sqlite)
    with pytest.raises(SettingsError, match="FROM"):
        await moved("mysql://x", sqlite)
    async with await psycopg.AsyncConnection.connect(url) as connection:
        cursor = await connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
        assert await cursor.fetchone() == (0,)


@pytest.fixture
async def stack() -> Any:
    async with AsyncExitStack() as stack:
        yield stack
