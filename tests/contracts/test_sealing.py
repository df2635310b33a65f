"""Payload encryption at rest: nothing of a payload is in the database, and a forgotten key erases what it sealed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import apsw
import psycopg
import pytest

from contracts.writing import batch, begin, write
from core.given import Story, coleta, plan
from databases import database, unbound
from oraculo.adapters.sealing.codec import Sealing
from oraculo.adapters.stores.postgres.store import PostgresStore
from oraculo.adapters.stores.sealed_rows import ERASED_DETAIL
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.core.replay import rebuild
from oraculo.errors import ErasedError, SealError, SettingsError, StoreError, StoreUnavailableError
from oraculo.ports.catalogue import Query, Summary
from oraculo.ports.dead_letters import DeadLetter
from oraculo.ports.journal import Key, LockRequest
from oraculo.ports.schedules import StoredSchedule
from oraculo.ports.store import Store

SECRET = "canary-Zk29xq-payload"
MASTER, ANOTHER = b"m" * 32, b"n" * 32
NOW = datetime(2026, 1, 1, tzinfo=UTC)
TABLES = ("journal", "results", "dead_letters", "schedules", "runs", "idempotency_keys", "data_keys")
Opener = Callable[..., Awaitable[Store]]


@dataclass
class Vault:
    """A database, and how it is opened: with these master keys, as another process would, or in clear."""

    url: str
    stack: AsyncExitStack

    async def open(self, *masters: bytes, stale_s: float = 0.0) -> Store:
        """Keys in memory are as old as the last reload; with `stale_s` they stay so until they have to be read."""
        sealing = Sealing(masters, clock=lambda: 0.0 if stale_s else next_instant())
        made = PostgresStore if self.url.startswith("postgresql") else SqliteStore
        return await self.stack.enter_async_context(made(self.url, sealing=sealing))

    async def raw(self) -> str:
        """Everything that is in the tables, as text."""
        said = []
        for table in TABLES:
            for row in await self.rows(f"SELECT * FROM {table}"):
                said += [bytes(one).decode("latin-1") if isinstance(one, bytes) else str(one) for one in row]
        return "\n".join(said)

    async def rows(self, sql: str) -> list[tuple[object, ...]]:
        if not self.url.startswith("postgresql"):
            return apsw.Connection(self.url).execute(sql).fetchall()
        async with await psycopg.AsyncConnection.connect(unbound(self.url), autocommit=True) as connection:
            cursor = await connection.execute(sql.encode())
            return await cursor.fetchall() if cursor.description else []


_clock = iter(range(0, 10_000_000, 1000))


def next_instant() -> float:
    return float(next(_clock))


@pytest.fixture(params=["sqlite", "postgres"])
async def vault(request: pytest.FixtureRequest, stack: AsyncExitStack, tmp_path: Path) -> Vault:
    return Vault(str(tmp_path / "o.db") if request.param == "sqlite" else await database(), stack)


def asked() -> Story:
    wanted = plan([coleta("youtube", attempts=1, parametros=f'{{"q":"{SECRET}"}}'.encode())])
    return begin("espaco_acme.um", wanted, fingerprint=f"sha-{SECRET}")


async def filled(store: Store) -> Story:
    """A run that ended, a dead letter and a schedule of `acme`, and a run of `default`."""
    story = asked()
    dead = DeadLetter("espaco_acme.escavador_youtube", "not_json", f"got {SECRET}", f"x{SECRET}".encode(), None)
    dead.headers = {"h": SECRET}
    key = Key("espaco_acme.k", f"sha-{SECRET}", story.run)
    first = batch(story.started, dead=[dead], keys=[key])
    await store.append(first)
    await write(store, story.confirm(when=1), story.ok(0, f'"{SECRET}"'.encode(), when=2), when=2)
    body = f'{{"q":"{SECRET}"}}'.encode()
    assert await store.save_schedule(StoredSchedule("espaco_acme.noite", body, b"{}", None)) is not None
    other = begin("de-outro")
    await write(store, other.started, other.ok(0), when=2)
    return story


async def all_read(store: Store, story: Story) -> None:
    assert rebuild((await store.load([story.run]))[story.run]) == story.state
    assert SECRET.encode() in (await store.result(story.run) or b"")
    (letter,) = await store.dead_letters(tenant="acme")
    assert (letter.detail, letter.body, letter.headers) == (f"got {SECRET}", f"x{SECRET}".encode(), {"h": SECRET})
    (listed,) = await store.dead_letters(tenant="acme", bodies=False)
    assert (listed.body, listed.size) == (b"", len(letter.body))
    schedule = await store.schedule("espaco_acme.noite")
    assert schedule is not None and SECRET.encode() in schedule.body
    assert len(await store.tail(0, 100)) == 5


async def test_nothing_of_a_payload_is_in_the_database(vault: Vault) -> None:
    store = await vault.open(MASTER)
    story = await filled(store)
    await all_read(store, story)
    raw = (await vault.raw()).replace(f"sha-{SECRET}", "")  # a digest of the request, in truth
    assert SECRET not in raw and "espaco_acme.um" in raw
    await all_read(await vault.open(ANOTHER, MASTER), story)  # another process, where the master key has changed


async def test_without_its_master_key_a_sealed_store_is_not_read(vault: Vault) -> None:
    story = await filled(await vault.open(MASTER))
    with pytest.raises(SettingsError, match=r"ORACULO_DATA_KEY.*'acme'.*another master key"):
        await (await vault.open(ANOTHER)).load([story.run])
    with pytest.raises(StoreError, match="set ORACULO_DATA_KEY"):
        await (await vault.open()).load([story.run])


async def test_what_was_in_clear_is_sealed_later_and_again_with_a_newer_key(vault: Vault) -> None:
    plain = await vault.open()
    story = await filled(plain)
    store = await vault.open(MASTER)
    await all_read(store, story)
    assert SECRET in (await vault.raw()).replace(f"sha-{SECRET}", "")
    assert await store.reseal("acme") == 6  # three steps, a result, a letter, a schedule
    assert await store.reseal("acme") == 0
    assert SECRET not in (await vault.raw()).replace(f"sha-{SECRET}", "")
    await all_read(store, story)
    (old,) = [one for one in await store.data_keys() if one.tenant == "acme"]
    sealing = Sealing([MASTER])
    sealing.take(await store.data_keys())
    assert await store.add_data_key(sealing.new_key("acme"))
    assert not await store.add_data_key(sealing.new_key("acme"))  # another process was faster
    assert await store.reseal("acme") == 6 and old.id not in str(await vault.rows("SELECT events FROM journal"))
    await all_read(store, story)


async def test_keys_are_wrapped_anew(vault: Vault) -> None:
    store = await vault.open(MASTER)
    story = await filled(store)
    both = Sealing([ANOTHER, MASTER])
    keys = await store.data_keys()
    anew = [one for key in keys if (one := both.rewrapped(key)) is not None]
    assert len(anew) == len(keys) and all([await store.rewrap_data_key(one) for one in anew])
    assert [both.rewrapped(one) for one in await store.data_keys()] == [None] * len(keys)
    await all_read(await vault.open(ANOTHER), story)


async def test_forgetting_a_key_erases_and_nothing_else_stops(vault: Vault) -> None:
    store = await vault.open(MASTER)
    story = await filled(store)
    (wrapped,) = [one.wrapped for one in await store.data_keys() if one.tenant == "acme"]
    done = await store.forget_data_keys("acme", NOW)
    assert (done.keys, done.live_runs, done.schedules) == (1, 0, 1)
    for reader in (store, await vault.open(MASTER)):
        with pytest.raises(ErasedError, match="the key of its tenant was forgotten"):
            await reader.events(story.run, 0, 10)
        with pytest.raises(ErasedError):
            await reader.result(story.run)
        assert await reader.load([story.run]) == {} and len(await reader.load([one.run for one in await live(reader)]))
        assert [one.erased for one in await reader.tail(0, 100)].count(True) == 3
        (letter,) = await reader.dead_letters(tenant="acme")
        assert (letter.detail, letter.body, letter.headers, letter.erased) == (ERASED_DETAIL, b"", {}, True)
        summary = await reader.summary("espaco_acme.um")
        assert summary is not None and summary.closed_at is not None and summary.fingerprint == ""
        assert await reader.schedule("espaco_acme.noite") is None
        found = await reader.begin(LockRequest(names=["espaco_acme.um"]))
        await reader.abandon()
        assert (found.runs, found.news) == ({"espaco_acme.um": story.run}, {})
    assert SECRET not in await vault.raw()
    if not vault.url.startswith("postgresql"):  # nor is the key in a page that is free, or in the log
        assert wrapped is not None
        for file in Path(vault.url).parent.iterdir():
            assert wrapped not in file.read_bytes(), file
    again = begin("espaco_acme.dois")
    await write(store, again.started, again.ok(0))  # with a key of its own
    assert rebuild((await store.load([again.run]))[again.run]) == again.state
    assert await store.prune(datetime(2100, 1, 1, tzinfo=UTC), 100) == 3


async def live(store: Store) -> list[Summary]:
    return [one for one in await store.find(Query(tenant=None)) if one.correlation_id == "de-outro"]


async def test_a_key_is_kept_while_something_needs_it(vault: Vault) -> None:
    store = await vault.open(MASTER)
    story = asked()
    await write(store, story.started)
    assert (await store.forget_data_keys("acme", NOW)).live_runs == 1
    assert rebuild((await store.load([story.run]))[story.run]) == story.state


async def test_a_process_that_does_not_know_yet_seals_nothing_with_a_forgotten_key(vault: Vault) -> None:
    late = await vault.open(MASTER, stale_s=60)
    ended = asked()
    await write(late, ended.started, ended.ok(0))
    await (await vault.open(MASTER)).forget_data_keys("acme", NOW)
    story = begin("espaco_acme.tarde")
    with pytest.raises(StoreUnavailableError):
        await write(late, story.started)
    assert await late.load([story.run]) == {}
    await write(late, story.started)  # the keys were read anew
    assert rebuild((await late.load([story.run]))[story.run]) == story.state


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE journal SET events = (SELECT events FROM journal AS other WHERE other.position = 1) WHERE position = 2",
        "UPDATE journal SET events = substr(events, 1, length(events) - 8) || 'AAAAAAAA' WHERE position = 2",
        "UPDATE journal SET events = substr(events, 1, 30) WHERE position = 2",
        "UPDATE results SET body = (SELECT events FROM journal WHERE position = 1)",
    ],
)
async def test_what_was_changed_or_moved_does_not_open(vault: Vault, change: str) -> None:
    store = await vault.open(MASTER)
    story = asked()
    await write(store, story.started)
    await write(store, story.ok(0, f'"{SECRET}"'.encode(), when=1), when=1)
    await vault.rows(change)
    with pytest.raises(SealError, match="does not open"):
        await (store.result(story.run) if "results" in change else store.load([story.run]))
