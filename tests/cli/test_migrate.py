"""`oraculo migrate`: says what a database lacks, brings it up to date once, and refuses what it does not know."""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw
import psycopg
import pytest

from cli.processes import Cli
from databases import database
from oraculo.adapters.stores.numbered import migrations
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.bootstrap.adapters import store_of

PLANTED = "senha-plantada"


def sqlite_with(path: Path, schema: int) -> str:
    """A database to which only the first migrations were applied."""
    connection = apsw.Connection(str(path))
    for number, sql in migrations("sqlite"):
        if number <= schema:
            connection.execute(sql)
    connection.execute(f"PRAGMA user_version={schema}")
    connection.close()
    return f"sqlite:///{path}"


def postgres_with(schema: int) -> str:
    """The same on PostgreSQL."""
    url = asyncio.run(database(empty=True))
    if schema:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE schema_version (version integer NOT NULL)")
            for number, sql in migrations("postgres"):
                if number <= schema:
                    connection.execute(sql.encode())
            connection.execute("INSERT INTO schema_version VALUES (%s)", (schema,))
    return url


@pytest.fixture(params=["sqlite", "postgres"])
def flavour(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def made(flavour: str, folder: Path, schema: int) -> str:
    return sqlite_with(folder / "antigo.db", schema) if flavour == "sqlite" else postgres_with(schema)


def newest(flavour: str) -> int:
    return migrations(flavour)[-1][0]


class TestMigrate:
    def test_an_old_database_is_told_of_then_brought_up_to_date_then_left_alone(
        self, alone: Cli, flavour: str, tmp_path: Path
    ) -> None:
        store = made(flavour, tmp_path, 1)
        last, later = newest(flavour), [number for number, _ in migrations(flavour)[1:]]
        behind = {"schema": 1, "needed": last, "applied": [], "pending": later, "up_to_date": False}
        current = {"schema": last, "needed": last, "pending": [], "up_to_date": True}
        for _ in range(2):
            found = alone.json("migrate", "--check", code=1, ORACULO_STORE=store)
            assert found.pop("store")
            assert found == behind
        done = alone.json("migrate", ORACULO_STORE=store)
        assert done.items() >= {**current, "applied": later}.items()
        for arguments in (["migrate"], ["migrate", "--check"]):
            assert alone.json(*arguments, ORACULO_STORE=store).items() >= {**current, "applied": []}.items()

    def test_an_empty_place_gets_everything(self, alone: Cli, flavour: str, tmp_path: Path) -> None:
        path = tmp_path / "pasta" / "novo.db"
        store = f"sqlite:///{path}" if flavour == "sqlite" else postgres_with(0)
        assert alone.json("migrate", "--check", code=1, ORACULO_STORE=store)["schema"] == 0
        assert not path.parent.exists(), "--check changes nothing"
        assert alone.json("migrate", ORACULO_STORE=store)["schema"] == newest(flavour)

    @pytest.mark.parametrize("arguments", [["migrate"], ["migrate", "--check"], ["up", "--port", "0"]], ids=" ".join)
    def test_a_database_of_a_newer_version_is_one_line(
        self, alone: Cli, flavour: str, tmp_path: Path, arguments: list[str]
    ) -> None:
        store = made(flavour, tmp_path, 99)
        done = alone(*arguments, ORACULO_STORE=store)
        assert done.returncode == 5
        assert done.stdout == ""
        (line,) = done.stderr.splitlines()
        assert f"the database has schema 99, this Oráculo knows up to {newest(flavour)}" in line

    def test_people_read_a_line_without_a_password(self, alone: Cli) -> None:
        done = alone("migrate", ORACULO_STORE=f"postgresql://oraculo:{PLANTED}@127.0.0.1:1/oraculo")
        assert done.returncode == 5
        assert len(done.stderr.splitlines()) == 1
        assert PLANTED not in done.stdout + done.stderr

    def test_several_at_once_migrate_once(self, alone: Cli) -> None:
        store = postgres_with(1)

        async def all_at_once() -> list[int]:
            calls = (asyncio.to_thread(alone, "migrate", ORACULO_STORE=store) for _ in range(4))
            return [done.returncode for done in await asyncio.gather(*calls)]

        assert asyncio.run(all_at_once()) == [0, 0, 0, 0]
        with psycopg.connect(store) as connection:
            versions = connection.execute("SELECT version FROM schema_version ORDER BY 1").fetchall()
        assert versions == [(number,) for number, _ in migrations("postgres")]

    def test_a_database_with_a_running_engine_is_not_changed(self, alone: Cli, tmp_path: Path) -> None:
        store = sqlite_with(tmp_path / "antigo.db", 1)

        async def held() -> None:
            async with SqliteStore(str(tmp_path / "outro.db"), exclusive=True):
                (tmp_path / "antigo.db.lock").hardlink_to(tmp_path / "outro.db.lock")
                done = await asyncio.to_thread(alone, "migrate", ORACULO_STORE=store)
                assert done.returncode == 5
                assert "another Oráculo is running" in done.stderr

        asyncio.run(held())
        assert alone.json("migrate", "--check", code=1, ORACULO_STORE=store)["schema"] == 1


class TestStart:
    def test_an_old_database_is_refused_when_start_may_not_migrate(
        self, alone: Cli, flavour: str, tmp_path: Path
    ) -> None:
        store = made(flavour, tmp_path, 1)
        done = alone("up", "--port", "0", ORACULO_STORE=store, ORACULO_MIGRATE_AT_START="false")
        assert done.returncode == 5
        (line,) = done.stderr.splitlines()
        assert f"the database has schema 1, this Oráculo needs {newest(flavour)}" in line
        assert "run `oraculo migrate`" in line
        assert alone.json("migrate", "--check", code=1, ORACULO_STORE=store)["schema"] == 1, "nothing was changed"

    def test_an_empty_place_is_refused_and_stays_empty(self, alone: Cli, tmp_path: Path) -> None:
        path = tmp_path / "novo.db"
        done = alone("up", "--port", "0", ORACULO_STORE=f"sqlite:///{path}", ORACULO_MIGRATE_AT_START="false")
        assert done.returncode == 5
        assert "the database has schema 0" in done.stderr
        assert not path.exists()

    def test_one_that_is_up_to_date_is_taken(self, flavour: str, tmp_path: Path) -> None:
        url = made(flavour, tmp_path, newest(flavour))

        async def open_it() -> None:
            async with store_of(url, may_migrate=False) as store:
                assert await store.live() == []

        asyncio.run(open_it())
