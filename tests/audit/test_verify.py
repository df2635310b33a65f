"""The chain is whole although MongoDB was away; what somebody changed, took out or put in is found, with its place."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.progress import Progress

import mongo
from audit.given import audit_of, flow
from cli.processes import Cli
from contracts.writing import begin, finished, write
from core.given import at
from databases import database as new_database
from oraculo.adapters.sinks.mongo import collections
from oraculo.adapters.stores.postgres.store import PostgresStore
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.cli.audit import examine
from oraculo.errors import SinkUnavailableError, UnknownIdError
from oraculo.runtime.project import Projection
from oraculo.service import Oraculo
from oraculo.settings.settings import load
from oraculo.wire import audit
from oraculo.worker.worker import Worker
from runtime.doubles import ManualClock
from servers import own
from waiting import until

pytestmark = pytest.mark.xdist_group("audit")
leaves_sockets = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # see conftest.py

REQUEST = {"coletas": [{"fonte": "eco"}, {"fonte": "eco"}], "execucoes": [{"executador": "soma"}]}


def _audit_of(oraculo: Oraculo) -> Projection:
    """The projection to MongoDB; there are others."""
    (found,) = [one for one in oraculo.projections.all if one.name == "mongodb"]
    return found


SERIES = (
    "mongodb_pool_size", "mongodb_pool_checkedout", "mongodb_circuit_breaker_state", "mongodb_persistence_errors_total",
    "mongodb_persistence_duration_seconds_count", "mongodb_index_validation_total", "oraculo_projection_lag",
    "oraculo_projection_age_seconds", "oraculo_projection_steps_total", "oraculo_projection_failures_total",
)  # fmt: skip


def worker() -> Worker:
    made = Worker()

    @made.escavador("eco")
    async def eco(parametros: dict[str, Any]) -> dict[str, Any]:
        return parametros

    @made.executador("soma")
    async def soma(dados: list[Any]) -> dict[str, int]:
        return {"soma": len(dados)}

    return made


async def verified(folder: Path, name: str | None = None, **variables: str) -> dict[str, Any]:
    """What `oraculo audit verify` finds."""
    known = load({"ORACULO_STORE": f"sqlite:///{folder}/oraculo.db", **variables}, None)
    return (await examine(known, name, Progress(disable=True))).document()


async def told(folder: Path, *arguments: str, code: int = 0, **variables: str) -> Any:
    """What the command says."""
    return await asyncio.to_thread(lambda: Cli(folder).json("audit", *arguments, code=code, **variables))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "loja").mkdir()
    return tmp_path / "loja"


@leaves_sockets
async def test_mongodb_is_killed_under_load_and_nothing_is_missing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oraculo.adapters.sinks.mongo.writer.SERVER_SELECTION_TIMEOUT_MS", 200)
    server = own("ferretdb", tmp_path)
    store = f"sqlite:///{folder}/oraculo.db"
    with server:
        variables = mongo.variables(server.url)
        async with Oraculo(load({"ORACULO_STORE": store, **variables}, None), workers=[worker()]) as oraculo:
            projection = _audit_of(oraculo)
            names = [(await oraculo.submit(REQUEST)).correlation_id for _ in range(10)]
            await until(lambda: projection.recorded > 0)
            for _ in range(2):
                server.kill()
                names += [one.correlation_id for one in await oraculo.submit_many([REQUEST] * 10)]
                await until(lambda: projection.failing_since is not None and projection.lag.steps > 0)
                server.start()
                names += [one.correlation_id for one in await oraculo.submit_many([REQUEST] * 5)]
            for name in names:
                assert (await oraculo.result(name, wait=30))["status"] == "concluida"
            shown = oraculo.metrics.exposition().decode()
            assert [name for name in SERIES if re.search(rf"^{name}[{{ ]", shown, re.M) is None] == []
        async with Oraculo(load({"ORACULO_STORE": store, **variables}, None)) as oraculo:  # whatever was left
            projection = _audit_of(oraculo)
            await until(lambda: projection.active and projection.failing_since is None and projection.lag.steps == 0)
        found = await verified(folder, **variables)
        assert found["ok"] is True and (found["pending"], found["archived"]) == (0, 0)
        assert found["orchestrations"] == len(names) == 40
        async with mongo.opened(variables) as database:
            records = await mongo.all_of(database, collections.CHAIN)
            tickets = await mongo.all_of(database, collections.TICKETS)
            results = await mongo.all_of(database, collections.RESULTS)
        assert len(records) == found["records"] >= 4 * len(names)
        assert len(tickets) == 3 * len(names) and {one["status"] for one in tickets} == {"COMPLETED"}
        assert len(results) == len(names)


@asynccontextmanager
async def audited(folder: Path, variables: dict[str, str]) -> AsyncIterator[tuple[SqliteStore, Any]]:
    """Three orchestrations in a store and in MongoDB; the last one is a plan of Fluxo C."""
    async with SqliteStore(f"{folder}/oraculo.db") as store, mongo.opened(variables) as database:
        await finished(store, "um")
        await finished(store, "dois", when=1)
        story = begin("tres", flow("p-9"), when=2)
        await write(store, story.started, story.confirm(when=3), story.ok(0, when=4), when=4)
        sink = audit_of(variables, store)
        await Projection(store, sink, ManualClock()).round()
        await sink.close()
        yield store, database


async def test_what_was_changed_taken_out_or_put_in_is_found(folder: Path) -> None:
    variables = mongo.variables()
    async with audited(folder, variables) as (store, database):
        assert (await verified(folder, **variables))["ok"] is True
        chain = database[collections.CHAIN]
        runs = await store.locate(["um", "dois", "tres"])
        first, second, third = (await mongo.all_of(database, collections.CHAIN), runs["dois"], runs["tres"])
        key = f"{third}:1"
        body = next(one["body"] for one in first if one["_id"] == key)
        await chain.update_one({"_id": key}, {"$set": {"body": body.replace("high", "low")}})
        await chain.delete_one({"_id": f"{second}:1"})
        forged = {**next(one for one in first if one["run"] == runs["um"]), "_id": f"{runs['um']}:99", "seq": 99}
        await chain.insert_one(forged)
        found = await verified(folder, **variables)
        assert (found["ok"], found["problems_total"]) == (False, 3)
        problems = {one["kind"]: one for one in found["problems"]}
        assert (problems["altered"]["correlation_id"], problems["altered"]["seq"]) == ("tres", 1)
        assert problems["altered"]["detail"].endswith(": body")
        assert (problems["missing"]["correlation_id"], problems["missing"]["seq"]) == ("dois", 1)
        assert (problems["extra"]["correlation_id"], problems["extra"]["seq"]) == ("um", 99)
        one = await verified(folder, "dois", **variables)
        assert (one["orchestrations"], one["problems_total"], len(one["head"])) == (1, 1, 64)
        assert await told(folder, "verify", code=1, **variables) == {"mongodb": True, **found}


async def test_a_forger_who_seals_anew_is_found_by_the_journal(folder: Path) -> None:
    variables = mongo.variables()
    async with audited(folder, variables) as (store, database):
        run = (await store.locate(["um"]))["um"]
        records = sorted(await database[collections.CHAIN].find({"run": run}).to_list(), key=lambda one: one["seq"])
        previous = audit.GENESIS
        for record in records:
            record |= {"at": "2020-01-01T00:00:00Z", "previous_hash": previous}
            record["hash"] = previous = audit.seal(record, previous)
            await database[collections.CHAIN].replace_one({"_id": record["_id"]}, record)
        assert list(audit.broken_links(records)) == []  # by itself it is whole
        found = await verified(folder, **variables)
        assert [one["kind"] for one in found["problems"]] == ["altered"] * len(records)


async def test_what_the_journal_has_forgotten_is_checked_by_itself(folder: Path) -> None:
    variables = mongo.variables()
    async with audited(folder, variables) as (store, database):
        run = (await store.locate(["um"]))["um"]
        assert await store.prune(at(1000), 10) == 2
    found = await verified(folder, **variables)
    assert (found["ok"], found["deleted"], found["archived"]) == (False, 4, 0)  # nothing says that it was pruned
    assert [(one["kind"], one["seq"]) for one in found["problems"]] == [("deleted", 1), ("deleted", 1)]
    assert (await told(folder, "verify", "--pruned", "1d", **variables))["archived"] == 4
    assert await asyncio.to_thread(lambda: Cli(folder).json("prune", "--older-than", "1d", "--yes", **variables))
    found = await verified(folder, **variables)
    assert (found["ok"], found["orchestrations"], found["archived"], found["deleted"]) == (True, 1, 4, 0)
    async with mongo.opened(variables) as database:
        await database[collections.CHAIN].update_one({"run": run, "seq": 1}, {"$set": {"at": "2020"}})
    found = await verified(folder, **variables)
    assert {(one["kind"], one["run"]) for one in found["problems"]} == {("altered", run)}


async def test_a_row_that_cannot_be_read_hides_no_other_finding(folder: Path) -> None:
    variables = mongo.variables()
    async with audited(folder, variables) as (store, database):
        runs = await store.locate(["um", "dois", "tres"])
        await database[collections.CHAIN].delete_one({"_id": f"{runs['dois']}:1"})
    with _tampering(folder) as connection:
        last = "SELECT max(first) FROM journal WHERE run = ?1"
        connection.execute(f"UPDATE journal SET events = '[[' WHERE run = ?1 AND first = ({last})", (runs["um"],))
        (seq,) = connection.execute(last, (runs["um"],)).fetchone()
    found = await told(folder, "verify", code=1, **variables)
    shown = {(one["kind"], one["correlation_id"], one["seq"]) for one in found["problems"]}
    assert shown == {("unreadable", "um", seq), ("missing", "dois", 1)}
    assert [one["kind"] for one in (await verified(folder, "um", **variables))["problems"]] == ["unreadable"]


async def test_results_and_tickets_that_were_changed_are_found(folder: Path) -> None:
    variables = mongo.variables()
    async with audited(folder, variables) as (store, database):
        whole = await verified(folder, **variables)
        assert whole["ok"] is True and whole["documents"] == 2 + 3 + 2 + len(
            await mongo.all_of(database, collections.TICKETS)
        )
        runs = await store.locate(["um", "dois", "tres"])
        plan = {"plan_id": "p-9"}
        await database[collections.TICKETS].update_one({**plan, "task_id": "build"}, {"$set": {"status": "FAILED"}})
        await database[collections.TICKETS].delete_one({**plan, "task_id": "deploy"})
        await database[collections.WORKFLOWS].update_one({"run": runs["um"]}, {"$set": {"tickets_total": 7}})
        await database[collections.RESULTS].update_many({}, {"$set": {"status": "FAILED"}})
    with _tampering(folder) as connection:
        connection.execute(
            "UPDATE results SET body = replace(body, 'concluida', 'cancelada') WHERE run = ?", (runs["um"],)
        )
        connection.execute("DELETE FROM results WHERE run = ?", (runs["dois"],))
    found = await verified(folder, **variables)
    shown = sorted(
        (one["correlation_id"], one["kind"], one["detail"].partition(" is ")[0].split()[0]) for one in found["problems"]
    )
    assert shown == [
        ("dois", "altered", "workflow_results"), ("dois", "missing", "its"),
        ("tres", "altered", "execution_tickets"), ("tres", "missing", "execution_tickets"),
        ("um", "altered", "its"), ("um", "altered", "workflow_results"), ("um", "altered", "workflows"),
    ]  # fmt: skip


@contextmanager
def _tampering(folder: Path) -> Iterator[sqlite3.Connection]:
    """The database, for somebody who changes it by hand."""
    connection = sqlite3.connect(f"{folder}/oraculo.db")
    try:
        with connection:
            yield connection
    finally:
        connection.close()


async def test_without_mongodb_the_chain_is_made_from_the_journal(folder: Path) -> None:
    async with SqliteStore(f"{folder}/oraculo.db") as store:
        story = await finished(store, "um")
        expected = list(audit.chain((await store.load([story.run]))[story.run]))
    found = await verified(folder)
    assert (found["ok"], found["records"], found["head"]) == (True, 2, None)
    assert (await verified(folder, "um"))["head"] == expected[-1]["hash"]
    with pytest.raises(UnknownIdError):
        await verified(folder, "nada")
    assert await told(folder, "export") == expected
    target = folder / "audit.jsonl"
    assert (await told(folder, "export", "--to", str(target)))["records"] == 2
    assert [json.loads(line) for line in target.read_text().splitlines()] == expected


@leaves_sockets
async def test_mongodb_that_is_away_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oraculo.adapters.sinks.mongo.writer.SERVER_SELECTION_TIMEOUT_MS", 50)
    async with SqliteStore(f"{folder}/oraculo.db") as store:
        await finished(store, "um")
    with pytest.raises(SinkUnavailableError, match="MongoDB"):
        await verified(folder, MONGODB_URI="mongodb://127.0.0.1:9/", MONGODB_MIN_POOL_SIZE="0")


async def test_two_replicas_do_not_double_and_one_takes_over(folder: Path, tmp_path: Path) -> None:
    variables = mongo.variables()
    url = await new_database()
    with own("redis", tmp_path) as redis:
        settings = load({"ORACULO_STORE": url, "ORACULO_BROKER": redis.url, **variables}, None)
        replicas = [Oraculo(settings, workers=[worker()]) for _ in range(2)]
        for one in replicas:
            await one.__aenter__()
        await work(replicas[0], 10)
        await work(replicas[1], 10)
        await settled(replicas, url)
        (leaver,) = [one for one in replicas if _audit_of(one).active]
        await leaver.__aexit__()
        replicas.remove(leaver)
        await work(replicas[0], 5)
        before = _audit_of(leaver).recorded
        await settled(replicas, url, before)
        await replicas[0].__aexit__()
    found = await verified(folder, ORACULO_STORE=url, **variables)
    assert (found["ok"], found["orchestrations"], found["pending"]) == (True, 25, 0)
    async with mongo.opened(variables) as database:
        assert len(await mongo.all_of(database, collections.CHAIN)) == found["records"]


async def work(oraculo: Oraculo, count: int) -> None:
    for one in await oraculo.submit_many([REQUEST] * count):
        assert (await oraculo.result(one.correlation_id, wait=30))["status"] == "concluida"


async def settled(replicas: list[Oraculo], url: str, before: int = 0) -> None:
    """One of them has read all there is, each step once."""
    ours = [_audit_of(one) for one in replicas]
    async with PostgresStore(url) as store, asyncio.timeout(60):
        while True:
            steps = len(await store.tail(0, 10_000))
            if [one.active for one in ours].count(True) == 1 and before + sum(one.recorded for one in ours) == steps:
                return
            await asyncio.sleep(0.05)
