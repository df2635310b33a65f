"""Fluxo C over HTTP, without any server beside: plans in, tickets leased, results in, and the routes that users of the
Orchestrator Dynamic know."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

from api.conftest import API, CurlWorker, Start, assert_problem, client_of, settings_for
from oraculo.adapters.brokers.memory import MemoryBroker
from oraculo.api.app import create_app
from oraculo.ports.broker import BrokerTraits, Outgoing, PublishReport
from oraculo.ports.work import Fate
from oraculo.service import Oraculo
from waiting import DEADLINE_S

TICKETS = "execution.tickets"


def task(name: str, *needs: str, **more: Any) -> dict[str, Any]:
    return {"task_id": name, "task_type": "EXECUTE", "description": name, "dependencies": list(needs), **more}


def plan(plan_id: str, *tasks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "plan_id": plan_id, "intent_id": "i1", "tasks": list(tasks), "risk_band": "medium",
        "execution_order": [one["task_id"] for one in tasks], **more,
    }  # fmt: skip


class Site:
    """An orchestrator in this process, a client, and a worker over HTTP."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self.oraculo = Oraculo(settings_for(folder, **variables))

    async def __aenter__(self) -> Site:
        await self.oraculo.__aenter__()
        self._client = client_of(create_app(self.oraculo))
        self.client = await self._client.__aenter__()
        self.worker = CurlWorker(self.client)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.__aexit__(None, None, None)
        await self.oraculo.__aexit__()

    async def bring(self, document: dict[str, Any], expect: int = 202) -> dict[str, Any]:
        response = await self.client.post(f"{API}/plans", json=document)
        assert response.status_code == expect, response.text
        found: dict[str, Any] = response.json()
        return found

    async def answer(self, leased: dict[str, Any], **payload: Any) -> None:
        message = leased["mensagem"]
        envelope = {
            "correlation_id": message["correlation_id"], "ticket_id": message["ticket_id"],
            "tentativa": message["tentativa"], "tipo_evento": "resultado_execucao",
            "payload": {"status": "ok", **payload}, "timestamp": "2025-10-14T12:00:00Z",
        }  # fmt: skip
        response = await self.client.post(f"{API}/results", json=envelope)
        assert response.status_code == 202, response.text

    async def get(self, path: str, expect: int = 200) -> dict[str, Any]:
        response = await self.client.get(f"{API}{path}")
        assert response.status_code == expect, response.text
        found: dict[str, Any] = response.json()
        return found


async def test_a_decision_names_the_credential_besides_what_the_caller_says(started: Start) -> None:
    async with started(ORACULO_API_KEY="orc_plain") as client:
        client.headers["X-API-Key"] = "orc_plain"
        waiting = plan("own", task("a"), risk_band="critical", requires_approval=True)
        name = (await client.post(f"{API}/plans", json=waiting)).json()["correlation_id"]
        decided = await client.post(f"{API}/orchestrations/{name}/approve", json={"por": "ceo@empresa.com"})
        assert decided.json()["decidido_por"] == "ceo@empresa.com (api-key)"


@pytest.mark.parametrize("value", [[], [1], "plan", 7, None, True])
async def test_a_plan_that_is_no_object_is_refused(client: httpx2.AsyncClient, value: object) -> None:
    assert_problem(
        await client.post(f"{API}/plans", content=json.dumps(value), headers={"Content-Type": "application/json"}),
        422,
        "invalid_request",
    )


