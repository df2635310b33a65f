"""Predicted durations over HTTP: off by default, learnt from runs, said of the next one in the reader's language."""

from __future__ import annotations

from typing import Any

import httpx2

from api.conftest import API, ONE, CurlWorker, Start
from waiting import until


async def ended(client: httpx2.AsyncClient, count: int) -> None:
    worker = CurlWorker(client)
    for _ in range(count):
        await client.post(f"{API}/orchestrations", json=ONE)
        await worker.do("escavador_youtube")


async def test_off_unless_asked_for(client: httpx2.AsyncClient) -> None:
    run = (await client.post(f"{API}/orchestrations", json=ONE)).json()["correlation_id"]
    assert (await client.get(f"{API}/orchestrations/{run}")).json()["previsao"] is None
    assert (await client.get(f"{API}/predictions")).json() == {"ativas": False, "previsoes": []}
    assert "orchestration_ml_predictions_total{" not in (await client.get("/metrics")).text
    assert "ORACULO_PREDICTIONS" in (await client.get("/sla")).text
    page = (await client.get(f"/runs/{run}")).text
    assert "/forecast" not in page


async def test_a_run_says_when_it_ends_once_such_runs_were_seen(started: Start) -> None:
    async with started(ORACULO_PREDICTIONS="true") as client:
        first = (await client.post(f"{API}/orchestrations", json=ONE)).json()["correlation_id"]
        unknown = (await client.get(f"{API}/orchestrations/{first}")).json()["previsao"]
        assert unknown["motivo"] == "sem_historico" and unknown["fim_p50"] is None
        assert unknown["frase"] == "ainda não se viu quanto demora uma de suas tarefas"
        await CurlWorker(client).do("escavador_youtube")
        await ended(client, 30)

        async def learnt() -> Any:
            found = (await client.get(f"{API}/predictions")).json()["previsoes"]
            return found if found and found[0]["amostras"] == 31 else None

        [one] = await until(learnt)
        assert one["tipo"] == "coleta" and one["destino"] == "youtube" and not one["deriva"]
        assert 0 <= one["p50_ms"] <= one["p90_ms"]
        asked = {**ONE, "timeout_s": 3600}
        run = (await client.post(f"{API}/orchestrations", json=asked)).json()["correlation_id"]
        answer = await client.get(f"{API}/orchestrations/{run}", headers={"Accept-Language": "en"})
        found = answer.json()["previsao"]
        assert found["risco"] == "nenhum" and found["frase"] == "should end in time" and found["motivo"] is None
        assert answer.json()["inicio"] <= found["fim_p50"] <= found["fim_p90"]
        assert "youtube" in (await client.get("/sla")).text
        assert "/forecast" in (await client.get(f"/runs/{run}")).text
        part = (await client.get(f"/ui/runs/{run}/forecast", headers={"Accept-Language": "en"})).text
        assert "should end in time" in part
        metrics = (await client.get("/metrics")).text
        assert 'orchestration_ml_predictions_total{model_type="duration",result="within"}' in metrics
        assert 'orchestration_ml_prediction_coverage{destino="coleta/youtube",tenant="default"}' in metrics
        assert 'orchestration_ml_prediction_error_bucket{le="+Inf",model_type="duration"}' in metrics
