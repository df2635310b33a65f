"""What a store in a file must survive: its own past and future versions, kill -9 and a full disk."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from contracts.writing import batch, begin, finished, write
from core.given import at, plan
from oraculo.adapters.stores.numbered import migrations
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.core.state import fold
from oraculo.errors import StoreTooNewError, StoreUnavailableError
from oraculo.ports.catalogue import Query
from oraculo.ports.dead_letters import DeadLetter
from waiting import DEADLINE_S


def pragma(path: Path, name: str) -> object:
    connection = apsw.Connection(str(path))
    try:
        return connection.execute(f"PRAGMA {name}").fetchall()[0][0]
    finally:
        connection.close()


class TestMigrations:
    def test_they_are_numbered_from_one_without_gaps(self) -> None:
        assert [number for number, _ in migrations("sqlite")] == list(range(1, len(migrations("sqlite")) + 1))

    async def test_a_fresh_database_gets_the_newest_schema(self, tmp_path: Path) -> None:
        path = tmp_path / "pasta" / "nova" / "o.db"
        async with SqliteStore(str(path)):
            pass
        assert pragma(path, "user_version") == migrations("sqlite")[-1][0]
        assert pragma(path, "journal_mode") == "wal"

    async def test_no_other_user_of_the_machine_reads_what_is_stored(self, tmp_path: Path) -> None:
        before = os.umask(0o022)
        try:
            async with SqliteStore(str(tmp_path / "o.db"), exclusive=True) as store:
                await finished(store, "secreta")
                modes = {entry.name: entry.stat().st_mode & 0o777 for entry in os.scandir(tmp_path)}
        finally:
            os.umask(before)
        assert modes.keys() == {"o.db", "o.db-wal", "o.db-shm", "o.db.lock"}
        assert set(modes.values()) == {0o600}

    async def test_a_database_keeps_the_mode_that_its_owner_gave_it(self, tmp_path: Path) -> None:
        path = tmp_path / "o.db"
        path.touch(0o640)
        path.chmod(0o640)
        async with SqliteStore(str(path)):
            pass
        assert path.stat().st_mode & 0o777 == 0o640

    async def test_what_was_written_is_there_when_it_is_opened_again(self, tmp_path: Path) -> None:
        path = str(tmp_path / "o.db")
        async with SqliteStore(path) as store:
            story = await finished(store, "fica")
        for _ in range(2):
            async with SqliteStore(path) as store:
                assert await store.locate(["fica"]) == {"fica": story.run}
                assert (await store.load([story.run]))[story.run][0].events == story.started.events

    async def test_closing_leaves_one_file(self, tmp_path: Path) -> None:
        async with SqliteStore(str(tmp_path / "o.db")) as store:
            await finished(store)
            await store.find(Query())
        assert os.listdir(tmp_path) == ["o.db"]

    async def test_a_database_of_a_newer_version_is_refused_with_a_clear_line(self, tmp_path: Path) -> None:
        path = tmp_path / "o.db"
        async with SqliteStore(str(path)) as store:
            await finished(store)
        connection = apsw.Connection(str(path))
        connection.execute("PRAGMA user_version=99")
        connection.close()
        before = path.read_bytes()
        for exclusive in (True, False):
            with pytest.raises(
                StoreTooNewError, match=f"schema 99, this Oráculo knows up to {migrations('sqlite')[-1][0]}:"
            ) as error:
                await SqliteStore(str(path), exclusive=exclusive).open()
            assert "\n" not in str(error.value)
        assert path.read_bytes() == before

    async def test_what_is_no_database_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "o.db"
        path.write_bytes(b"this is not a database, it is a text " * 100)
        with pytest.raises(StoreUnavailableError, match="cannot open the database"):
            await SqliteStore(str(path)).open()
        with pytest.raises(StoreUnavailableError, match="cannot open the database"):
            await SqliteStore(str(tmp_path)).open()


class TestOneEngine:
    async def test_a_second_engine_on_the_same_file_is_refused(self, tmp_path: Path) -> None:
        path = str(tmp_path / "o.db")
        async with SqliteStore(path, exclusive=True):
            with pytest.raises(StoreUnavailableError, match="another Oráculo is running"):
                await SqliteStore(path, exclusive=True).open()
            async with SqliteStore(path) as reader:
                assert await reader.live() == []
        async with SqliteStore(path, exclusive=True):
            pass

    async def test_a_start_that_failed_holds_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "o.db"
        path.write_bytes(b"x" * 5000)
        with pytest.raises(StoreUnavailableError, match="cannot open the database"):
            await SqliteStore(str(path), exclusive=True).open()
        path.unlink()
        async with SqliteStore(str(path), exclusive=True):
            pass


async def test_every_commit_reaches_the_disk(tmp_path: Path) -> None:
    async with SqliteStore(str(tmp_path / "o.db")) as store:
        assert await store.durability() == "power-safe"
    async with SqliteStore(":memory:") as store:
        assert await store.durability() == "best-effort"


# -- kill -9 -----------------------------------------------------------------------------------------------------------

WRITER = """
import asyncio, sys
from contracts.writing import begin, write
from core.given import plan
from oraculo.adapters.stores.sqlite.store import SqliteStore