async def test_a_plan_from_the_first_ticket_to_the_result(tmp_path: Path) -> None:
    async with Site(tmp_path) as site:
        taken = await site.bring(plan("p1", task("a"), task("b", "a"), correlation_id="abc123"))
        assert taken["status"] == "accepted"
        assert (taken["correlation_id"], taken["workflow_id"]) == ("abc123", "orch-p1")
        (first,) = await site.worker.take(TICKETS, 1)
        message = first["mensagem"]
        assert (message["task_id"], message["tipo_evento"], message["status"]) == ("a", "iniciar_execucao", "PENDING")
        ticket = await site.get(f"/tickets/{message['ticket_id']}")
        assert ticket["fluxo_c"]["task_id"] == "a"
        page = await site.get("/tickets/by-plan/p1")
        assert (page["total"], page["has_more"]) == (2, False)
        assert [one["task_id"] for one in page["tickets"]] == ["a", "b"]
        assert page["tickets"][1]["dependencies"] == [page["tickets"][0]["ticket_id"]]
        assert (await site.get("/tickets/by-plan/p1?limit=1"))["has_more"] is True
        await site.answer(first, n=1)
        (second,) = await site.worker.take(TICKETS, 1)
        await site.answer(second, n=2)
        result = await site.get("/orchestrations/abc123/result?wait=10")
        assert result["fluxo_c"]["status"] == "SUCCESS"
        assert "Retry-After" not in (await site.client.get(f"{API}/workflows/orch-p1")).headers
        workflow = await site.get("/workflows/orch-p1")
        assert (workflow["status"], workflow["result_summary"]["status"]) == ("completed", "SUCCESS")
        assert (await site.get("/workflows/orch-flow-c-abc123"))["workflow_id"] == "orch-p1"
        status = await site.get("/flow-c/status")
        assert (status["total_processed"], status["success_rate"], status["active_executions"]) == (1, 1.0, 0)
        await site.bring(plan("p2", task("a", worker="robo")))  # none of its tickets is on the topic of Fluxo C
        assert (await site.get("/flow-c/status"))["active_executions"] == 1
        assert (await site.get("/workflows/orch-p2"))["task_queue"] == TICKETS


async def test_the_same_plan_again_and_another_one_of_the_same_name(tmp_path: Path) -> None:
    async with Site(tmp_path) as site:
        first = await site.bring(plan("p1", task("a"), correlation_id="abc123"))
        again = await site.client.post(f"{API}/plans", json=plan("p1", task("a"), correlation_id="abc123"))
        assert again.json() == first and again.headers["Idempotent-Replayed"] == "true"
        refused = await site.bring(plan("p1", task("b"), correlation_id="abc123"), 409)
        assert refused["code"] == "plan_id_taken"
        other = await site.bring(plan("p2", task("a"), correlation_id="abc123"))
        assert other["correlation_id"] == "abc123.p2"  # one intent, two plans
        shown = await site.get("/orchestrations/abc123.p2")
        assert shown["fluxo_c"]["correlation_id"] == "abc123"


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (plan("p", task("a", "b"), task("b", "a")), "cycle: a → b → a"),
        (plan("p", task("a", "ghost")), "'ghost', which is no task"),
        (plan("p", task("a"), task("a")), "'a' is used more than once"),
        (plan("p", task("a"), valid_until=1), "expired at 1970-01-01"),
        (plan("p", task("a", max_retries=10_000_000)), "max_retries"),
        (plan("p", task("a", timeout_ms=-1)), "timeout_ms"),
        (plan("p", task("a"), risk_band="purple"), "risk_band"),
        (plan("p"), "tasks"),
        ({"plan_id": "p"}, "neither a decision"),
        ({"decision_id": "d", "plan_id": "p", "final_decision": "approve"}, "no cognitive_plan"),
    ],
)
async def test_what_makes_no_plan_is_refused_and_recorded(tmp_path: Path, document: dict[str, Any], said: str) -> None:
    async with Site(tmp_path) as site:
        refused = await site.bring(document, 422)
        assert said in refused["detail"], refused
        events = (await site.get("/system-events"))["eventos"]
        assert events[0]["evento"] == "plan_refused"
        assert said in events[0]["detalhe"]
        assert (await site.get("/orchestrations"))["orchestrations"] == []


async def test_a_decision_to_reject_is_not_an_error(tmp_path: Path) -> None:
    async with Site(tmp_path) as site:
        inner = plan("p1", task("a"))
        decision = {
            "decision_id": "d1", "plan_id": "p1", "intent_id": "i1", "final_decision": "reject",
            "reasoning_summary": "risco alto", "cognitive_plan": inner,
        }  # fmt: skip
        taken = await site.bring(decision)
        assert taken == {"status": "rejected", "plan_id": "p1", "motivo": "risco alto"}
        assert (await site.get("/system-events"))["eventos"][0]["motivo"] == "rejected"


