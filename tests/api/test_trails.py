"""Trails over HTTP: off by default; with them, queues and ranks show what answers left behind."""

from __future__ import annotations

from typing import Any

import httpx2

from api.conftest import API, ONE, CurlWorker, Start
from waiting import until


async def test_off_unless_asked_for(client: httpx2.AsyncClient) -> None:
    assert (await client.get(f"{API}/trails")).json() == {"ativas": False, "meia_vida_s": None, "trilhas": []}
    assert "neural_hive_pheromone_strength{" not in (await client.get("/metrics")).text
    assert "Trail" not in (await client.get("/workers", headers={"Accept-Language": "en"})).text


async def test_answers_leave_a_trail_that_is_shown_and_counts_in_the_rank(started: Start) -> None:
    async with started(ORACULO_TRAILS="true", ORACULO_TRAIL_HALF_LIFE_S="3600") as client:
        said = {"worker": "w-1", "filas": ["escavador_youtube"], "concorrencia": 2}
        assert (await client.post(f"{API}/workers", json=said)).status_code == 201
        before = (await client.get(f"{API}/workers/w-1")).json()["pontuacao"]
        worker = CurlWorker(client)
        for _ in range(5):
            await client.post(f"{API}/orchestrations", json=ONE)
            await worker.do("escavador_youtube")

        async def followed() -> Any:
            found = (await client.get(f"{API}/trails")).json()["trilhas"]
            return found if found and found[0]["sucesso"] > 4.9 else None

        [one] = await until(followed)
        assert (one["fila"], one["worker"], one["falha"]) == ("escavador_youtube", None, 0)
        assert 0.8 < one["pontuacao"] < 0.95 and one["fator"] > 1.1
        found = (await client.get(f"{API}/workers")).json()
        [queue] = [one for one in found["filas"] if one["fila"] == "escavador_youtube"]
        assert queue["trilha"]["sucesso"] > 4.9
        assert (await client.get(f"{API}/workers/w-1")).json()["pontuacao"] > before
        metrics = (await client.get("/metrics")).text
        assert 'pheromone_strength{domain="escavador_youtube",layer="execution",pheromone_type="SUCCESS"}' in metrics
        page = (await client.get("/workers", headers={"Accept-Language": "en"})).text
        assert "Trail" in page and "fading marks: 5 good" in page


async def test_a_worker_that_tickets_are_given_to_has_a_trail_and_a_factor_of_its_own(started: Start) -> None:
    async with started(ORACULO_TRAILS="true", ENABLE_INTELLIGENT_SCHEDULER="true") as client:
        worker = CurlWorker(client, "w-1")

        async def work() -> str:
            name: str = (await client.post(f"{API}/orchestrations", json=ONE)).json()["correlation_id"]
            await worker.do("escavador_youtube")
            return name

        await work()

        async def followed() -> Any:
            found = (await client.get(f"{API}/trails")).json()["trilhas"]
            return found if any(one["worker"] == "w-1" for one in found) else None

        found = await until(followed)
        assert {(one["fila"], one["worker"]) for one in found} == {
            ("escavador_youtube", None),
            ("escavador_youtube", "w-1"),
        }
        name = await work()
        [ticket] = (await client.get(f"{API}/orchestrations/{name}")).json()["tickets"]
        assert ticket["alocacao"]["candidatos"][0]["fator"] > 1.0