async def main(path, life):
    async with SqliteStore(path) as store:
        for number in range(100_000):
            stories = [begin(f"{life}-{number}-{n}", plan(2, 1), when=100 * life) for n in range(5)]
            steps = [story.started for story in stories]
            for story in stories:
                steps += [story.ok(0, b'"' + b"x" * 2000 + b'"'), story.ok(1)]
            await write(store, *steps)
            print(number, flush=True)

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


def write_until_killed(path: Path, life: int, batches: int) -> list[str]:
    """The batches that the writer said were durable before it was killed."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-c", WRITER, str(path), str(life)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(batches)]
        process.send_signal(signal.SIGKILL)
        lines += [line for line in process.stdout if line.endswith("\n")]
    assert process.returncode == -signal.SIGKILL
    return [f"{life}-{int(line)}" for line in lines]


async def test_kill_9_loses_nothing_that_was_acknowledged_and_breaks_nothing(tmp_path: Path) -> None:
    path = tmp_path / "o.db"
    acknowledged: list[str] = []
    for life in range(3):
        acknowledged += write_until_killed(path, life, 20 + 13 * life)
        assert pragma(path, "integrity_check") == "ok"
    async with SqliteStore(str(path)) as store:
        names = [f"{number}-{n}" for number in acknowledged for n in range(5)]
        assert set(await store.locate(names)) == set(names)
        found = await store.find(Query(limit=100_000))
        assert len(found) % 5 == 0, "a batch was written in part"
        loaded = await store.load([one.run for one in found])
        for one in found:
            state = fold((recorded.at, recorded.events) for recorded in loaded[one.run])
            assert (state.version, state.status, state.open) == (one.version, one.status, one.open)
            assert len(loaded[one.run]) == 3
        await finished(store, "depois", when=1_000_000)


# -- a full disk -------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one mebibyte."""
    folder = tmp_path / "pequeno"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        pytest.skip(f"cannot mount a small file system: {error}")
    if mounted.returncode:
        pytest.skip(f"cannot mount a small file system: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


async def test_a_full_disk_refuses_keeps_everything_and_works_again_when_there_is_space(small_disk: Path) -> None:
    ballast = small_disk / "lastro"
    ballast.write_bytes(b"\0" * 400_000)
    async with SqliteStore(str(small_disk / "o.db")) as store:
        written: list[str] = []
        for n in range(1000):
            story = begin(f"n{n}", plan(1))
            steps = [story.started, story.ok(0, b'"' + b"x" * 20_000 + b'"')]
            dead = [DeadLetter("q", "not_json", "", b"y" * 1000)]
            try:
                await store.append(batch(*steps, dead=dead, counts={("q", "applied"): 1}))
            except StoreUnavailableError as error:
                assert "full" in str(error)
                break
            written.append(f"n{n}")
        else:
            pytest.fail("the disk never filled up")
        assert written

        async def nothing_half_written() -> None:
            assert {one.correlation_id for one in await store.find(Query(limit=10_000))} == set(written)
            assert len(await store.dead_letters(limit=10_000)) == len(written)
            assert await store.counts() == {("q", "applied"): len(written)}
            assert len(await store.tail(0, 10_000)) == 2 * len(written)

        await nothing_half_written()
        with pytest.raises(StoreUnavailableError):
            await store.append(batch(*steps, dead=dead, counts={("q", "applied"): 1}))
        await nothing_half_written()
        ballast.unlink()
        await store.append(batch(*steps, dead=dead, counts={("q", "applied"): 1}))
        written.append(f"n{n}")
        await nothing_half_written()
        await store.put_task_type("t", b"{}", at(0))
    assert pragma(small_disk / "o.db", "integrity_check") == "ok"


async def test_reads_do_not_wait_for_a_writer(tmp_path: Path) -> None:
    path = str(tmp_path / "o.db")
    async with SqliteStore(path) as store:
        await finished(store, "antes")
        other = apsw.Connection(path)
        other.execute("BEGIN IMMEDIATE")
        try:
            async with asyncio.timeout(DEADLINE_S):
                assert await store.locate(["antes"])
        finally:
            other.execute("ROLLBACK")
            other.close()
        story = begin()
        await write(store, story.started)
