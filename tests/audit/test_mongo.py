"""What MongoDB holds of an orchestration: collection by collection, once, and never older than it was."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

import mongo
from audit.given import audit_of, flow
from contracts.writing import begin, write
from core.given import Story, at, plan
from oraculo.adapters.sinks.mongo import collections, documents
from oraculo.adapters.sinks.mongo.audit import MongoAudit
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.bootstrap import adapters
from oraculo.core.commands import Approve
from oraculo.core.ticket_id import plan_id, ticket_id
from oraculo.errors import SinkUnavailableError
from oraculo.ports.system_events import SystemEvent
from oraculo.runtime.project import Projection
from oraculo.settings.settings import load
from oraculo.wire import audit, strict_json
from runtime.doubles import FailingStore, ManualClock

pytestmark = pytest.mark.xdist_group("audit")


@pytest.fixture
async def store() -> AsyncIterator[FailingStore]:
    async with FailingStore() as store:
        yield store


@pytest.fixture
def variables() -> dict[str, str]:
    return mongo.variables()


@pytest.fixture
async def database(variables: dict[str, str]) -> AsyncIterator[Any]:
    async with mongo.opened(variables) as database:
        yield database


@pytest.fixture
async def sink(variables: dict[str, str], store: FailingStore) -> AsyncIterator[MongoAudit]:
    sink = audit_of(variables, store)
    yield sink
    await sink.close()


async def project(store: SqliteStore, sink: MongoAudit) -> Projection:
    projection = Projection(store, sink, ManualClock())
    while await projection.round():
        pass
    return projection


async def failed_flow(store: SqliteStore) -> Story:
    """build completed, deploy failed: both are undone, the first undoing in vain."""
    story = begin("p-1", flow())
    await write(store, story.started, story.confirm(when=1), story.ok(0, when=2), story.confirm(1, when=3))
    await write(store, story.fail(1, when=4), story.confirm(2, when=5), story.fail(2, when=6), when=6)
    await write(store, story.confirm(3, when=7), story.ok(3, when=8), when=8)
    assert story.state.closed_at is not None
    return story


async def test_a_plan_of_fluxo_c(store: FailingStore, sink: MongoAudit, database: Any) -> None:
    story = await failed_flow(store)
    await project(store, sink)

    (ledger,) = await mongo.all_of(database, collections.LEDGER)
    assert (ledger["_id"], ledger["intent_id"], ledger["decision_id"], ledger["status"]) == (
        "p-1", "i-1", "d-1", "approved",
    )  # fmt: skip
    assert ledger["created_at"] == at(0)
    assert ledger["plan_data"]["a．b"] == {"＄x": [1, "18446744073709551615"]}

    tickets = {one["task_id"]: one for one in await mongo.all_of(database, collections.TICKETS)}
    build, deploy = tickets["build"], tickets["deploy"]
    assert build["_id"] == build["ticket_id"] == ticket_id(story.run, 0)
    assert (build["status"], deploy["status"], len(tickets)) == ("COMPENSATED", "FAILED", 4)
    assert build["compensation_ticket_id"] == ticket_id(story.run, 3)
    assert (build["risk_band"], build["priority"], build["security_level"]) == ("high", "HIGH", "INTERNAL")
    assert (ledger["priority_score"], build["allocation_metadata"]["priority_score"]) == (0.67, 0.67)
    assert build["allocation_metadata"]["allocation_method"] is None  # workers take tickets: nobody chose one
    assert (build["plan_id"], build["intent_id"], build["decision_id"]) == ("p-1", "i-1", "d-1")
    assert build["sla"] == {"deadline": 1760443380000, "timeout_ms": 180000, "max_retries": 0}
    assert build["qos"] == {"delivery_mode": "EXACTLY_ONCE", "consistency": "STRONG", "durability": "PERSISTENT"}
    assert build["parameters"] == {"ramo": "main", "n": "3"}
    assert (build["started_at"], build["completed_at"]) == (1760443201000, 1760443202000)
    assert deploy["dependencies"] == [build["_id"]] and deploy["required_capabilities"] == ["k8s"]
    assert "fora do ar" in deploy["error_message"]

    (workflow,) = await mongo.all_of(database, collections.WORKFLOWS)
    assert (workflow["_id"], workflow["status"], workflow["tickets_total"]) == ("orch-p-1", "parcial", 4)
    assert (workflow["closed_at"], workflow["correlation_id"]) == (at(8), "c-1")
    (result,) = await mongo.all_of(database, collections.RESULTS)
    assert (result["_id"], result["status"], result["consolidated_at"]) == ("orch-p-1", "PARTIAL", at(8))
    assert result["metrics"]["total_tickets"] == 2 and result["metrics"]["compensated_tickets"] == 1
    assert result["compensation_triggered"] is True and len(result["tickets_summary"]) == 2
    (incident,) = await mongo.all_of(database, collections.INCIDENTS)
    assert (incident["type"], incident["severity"]) == ("WORKER_FAILURE", "CRITICAL")
    assert incident["affected_tickets"] == [deploy["_id"]]
    (validation,) = await mongo.all_of(database, collections.VALIDATIONS)
    assert (validation["plan_id"], validation["workflow_id"]) == ("p-1", "orch-p-1")
    assert validation["result"]["valid"] is True
    assert validation["hash"] == hashlib.sha256(strict_json.canonical(validation["result"])).hexdigest()


async def test_an_ordinary_orchestration(store: FailingStore, sink: MongoAudit, database: Any) -> None:
    story = begin("comum", plan(1, 1))
    await write(store, story.started, story.confirm(when=1), story.ok(0, when=2))
    await project(store, sink)
    (workflow,) = await mongo.all_of(database, collections.WORKFLOWS)
    assert (workflow["plan_id"], workflow["status"]) == (plan_id(story.run), "em_execucao")
    assert workflow["correlation_id"] == "comum" and workflow["intent_id"] is None
    assert await mongo.all_of(database, collections.RESULTS) == []
    await write(store, story.ok(1, when=4), when=4)
    await project(store, sink)
    tickets = {one["task_id"]: one for one in await mongo.all_of(database, collections.TICKETS)}
    assert [(name, one["status"], one["task_type"]) for name, one in sorted(tickets.items())] == [
        ("coleta-0", "COMPLETED", "QUERY"), ("execucao-1", "COMPLETED", "EXECUTE"),
    ]  # fmt: skip
    assert tickets["execucao-1"]["dependencies"] == [tickets["coleta-0"]["_id"]]
    (result,) = await mongo.all_of(database, collections.RESULTS)
    assert result["status"] == "SUCCESS" and result["plan_id"] == plan_id(story.run)
    for name in (collections.LEDGER, collections.VALIDATIONS, collections.INCIDENTS):
        assert await mongo.all_of(database, name) == []


async def test_approval_and_plans_that_were_refused(store: FailingStore, sink: MongoAudit, database: Any) -> None:
    story = begin("p-2", flow("p-2", approval=True))
    await write(store, story.started)
    refusal = {"plan_id": "p-3", "motivo": "cycle", "detalhe": "a → b → a"}
    await store.record_system_event(SystemEvent("plan_refused", at(1), refusal))
    await store.record_system_event(SystemEvent("broker_switched", at(2), {}))
    await project(store, sink)
    (ledger,) = await mongo.all_of(database, collections.LEDGER)
    assert (ledger["status"], ledger["approved_by"]) == ("pending_approval", None)
    found = {one["plan_id"]: one for one in await mongo.all_of(database, collections.VALIDATIONS)}
    assert found["p-3"]["result"] == {"valid": False, "errors": ["cycle", "a → b → a"]}
    assert found["p-3"]["timestamp"] == at(1) and len(found) == 2
    await write(store, story.do(Approve(True, "ana"), 3), when=3)
    await project(store, sink)
    (ledger,) = await mongo.all_of(database, collections.LEDGER)
    assert (ledger["status"], ledger["approved_by"]) == ("approved", "ana")


async def test_indexes(store: FailingStore, sink: MongoAudit, database: Any) -> None:
    await failed_flow(store)
    await project(store, sink)
    for name, wanted in collections.INDEXES.items():
        there = await database[name].index_information()
        for index in wanted:
            assert there[index.name]["key"] == index.fields()
            assert bool(there[index.name].get("unique")) is index.unique
    again = audit_of(mongo.variables() | {"MONGODB_DATABASE": database.name}, store)
    await again.writer.prepare()
    assert {status for _, status in again.writer.indexes} == {"present"}
    await again.close()


async def everything(database: Any) -> dict[str, Any]:
    found = {name: await mongo.all_of(database, name) for name in collections.INDEXES}
    return {name: sorted(records, key=lambda one: str(one["_id"])) for name, records in found.items()}


async def test_what_comes_again_changes_nothing_and_old_never_replaces_new(
    store: FailingStore, sink: MongoAudit, database: Any, variables: dict[str, str]
) -> None:
    await failed_flow(store)
    await project(store, sink)
    before = await everything(database)
    assert len(before[collections.CHAIN]) == 9
    paused = Projection(store, sink, ManualClock())  # one that was held up, and goes on from where it was
    steps = await store.tail(0, 100)
    for count in (3, 6, 9):
        await paused._record(steps[:count])
        assert await everything(database) == before
        paused._give_up()


async def test_a_plan_that_runs_again_after_it_was_forgotten(
    store: FailingStore, sink: MongoAudit, database: Any
) -> None:
    await failed_flow(store)
    await project(store, sink)
    assert await store.prune(at(1000), 10) == 1
    again = begin("p-1", flow(), when=100)
    await write(store, again.started, when=100)
    await project(store, sink)
    (workflow,) = await mongo.all_of(database, collections.WORKFLOWS)
    assert (workflow["run"], workflow["status"], workflow["closed_at"]) == (again.run, "pendente", None)
    assert len(await mongo.all_of(database, collections.VALIDATIONS)) == 2


async def test_the_chain_follows_from_the_journal(
    store: FailingStore, sink: MongoAudit, database: Any, variables: dict[str, str]
) -> None:
    story = begin("p-1", flow())
    await write(store, story.started, story.confirm(when=1))
    await project(store, sink)
    await write(store, story.ok(0, when=2), when=2)
    restarted = audit_of(variables, store)  # it knows no hash
    await project(store, restarted)
    await restarted.close()
    expected = list(audit.chain((await store.load([story.run]))[story.run]))
    found = sorted(await mongo.all_of(database, collections.CHAIN), key=lambda one: one["seq"])
    assert found == expected and len(found) == 3
    assert found[0]["previous_hash"] == audit.GENESIS and found[1]["previous_hash"] == found[0]["hash"]
    assert list(audit.broken_links(found)) == [] and list(audit.differences(expected, found)) == []


class TestRefused:
    @pytest.fixture(autouse=True)
    def too_large(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A number that no MongoDB can hold, in tickets and in results."""
        for name in ("result", "ticket"):
            made = getattr(documents, name)
            monkeypatch.setattr(documents, name, lambda *given, made=made: {**made(*given), "n": 2**70})

    async def test_a_collection_that_may_lack_it(
        self, store: FailingStore, database: Any, variables: dict[str, str]
    ) -> None:
        await failed_flow(store)
        sink = audit_of(variables, store, (collections.TICKETS, collections.RESULTS))
        projection = await project(store, sink)
        assert projection.recorded == 9
        assert await mongo.all_of(database, collections.RESULTS) == []
        assert len(await mongo.all_of(database, collections.WORKFLOWS)) == 1
        kept = {one["_id"]: one for one in await mongo.all_of(database, collections.REFUSED)}
        assert "8-byte" in kept["workflow_results:orch-p-1"]["reason"] and len(kept) == 5
        assert sink.writer.left_out == {collections.RESULTS: 1, collections.TICKETS: 4}
        await sink.close()

    async def test_a_collection_that_must_have_it(self, store: FailingStore, sink: MongoAudit, database: Any) -> None:
        await failed_flow(store)
        with pytest.raises(SinkUnavailableError, match="refuses execution_tickets"):
            await project(store, sink)
        assert await store.claim_cursor("mongodb") == 0
        assert sink.writer.errors[collections.TICKETS, "insert", "OverflowError"] == 1


async def test_tickets_and_workflows_have_the_collections_that_are_set(
    store: FailingStore, database: Any, variables: dict[str, str]
) -> None:
    names = {"MONGODB_COLLECTION_TICKETS": "bilhetes", "MONGODB_COLLECTION_WORKFLOWS": "fluxos"}
    sink = adapters.audit_of(load({**variables, **names}, None), store, lambda *_: None)
    assert sink is not None
    await failed_flow(store)
    await project(store, sink)
    await sink.close()
    there = set(await database.list_collection_names())
    assert {"bilhetes", "fluxos"} <= there and not {"execution_tickets", "workflows"} & there
    assert (len(await mongo.all_of(database, "bilhetes")), len(await mongo.all_of(database, "fluxos"))) == (4, 1)
    assert "plan_id_1" in await database["bilhetes"].index_information()
