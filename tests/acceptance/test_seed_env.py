"""The `.env` of seed 004 starts what it says. Only the addresses, the password and the list of MongoDB's hosts, which
is cut short where it is printed, are those of servers that are here; names of databases, topics and queues are as
printed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from temporalio.client import Client
from tools.servers.postgres import Postgres
from tools.servers.temporal import Temporal

import mongo
import servers
from acceptance.conftest import Server
from acceptance.hive import DIAMOND, plan
from oraculo.adapters.stores.postgres.store import PostgresStore
from oraculo.errors import StoreUnavailableError
from waiting import eventually

PRINTED = Path(__file__).parents[1] / "seed_004.env"
NAMESPACE = "neural-hive-mind"
# What `temporal-sql-tool setup-schema` makes: a table of the same name as one of ours, with other columns.
TEMPORALS = """
CREATE TABLE schema_version (version_partition INT NOT NULL, db_name VARCHAR(255) NOT NULL, curr_version VARCHAR(64));
CREATE TABLE schema_update_history (version_partition INT NOT NULL, new_version VARCHAR(64));
CREATE TABLE executions (shard_id INT NOT NULL)"""

pytestmark = pytest.mark.xdist_group("seed_env")


def ask(url: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(statement.encode())
        return found.fetchall() if found.description else []


def tables(url: str) -> set[str]:
    return {name for (name,) in ask(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    with servers.own("postgres", tmp_path_factory.mktemp("postgres")) as server:
        assert isinstance(server, Postgres)
        yield server


@pytest.fixture
def temporals(postgres: Postgres) -> Iterator[str]:
    """The URL of Temporal's own database, for its user, which may make others."""
    ask(postgres.url, "CREATE ROLE temporal LOGIN CREATEDB")
    ask(postgres.url, "CREATE DATABASE temporal OWNER temporal")
    url = postgres.database("temporal").replace("//oraculo@", "//temporal@")
    ask(url, TEMPORALS)
    yield url
    for name in ("temporal", "oraculo"):
        ask(postgres.url, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    ask(postgres.url, "DROP ROLE temporal")


def here(postgres: Postgres, temporal: Temporal) -> str:
    """The block with addresses of servers that are here."""
    kafka = servers.shared("kafka").removeprefix("kafka://")
    mine = {
        "TEMPORAL_HOST": "127.0.0.1",
        "TEMPORAL_PORT": str(temporal.port),
        "KAFKA_BOOTSTRAP_SERVERS": kafka.partition("?")[0].rstrip("/"),
        "POSTGRES_HOST": "127.0.0.1",
        "POSTGRES_PORT": str(postgres.port),
        "MONGODB_URI": mongo.url(),
        "REDIS_CLUSTER_NODES": servers.shared("redis").removeprefix("redis://").partition("/")[0],
        "OTEL_EXPORTER_ENDPOINT": "http://127.0.0.1:9",
    }
    lines = PRINTED.read_text(encoding="utf-8").splitlines()
    names = [line.partition("=")[0] for line in lines]
    assert set(mine) <= set(names)
    return "\n".join(f"{name}={mine[name]}" if name in mine else line for name, line in zip(names, lines, strict=True))


def test_the_printed_block_starts_temporal_and_leaves_its_database_alone(
    tmp_path: Path, postgres: Postgres, temporals: str
) -> None:
    folder = tmp_path / "temporal"
    folder.mkdir()
    with Temporal(folder, namespaces=(NAMESPACE,)) as temporal:
        (tmp_path / ".env").write_text(here(postgres, temporal), encoding="utf-8")
        server = Server(tmp_path, [])
        server.env = {"ORACULO_METRICS_PORT": "0"}  # 9090 may be taken here
        server.up()
        try:
            answer = server.call("POST", "/api/v1/plans", json=plan("plano-da-semente", DIAMOND))
            assert answer is not None and answer.status_code == 202, answer
            eventually(lambda: asyncio.run(described(temporal, "orch-plano-da-semente")) == "OrchestrationWorkflow")
        finally:
            server.terminate()
    assert tables(temporals) == {"schema_version", "schema_update_history", "executions"}
    assert ask(postgres.database("oraculo"), "SELECT count(*) FROM runs") == [(1,)]


async def described(temporal: Temporal, workflow: str) -> str | None:
    client = await Client.connect(temporal.url, namespace=NAMESPACE)
    found = await client.get_workflow_handle(workflow).describe()
    assert found.task_queue == "orchestration-tasks"
    return found.workflow_type


async def test_a_user_that_may_make_no_database_is_told_what_to_do(postgres: Postgres, temporals: str) -> None:
    ask(postgres.url, "ALTER ROLE temporal NOCREATEDB")
    with pytest.raises(StoreUnavailableError, match="CREATE DATABASE oraculo OWNER temporal"):
        await PostgresStore(temporals).open()
    assert "runs" not in tables(temporals)


async def test_tables_of_an_earlier_release_stay_where_they_are(postgres: Postgres, temporals: str) -> None:
    """A database of that name which was never Temporal's."""
    ask(temporals, "DROP TABLE schema_version, schema_update_history, executions")
    spare = postgres.database("spare")
    ask(postgres.url, "CREATE DATABASE spare")
    async with PostgresStore(spare):
        pass
    ask(postgres.url, "DROP DATABASE temporal WITH (FORCE)")
    ask(postgres.url, "ALTER DATABASE spare RENAME TO temporal")
    async with PostgresStore(postgres.database("temporal")) as store:
        assert store.shown.startswith("temporal on")


async def test_temporals_tables_are_known_under_any_name(postgres: Postgres, temporals: str) -> None:
    ask(postgres.url, "CREATE DATABASE zeit")
    other = postgres.database("zeit")
    ask(other, TEMPORALS)
    with pytest.raises(StoreUnavailableError, match="'zeit' is another program's, Temporal's it seems"):
        await PostgresStore(other).open()
    ask(postgres.url, "DROP DATABASE zeit WITH (FORCE)")
