"""Fluxo C on a real Kafka: decisions in, tickets out, results in, and what is told at the end. The others are plain
clients that know the Avro schemas and nothing of us."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tools.servers.temporal import settings_of

import mongo
import servers
from acceptance.conftest import Server
from acceptance.hive import DIAMOND, FAILED, Hive, Worker, decision, ended, frame, plan, task, unframe, verdict
from acceptance.journals import check
from databases import database
from oraculo.wire.flow import schemas
from servers import imitated, shared
from waiting import eventually

pytestmark = pytest.mark.xdist_group("flow_c")


@pytest.fixture(scope="module")
def hive() -> Hive:
    url = shared("kafka")
    if imitated("kafka"):
        pytest.skip("only an imitation of Kafka is here")
    return Hive(url.removeprefix("kafka://").rstrip("/"))


@pytest.fixture(scope="module")
def up(hive: Hive, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One orchestrator for the stories that do not hurt it; each has plans of its own."""
    one = Server(tmp_path_factory.mktemp("flow_c"), [])
    one.env |= hive.settings
    one.up()
    yield one
    assert one.terminate() == 0
    check(one.store)


def test_a_decision_becomes_tickets_results_and_one_story(up: Server, hive: Hive) -> None:
    wanted = plan("p1", DIAMOND, risk_band="high")
    with hive.worker() as worker:
        hive.decide(wanted)
        result = ended(up, "p1")
    assert result["status"] == "concluida"
    found = result["fluxo_c"]
    assert (found["status"], found["intent_id"], found["decision_id"]) == (
        "SUCCESS", "intent-of-p1", "decision-on-p1",
    )  # fmt: skip
    tickets = {ticket["task_id"]: ticket for ticket in worker.tickets if ticket["plan_id"] == "p1"}
    assert [name for plan_id, name in _seen(worker) if plan_id == "p1"] in (["a", "b", "c", "d"], ["a", "c", "b", "d"])
    for ticket in tickets.values():
        assert ticket["plan_id"] == "p1" and ticket["intent_id"] == "intent-of-p1"
        assert ticket["decision_id"] == "decision-on-p1" and ticket["correlation_id"] == "corr-p1"
        assert ticket["sla"] == {
            "deadline": ticket["created_at"] + 180_000, "timeout_ms": 180_000, "max_retries": 0,
        }  # fmt: skip
        assert ticket["qos"] == {"delivery_mode": "EXACTLY_ONCE", "consistency": "STRONG", "durability": "PERSISTENT"}
        assert (ticket["status"], ticket["priority"], ticket["risk_band"]) == ("PENDING", "HIGH", "high")
        assert ticket["metadata"]["workflow_id"] == "orch-p1"
    assert set(tickets["d"]["dependencies"]) == {tickets["b"]["ticket_id"], tickets["c"]["ticket_id"]}
    found_frames = hive.read(hive.topic("telemetry"), lambda seen: _of_plan(seen, "p1"))
    frames = [json.loads(one.value()) for one in found_frames if one.key() == b"p1"]
    assert frames[0]["correlation"]["workflow_id"] == "orch-p1"
    assert set(frames[0]["correlation"]["ticket_ids"]) == {ticket["ticket_id"] for ticket in tickets.values()}
    assert frames[0]["metrics"]["successful_tickets"] == 4


def test_a_plan_runs_once_however_often_it_comes(up: Server, hive: Hive) -> None:
    wanted = plan("p2", [task("a")])
    with hive.worker() as worker:
        for _ in range(3):
            hive.decide(wanted)
        hive.send(hive.topic("consensus"), json.dumps(wanted).encode())  # by itself, as JSON
        first = up.call("POST", "/api/v1/plans", json=wanted)
        assert first is not None and first.status_code == 202, first
        assert ended(up, "p2")["status"] == "concluida"
        hive.decide(plan("p2-after", [task("z")]))  # whatever came before it was dealt with
        ended(up, "p2-after")
        assert [name for plan_id, name in _seen(worker) if plan_id.startswith("p2")] == ["a", "z"]
    changed = up.call("POST", "/api/v1/plans", json=plan("p2", [task("other")]))
    assert changed is not None and changed.status_code == 409