@pytest.mark.parametrize("approved", [True, False])
async def test_a_human_decides(tmp_path: Path, approved: bool) -> None:
    async with Site(tmp_path) as site:
        taken = await site.bring(plan("p1", task("a"), requires_approval=True, correlation_id="abc123"))
        assert taken["status"] == "awaiting_approval"
        shown = await site.get("/orchestrations/abc123")
        assert (shown["espera"], shown["fluxo_c"]["aguarda_aprovacao"]) == ("aguarda aprovação humana", True)
        assert await site.worker.lease(TICKETS, wait=0) == []
        path = taken["links"]["approve" if approved else "reject"]
        answer = (await site.client.post(path, json={"por": "ana", "motivo": "visto"})).json()
        assert (answer["aplicada"], answer["decidido_por"]) == (True, "ana")
        if approved:
            assert len(await site.worker.take(TICKETS, 1)) == 1
        else:
            assert (await site.get("/orchestrations/abc123/result"))["status"] == "cancelada"
        again = (await site.client.post(path, json={})).json()
        assert again["aplicada"] is False


async def test_no_more_tickets_are_with_workers_than_may_and_the_urgent_go_first(tmp_path: Path) -> None:
    async with Site(tmp_path, SCHEDULER_MAX_PARALLEL_TICKETS="2") as site:
        await site.bring(plan("calm", *(task(f"c{n}") for n in range(5)), risk_band="low"))
        await site.bring(plan("hot", *(task(f"h{n}") for n in range(2)), risk_band="critical"))
        taken = await site.worker.take(TICKETS, 2)
        assert await site.worker.lease(TICKETS, wait=0) == []
        order = [one["mensagem"]["task_id"] for one in taken]
        while len(order) < 7:
            await site.answer(taken.pop(0))
            taken += await site.worker.take(TICKETS, 1)
            order.append(taken[-1]["mensagem"]["task_id"])
            assert await site.worker.lease(TICKETS, wait=0) == []
        assert order == ["c0", "c1", "h0", "h1", "c2", "c3", "c4"]


async def test_the_ceiling_holds_after_a_restart(tmp_path: Path) -> None:
    async with Site(tmp_path, SCHEDULER_MAX_PARALLEL_TICKETS="2") as site:
        await site.bring(plan("p1", *(task(f"t{n}") for n in range(4)), correlation_id="abc123"))
        await site.worker.take(TICKETS, 2)
        assert len([one for one in (await site.get("/orchestrations/abc123"))["tickets"] if one["iniciado_em"]]) == 2
    async with Site(tmp_path, SCHEDULER_MAX_PARALLEL_TICKETS="2") as site:
        taken = await site.worker.take(TICKETS, 2)  # the broker in this process forgot them: they are sent again
        assert await site.worker.lease(TICKETS, wait=0) == []
        await site.answer(taken[0])
        assert len(await site.worker.take(TICKETS, 1)) == 1


class Lasting(MemoryBroker):
    """It stands for a server: what it was given is not sent again after a restart."""

    traits = BrokerTraits()


async def test_after_a_restart_tickets_of_a_class_of_workers_count_too(tmp_path: Path) -> None:
    tasks = [task(f"t{n}", worker="forno") for n in range(4)]
    for _ in range(2):
        site = Site(tmp_path, SCHEDULER_MAX_PARALLEL_TICKETS="2")
        site.oraculo._wiring.broker = Lasting()
        async with site:
            await site.bring(plan("p1", *tasks, correlation_id="abc123"))
            await site.oraculo.engine.drained()
            shown = (await site.get("/orchestrations/abc123"))["tickets"]
            assert [one["iniciado_em"] is not None for one in shown] == [True, True, False, False]
            assert site.oraculo.status().effects.held_back == 2


async def test_a_wide_plan(tmp_path: Path) -> None:
    tasks = [task(f"t{n}") for n in range(5000)]
    async with Site(tmp_path, SCHEDULER_MAX_PARALLEL_TICKETS="500") as site:
        await site.bring(plan("large", *tasks, correlation_id="abc123"))
        done = 0
        while done < len(tasks):
            leased = await site.worker.lease(TICKETS, max=500)
            envelopes = [
                {
                    "correlation_id": "abc123", "ticket_id": one["mensagem"]["ticket_id"], "tentativa": 1,
                    "tipo_evento": "resultado_execucao", "payload": {"status": "ok"},
                    "timestamp": "2025-10-14T12:00:00Z",
                }
                for one in leased
            ]  # fmt: skip
            if envelopes:
                response = await site.client.post(f"{API}/results", json=envelopes)
                assert response.status_code == 202
                done += len(envelopes)
        result = await site.get("/orchestrations/abc123/result?wait=20")
        assert result["fluxo_c"]["metrics"]["successful_tickets"] == len(tasks)


