"""Objectives over HTTP: kept, shown with their budget, refused when they cannot be measured; alerts that were told."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from api.conftest import API, ONE, CurlWorker, Start, assert_problem
from waiting import until

URL = f"{API}/slos"
DONE = {"indicador": "execucoes_concluidas", "objetivo": 0.99}


async def test_kept_shown_listed_removed(client: httpx2.AsyncClient) -> None:
    answer = await client.put(f"{URL}/relatorios", json={**DONE, "congelar": {}})
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert made["nome"] == "relatorios" and made["janela_dias"] == 30 and made["orcamento"] is None
    assert made["congelar"] == {"abaixo": 0.2, "acima": 0.5, "acoes": ["BLOCK_DEPLOY"]}
    assert (await client.put(f"{URL}/relatorios", json={**DONE, "janela_dias": 7})).status_code == 200
    assert (await client.get(f"{URL}/relatorios")).json()["janela_dias"] == 7
    listed = (await client.get(URL)).json()
    assert listed["medidos"] is False and [one["nome"] for one in listed["slos"]] == ["relatorios"]
    assert "relatorios" in (await client.get("/sla")).text
    assert (await client.delete(f"{URL}/relatorios")).status_code == 204
    assert_problem(await client.get(f"{URL}/relatorios"), 404, "unknown_id")
    assert_problem(await client.delete(f"{URL}/relatorios"), 404, "unknown_id")
    events = (await client.get(f"{API}/system-events")).json()["eventos"]
    assert [(one["evento"], one["acao"], one["slo"]) for one in events][:1] == [
        ("slo_changed", "removed", "relatorios")
    ]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({**DONE, "objetivo": 1}, "a target of 1 leaves no error budget"),
        ({**DONE, "objetivo": 100}, "more than 0 and less than 1"),
        ({**DONE, "indicador": "x"}, "execucoes_no_prazo"),
        ({**DONE, "outra": 1}, "outra"),
        ({}, "indicador"),
    ],
)
async def test_what_is_wrong_is_said(client: httpx2.AsyncClient, document: dict[str, Any], said: str) -> None:
    answer = await client.put(f"{URL}/relatorios", json=document)
    assert answer.status_code == 422
    assert said in answer.text
    assert (await client.get(URL)).json()["slos"] == []


async def test_a_name_that_is_none_is_refused(client: httpx2.AsyncClient) -> None:
    assert_problem(await client.put(f"{URL}/a%20b", json=DONE), 422, "invalid_parameter")


async def test_budgets_alerts_and_metrics_of_a_server_that_measures(started: Start) -> None:
    async with started(ORACULO_SLA="true", ORACULO_FLOW_C="off") as client:
        await client.put(f"{URL}/tudo", json=DONE)
        worker = CurlWorker(client)
        for _ in range(3):
            await client.post(f"{API}/orchestrations", json=ONE)
            await worker.do("escavador_youtube")
        late = {**ONE, "timeout_s": 0.2}
        run = (await client.post(f"{API}/orchestrations", json=late)).json()["correlation_id"]

        async def measured() -> Any:
            found = (await client.get(f"{URL}/tudo")).json()["orcamento"]
            return found if found and found["bons"] == 3 and found["ruins"] == 1 else None

        budget = await until(measured)
        assert budget["restante"] == 0
        assert budget["queimas"][0] == {"horas": 1, "taxa": 25.0, "nivel": "CRITICAL", "esgota_em_h": 0.0}

        async def told() -> Any:
            page = (await client.get(f"{API}/sla/alerts", params={"limit": 500})).json()["alertas"]
            mine = [one for one in page if one["registro"].get("context", one["registro"]).get("correlation_id") == run]
            return mine if len(mine) == 2 else None

        missed, near = await until(told)
        assert (near["tipo"], missed["tipo"]) == ("DEADLINE_APPROACHING", "DEADLINE_EXCEEDED")
        assert missed["registro"]["event_type"] == "VIOLATION" and missed["registro"]["delay_ms"] >= 0
        first = (await client.get(f"{API}/sla/alerts", params={"limit": 1})).json()
        second = (await client.get(f"{API}/sla/alerts", params={"limit": 1, "cursor": first["next"]})).json()
        assert first["alertas"][0]["id"] != second["alertas"][0]["id"]
        assert (await client.get(f"{API}/sla/freezes")).json() == {"congelamentos": []}
        assert run in (await client.get("/sla")).text
        metrics = (await client.get("/metrics")).text
        assert 'orchestration_sla_alerts_published_total{alert_type="DEADLINE_EXCEEDED"} 1.0' in metrics
        assert 'orchestration_sla_burn_rate{slo="tudo",tenant="default",window_hours="1"} 2' in metrics
        assert 'orchestration_sla_budget_remaining_percent{slo="tudo",tenant="default"} 0.0' in metrics


async def test_alerts_go_to_the_topics_where_fluxo_c_is(started: Start) -> None:
    async with started(ORACULO_SLA="true") as client:
        late = {**ONE, "timeout_s": 0.2}
        run = (await client.post(f"{API}/orchestrations", json=late)).json()["correlation_id"]
        oraculo = client._transport.app.state.oraculo  # type: ignore[attr-defined]

        async def published() -> Any:
            counts = [(await oraculo.broker.backlog(topic)).waiting for topic in ("sla.alerts", "sla.violations")]
            return counts if counts == [1, 1] else None

        await until(published)
        [delivery] = await oraculo.broker.fetch("sla.violations", limit=1, wait=5)
        assert run.encode() in delivery.body