def test_what_cannot_run_is_refused_with_the_reason_everywhere(up: Server, hive: Hive) -> None:
    topic = hive.topic("consensus")
    good = frame(schemas.CONSOLIDATED_DECISION, decision(plan("good", [task("a")])))
    bad = {
        "unknown_schema_id": b"\0\0\0\x27\x0f" + good[5:],
        "truncated_avro": good[: len(good) // 2],
        "invalid_plan": frame(
            schemas.CONSOLIDATED_DECISION, decision(plan("cyclic", [task("a", "b"), task("b", "a")]))
        ),
        "not_json": b"{nonsense",
    }
    expired = plan("expired", [task("a")], valid_until=1)
    unknown = plan("unknown", [task("a", "ghost")])
    negative = plan("negative", [task("a", timeout_ms=-1)])
    stubborn = plan("stubborn", [task("a", max_retries=10_000_000)])
    for raw in bad.values():
        hive.send(topic, raw)
    for about in (expired, unknown, negative, stubborn):
        hive.decide(about)
    hive.decide(plan("rejected", [task("a")]), final_decision="reject")
    with hive.worker() as worker:
        hive.decide(plan("last", [task("ok")]))
        assert ended(up, "last")["status"] == "concluida"
    refused_plans = {"good", "cyclic", "expired", "unknown", "negative", "stubborn", "rejected"}
    assert not refused_plans & {plan_id for plan_id, _ in _seen(worker)}
    letters = hive.read(f"{topic}.dlq", lambda seen: len(seen) >= 8)
    reasons = [{name: value.decode() for name, value in one.headers()} for one in letters]
    assert {one["oraculo-motivo"] for one in reasons} >= set(bad)
    assert {one.value() for one in letters} >= set(bad.values())
    details = " | ".join(one["oraculo-detalhe"] for one in reasons)
    for said in ("cycle: a → b → a", "expired at", "'ghost', which is no task", "timeout_ms", "max_retries"):
        assert said in details, details
    dead = up.call("GET", f"/api/v1/dead-letters?fila={topic}")
    assert dead is not None and len(dead.json()["dead_letters"]) == 8
    events = up.call("GET", "/api/v1/system-events?limit=100")
    assert events is not None
    refused = [one for one in events.json()["eventos"] if one["evento"] == "plan_refused"]
    assert {one.get("plan_id") for one in refused} >= {"cyclic", "expired", "unknown", "rejected"}
    for about in (expired, unknown, negative, stubborn, plan("cyclic", [task("a", "b"), task("b", "a")])):
        answer = up.call("POST", "/api/v1/plans", json=about)
        assert answer is not None and answer.status_code == 422, about["plan_id"]
        assert answer.json()["code"] == "invalid_plan"


def test_a_human_decides_over_http_or_over_kafka(up: Server, hive: Hive) -> None:
    with hive.worker() as worker:
        hive.decide(plan("ask1", [task("a")]), final_decision="review_required")
        hive.decide(plan("ask2", [task("b")]), requires_human_review=True)
        asked = hive.read("cognitive-plans-approval-requests", lambda seen: _plans(seen) >= {"ask1", "ask2"})
        about = [unframe(schemas.COGNITIVE_PLAN, one.value()) for one in asked if one.key() in (b"ask1", b"ask2")]
        assert [(one["approval_status"], one["risk_score"], one["risk_band"]) for one in about] == [
            ("pending", 0.2, "low")
        ] * 2
        waiting = up.call("GET", "/api/v1/workflows/orch-ask1")
        assert waiting is not None and waiting.json()["status"] == "awaiting_approval"
        assert not {"ask1", "ask2"} & {plan_id for plan_id, _ in _seen(worker)}
        approved = up.call("POST", "/api/v1/orchestrations/corr-ask1/approve", json={"por": "ana"})
        assert approved is not None and approved.json()["aplicada"] is True
        hive.send(
            "cognitive-plans-approval-responses",
            frame(schemas.APPROVAL_RESPONSE, verdict("ask2", "rejected", "rui", "muito arriscado")),
        )
        assert ended(up, "ask1")["status"] == "concluida"
        refused = ended(up, "ask2")
        assert refused["status"] == "cancelada"
        shown = up.call("GET", f"/api/v1/orchestrations/{refused['correlation_id']}")
        assert shown is not None and "muito arriscado" in shown.text
        assert [one for one in _seen(worker) if one[0] in ("ask1", "ask2")] == [("ask1", "a")]
    again = up.call("POST", "/api/v1/orchestrations/corr-ask1/reject", json={})
    assert again is not None and again.json()["aplicada"] is False


def _of_plan(messages: list[Any], plan_id: str) -> bool:
    return any(one.key() == plan_id.encode() for one in messages)


def _seen(worker: Worker) -> list[tuple[str, str]]:
    return [(ticket["plan_id"], ticket["task_id"]) for ticket in worker.tickets]


def _plans(messages: list[Any]) -> set[str]:
    return {one.key().decode() for one in messages if one.key()}


def test_a_failure_is_undone_and_reported(up: Server, hive: Hive) -> None:
    tasks = [task("build", kind="BUILD"), task("ship", "build", kind="DEPLOY"), task("check", "ship", kind="TEST")]
    with hive.worker(lambda ticket: FAILED if ticket["task_id"] == "check" else {}) as worker:
        hive.decide(plan("undo", tasks))
        result = ended(up, "undo")
    assert result["status"] == "parcial"
    found = result["fluxo_c"]
    assert found["compensation_triggered"] and found["metrics"]["compensated_tickets"] == 3
    assert [one["status"] for one in found["tickets_summary"]] == ["COMPENSATED"] * 3
    undoing = [one for one in worker.tickets if one["plan_id"] == "undo" and one["task_type"] == "COMPENSATE"]
    assert [ticket["parameters"]["action"] for ticket in undoing] == [
        "cleanup_test_env", "rollback_deployment", "delete_artifacts",
    ]  # fmt: skip
    assert all(ticket["sla"]["timeout_ms"] == 120_000 for ticket in undoing)
    incidents = hive.read(hive.topic("incidents"), lambda seen: len(seen) >= 1)
    incident = unframe(schemas.INCIDENT, incidents[0].value())
    assert (incident["incident_type"], incident["severity"]) == ("WORKER_FAILURE", "CRITICAL")
    assert incident["correlation_id"] == "corr-undo"
    assert incidents[0].key().decode() == incident["incident_id"]


def test_everything_at_once(hive: Hive, server: Callable[..., Server]) -> None:
    """Kafka, Temporal, PostgreSQL and MongoDB, all real: one decision, and what each of them knows of it afterwards."""
    mongodb = mongo.variables()
    own = Hive(hive.servers)
    one = server()
    one.env |= {**own.settings, **settings_of(servers.shared("temporal")), **mongodb}
    one.env["ORACULO_STORE"] = url = asyncio.run(database())
    one.up()
    with own.worker(lambda ticket: FAILED if ticket["task_id"] == "c" else {}) as worker:
        own.decide(plan("all", [*DIAMOND, task("e")], risk_band="medium"))
        result = ended(one, "all")
        told = own.read(own.topic("telemetry"), lambda seen: len(seen) >= 1)
    assert (result["status"], result["fluxo_c"]["status"]) == ("parcial", "PARTIAL")
    frame = json.loads(told[0].value())
    tickets = {ticket["ticket_id"] for ticket in worker.tickets}
    assert tickets <= set(frame["correlation"]["ticket_ids"])
    workflow = one.call("GET", "/api/v1/workflows/orch-all")
    assert workflow is not None and workflow.json()["status"] == "completed"

    async def audited() -> dict[str, list[dict[str, Any]]]:
        async with mongo.opened(mongodb) as found:
            names = ("cognitive_ledger", "execution_tickets", "workflow_results", "incidents", "validation_audit")
            return {name: await mongo.all_of(found, name) for name in names}

    def complete() -> dict[str, list[dict[str, Any]]] | None:
        found = asyncio.run(audited())
        return found if found["workflow_results"] and found["incidents"] else None

    audit = eventually(complete)
    assert {one["ticket_id"] for one in audit["execution_tickets"]} == set(frame["correlation"]["ticket_ids"])
    assert [one["plan_id"] for one in audit["cognitive_ledger"]] == ["all"]
    assert audit["workflow_results"][0]["metrics"] == result["fluxo_c"]["metrics"]
    assert {one["correlation_id"] for one in audit["execution_tickets"]} == {"corr-all"}
    assert audit["validation_audit"][0]["result"]["valid"] is True
    assert one.terminate() == 0
    assert check(url)["parcial"] == 1


def test_plans_of_one_intent_run_beside_each_other(up: Server, hive: Hive) -> None:
    with hive.worker() as worker:
        for number in range(4):
            hive.decide({**plan(f"twin-{number}", [task("a")]), "correlation_id": "one-intent"})
        for number in range(4):
            assert ended(up, f"twin-{number}")["fluxo_c"]["correlation_id"] == "one-intent"
        ours = [one for one in worker.tickets if one["plan_id"].startswith("twin-")]
    assert {one["correlation_id"] for one in ours} == {"one-intent"}