async def test_tickets_go_to_a_class_that_can_do_them(tmp_path: Path) -> None:
    async with Site(tmp_path, ORACULO_CAPABILITIES="gpu=cuda+python,deploy=helm") as site:
        await site.bring(plan("p1", task("a", required_capabilities=["cuda"]), task("b"), correlation_id="abc123"))
        (first,) = await site.worker.take("executador_gpu", 1)
        assert first["mensagem"]["required_capabilities"] == ["cuda"]
        (second,) = await site.worker.take(TICKETS, 1)
        await site.answer(first)
        await site.answer(second)
        assert (await site.get("/orchestrations/abc123/result?wait=10"))["fluxo_c"]["status"] == "SUCCESS"
        refused = await site.bring(plan("p2", task("a", required_capabilities=["rust"])), 422)
        assert "requires rust; no class of workers has all of that (deploy: helm; gpu: cuda, python)" in str(refused)


async def test_workflows_in_the_form_of_the_original(tmp_path: Path) -> None:
    async with Site(tmp_path) as site:
        body = {"cognitive_plan": plan("p1", task("a")), "correlation_id": "abc123", "priority": 9}
        started = (await site.client.post(f"{API}/workflows/start", json=body)).json()
        assert started == {"workflow_id": "orch-p1", "status": "started", "correlation_id": "abc123"}
        ask = f"{API}/workflows/orch-p1/query"
        tickets = (await site.client.post(ask, json={"query_name": "get_tickets"})).json()["result"]["tickets"]
        assert [one["priority"] for one in tickets] == ["CRITICAL"]
        status = (await site.client.post(ask, json={"query_name": "get_status"})).json()["result"]
        assert status["tickets_generated"] == 1
        assert (await site.client.get(f"{API}/workflows/orch-p1")).headers["Retry-After"] == "10"
        assert (await site.client.post(ask, json={"query_name": "dance"})).status_code == 422
        assert (
            await site.client.post(f"{API}/workflows/orch-nobody/query", json={"query_name": "get_status"})
        ).status_code == 404
        await site.get("/workflows/nonsense", 404)
        await site.get("/tickets/by-plan/nobody", 404)


async def test_who_asks_for_more_priority_goes_first_and_it_is_explained(tmp_path: Path) -> None:
    async with Site(tmp_path, SCHEDULER_MAX_PARALLEL_TICKETS="1") as site:
        await site.bring(plan("before", task("a"), correlation_id="before"))
        (first,) = await site.worker.take(TICKETS, 1)
        for name, priority in (("p1", 1), ("p10", 10)):  # of the same risk band
            body = {"cognitive_plan": plan(name, task("a")), "correlation_id": name, "priority": priority}
            assert (await site.client.post(f"{API}/workflows/start", json=body)).status_code < 300
        await site.answer(first)
        (second,) = await site.worker.take(TICKETS, 1)
        assert second["mensagem"]["correlation_id"] == "p10"
        await site.answer(second)
        (third,) = await site.worker.take(TICKETS, 1)
        assert third["mensagem"]["correlation_id"] == "p1"
        assert third["mensagem"]["allocation_metadata"]["priority_score"] == 0.4685
        response = await site.client.get(f"{API}/orchestrations/p10", headers={"Accept-Language": "en"})
        shown, ticket = response.json()["fluxo_c"], response.json()["tickets"][0]["fluxo_c"]
        assert (shown["priority"], shown["priority_score"], ticket["priority_score"]) == ("CRITICAL", 0.5685, 0.5685)
        assert "0.2 × 0.5 (priority CRITICAL)" in shown["priority_score_explanation"]
        panel = await site.client.get("/ui/runs/p10/tickets/0", headers={"Accept-Language": "en"})
        assert shown["priority_score_explanation"] in panel.text
        (began, *_) = (await site.get("/orchestrations/p10/events"))["events"]
        assert (began["evento"], began["priority_score"]) == ("orchestration_started", 0.5685)


