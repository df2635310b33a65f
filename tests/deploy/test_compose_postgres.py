"""The script that PostgreSQL's image runs on a new volume (compose.yaml), on a real server and with a real psql."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from tools.servers.postgres import Postgres

from oraculo.adapters.stores.postgres.connections import FLEET, TENANT_SETTING, Connection, fetch
from oraculo.adapters.stores.postgres.row_security import is_on, is_passed
from oraculo.adapters.stores.postgres.store import PostgresStore
from servers import own

ROLE = Path(__file__).parents[2] / "deploy/compose/postgres/role.sql"
PASSWORD = "it's a password"
TEMPORAL = ("temporal", "temporal_visibility")


def run(server: Postgres, program: str, *arguments: str, **environment: str) -> str:
    """What one of PostgreSQL's programs says of a server, as its superuser `postgres` unless arguments name another."""
    given = {"PATH": os.environ["PATH"], "PGHOST": "127.0.0.1", "PGPORT": str(server.port), "PGUSER": "postgres"}
    done = subprocess.run(
        [program, *arguments], env={**given, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def begun(server: Postgres) -> None:
    """The server as the image makes it: its superuser is `postgres`, and who comes over TCP says a password."""
    made = run(server, "psql", "-c", "CREATE ROLE postgres SUPERUSER LOGIN", PGUSER="oraculo", PGDATABASE="postgres")
    assert made == "CREATE ROLE\n"
    run(server, "psql", "-c", "ALTER ROLE oraculo RENAME TO first")
    run(server, "psql", "-v", "ON_ERROR_STOP=1", "--no-psqlrc", "-f", str(ROLE), ORACULO_PASSWORD=PASSWORD)
    rules = server.data / "pg_hba.conf"
    rules.write_text(f"host all oraculo 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
    run(server, "psql", "-c", "SELECT pg_reload_conf()")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Postgres]:
    with own("postgres", tmp_path / "new") as server:
        assert isinstance(server, Postgres)
        begun(server)
        yield server


def url(server: Postgres, database: str = "oraculo", password: str = PASSWORD) -> str:
    """How Oráculo and Temporal connect."""
    return make_conninfo(host="127.0.0.1", port=server.port, user="oraculo", password=password, dbname=database)


async def is_bound(store: str) -> bool:
    """True if row-level security binds who connects so."""
    async with await Connection.connect(store) as connection:
        return await is_on(connection) and not await is_passed(connection)


async def test_oraculo_owns_its_database_and_is_bound_by_its_policies(server: Postgres) -> None:
    async with PostgresStore(url(server)):
        pass
    assert await is_bound(url(server))
    async with await Connection.connect(url(server)) as connection:
        assert await fetch(connection, "SELECT count(*) FROM members") == [(0,)], "nobody said for whom it reads"
        assert await fetch(connection, "SELECT current_setting('is_superuser')") == [("off",)]


async def test_its_password_is_asked_for(server: Postgres) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        await Connection.connect(url(server, password="another"))


@pytest.mark.parametrize("database", TEMPORAL)
async def test_temporal_makes_its_databases(server: Postgres, database: str) -> None:
    """As its image does, at each start: from the database `postgres`, with an extension in that of visibility."""
    async with await Connection.connect(url(server, "postgres"), autocommit=True) as connection:
        await connection.execute(f"CREATE DATABASE {database}".encode())
        with pytest.raises(psycopg.errors.DuplicateDatabase):
            await connection.execute(f"CREATE DATABASE {database}".encode())
    async with await Connection.connect(url(server, database), autocommit=True) as connection:
        await connection.execute("CREATE EXTENSION IF NOT EXISTS btree_gin")
        await connection.execute("CREATE TABLE schema_version (version_partition int, db_name text)")
        await connection.execute("CREATE INDEX by_name ON schema_version USING gin (db_name)")


async def test_a_volume_of_an_earlier_release_moves(server: Postgres, tmp_path: Path) -> None:
    """As docs/upgrading.md says: there `oraculo` is the superuser, and the copy belongs to the ordinary role."""
    copy = str(tmp_path / "oraculo.dump")
    with own("postgres", tmp_path / "old") as old:
        assert isinstance(old, Postgres)
        run(old, "createdb", "--username", "oraculo", "oraculo")
        async with PostgresStore(old.database("oraculo")):
            pass
        assert not await is_bound(old.database("oraculo")), "it works there, and is warned of"
        keep = "INSERT INTO kept SELECT generate_series(1, 3)"
        for statement in ("CREATE EXTENSION btree_gin", "CREATE TABLE kept (number int)", keep):
            run(old, "psql", "--username", "oraculo", "--dbname", "oraculo", "-c", statement)
        run(old, "pg_dump", "--username", "oraculo", "--no-owner", "--format=custom", "--file", copy, "oraculo")
        there = run(old, "psql", "-U", "oraculo", "-d", "oraculo", "-Atc", "SELECT count(*) FROM pg_tables")
    run(server, "pg_restore", "--no-owner", "--role=oraculo", "--dbname=oraculo", "--exit-on-error", copy)
    async with PostgresStore(url(server)):
        pass
    assert await is_bound(url(server))
    async with await Connection.connect(url(server)) as connection:
        await connection.execute(f"SET {TENANT_SETTING} = '{FLEET}'".encode())
        assert await fetch(connection, "SELECT count(*) FROM pg_tables") == [(int(there),)]
        assert await fetch(connection, "SELECT sum(number) FROM kept") == [(6,)]
        foreign = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public' AND tableowner <> 'oraculo'"
        assert await fetch(connection, foreign) == [(0,)]