async def test_an_order_says_that_its_worker_is_to_try_once(tmp_path: Path) -> None:
    """The original's workers try `sla.max_retries` times more by themselves."""
    async with Site(tmp_path, ORACULO_RETRY_BASE_S="0.001", ORACULO_RETRY_CAP_S="0.001") as site:
        await site.bring(plan("p1", task("a"), correlation_id="abc123"))
        for attempt in (1, 2, 3):
            (order,) = await site.worker.take(TICKETS, 1)
            record = order["mensagem"]
            assert (record["sla"]["max_retries"], record["metadata"]["max_attempts"]) == (0, "3")
            assert record["metadata"]["attempt"] == str(attempt)
            await site.answer(order, status="erro", erros=[{"codigo": "x", "mensagem": "não deu"}])
        ask = f"{API}/workflows/orch-p1/query"
        tickets = (await site.client.post(ask, json={"query_name": "get_tickets"})).json()["result"]["tickets"]
        assert [one["sla"]["max_retries"] for one in tickets][:1] == [2]


async def test_where_it_is_off_that_is_said(tmp_path: Path) -> None:
    async with Site(tmp_path, ORACULO_FLOW_C="off") as site:
        refused = await site.bring(plan("p1", task("a")), 409)
        assert refused["code"] == "flow_c_off"
        assert "ORACULO_FLOW_C=on" in refused["detail"]


async def test_telemetry_is_there_for_whoever_listens(tmp_path: Path) -> None:
    async with Site(tmp_path) as site:
        await site.bring(plan("p1", task("a"), correlation_id="abc123"))
        (leased,) = await site.worker.take(TICKETS, 1)
        await site.answer(leased)
        (frame,) = await site.worker.take("telemetry.orchestration", 1)
        assert frame["mensagem"]["correlation"]["plan_id"] == "p1"
        events: list[str] = []
        async with asyncio.timeout(DEADLINE_S):
            while "FLOW_C_COMPLETED" not in events:
                events += [one["mensagem"]["event_type"] for one in await site.worker.lease("telemetry-flow-c")]
        assert events == [
            "FLOW_C_STARTED", "STEP_COMPLETED", "STEP_COMPLETED", "STEP_COMPLETED", "TICKET_ASSIGNED",
            "TICKET_COMPLETED", "STEP_COMPLETED", "STEP_COMPLETED", "STEP_COMPLETED", "FLOW_C_COMPLETED",
        ]  # fmt: skip


class _NoDeadLetters(MemoryBroker):
    """Takes everything but dead letters, for a while."""

    closed = True

    async def publish(self, messages: Sequence[Outgoing]) -> PublishReport:
        if self.closed and any(message.queue.endswith(".dlq") for message in messages):
            return PublishReport(messages, reason="the topic of dead letters is closed")
        return await super().publish(messages)


async def test_a_decision_that_cannot_be_buried_comes_again_and_is_recorded_once(tmp_path: Path) -> None:
    broker = _NoDeadLetters()
    async with Oraculo(settings_for(tmp_path), broker=broker) as oraculo:
        assert oraculo.plans is not None and oraculo.store is not None
        bad = oraculo.plans.from_message(b"{nonsense", "plans.consensus")
        for _ in range(3):
            (outcome,) = await oraculo.plans.submit([bad])
            assert outcome.fate is Fate.RETRY
        assert await oraculo.store.dead_letter_groups() == []
        broker.closed = False
        (outcome,) = await oraculo.plans.submit([oraculo.plans.from_message(b"{nonsense", "plans.consensus")])
        assert outcome.fate is Fate.QUARANTINED
        assert await oraculo.store.dead_letter_groups() == [("plans.consensus", "not_json", 1)]
        assert len(await oraculo.store.system_events(10, "plan_refused")) == 1
        (letter,) = await broker.fetch("plans.consensus.dlq", limit=5, wait=1)
        assert (letter.body, letter.headers["oraculo-motivo"]) == (b"{nonsense", "not_json")
