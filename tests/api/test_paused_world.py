"""A world of 10,000 open tickets is paused, restarted and resumed: nothing is lost, deadlines move by the pause."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2

from api.conftest import API, client_of, settings_for
from oraculo.api.app import create_app
from oraculo.service import Oraculo

RUNS, TICKETS = 50, 200
URL = f"{API}/orchestrations"


async def bulk(client: httpx2.AsyncClient, action: str) -> dict[str, Any]:
    body = {"filtro": {"rotulo": "mundo:um"}, "acao": action}
    answer: dict[str, Any] = (await client.post(f"{URL}/bulk", json=body, timeout=120)).json()
    return answer


async def shown(client: httpx2.AsyncClient) -> dict[str, Any]:
    return {f"m{n}": (await client.get(f"{URL}/m{n}")).json() for n in range(RUNS)}


async def pause_of(client: httpx2.AsyncClient, name: str) -> float:
    events = (await client.get(f"{URL}/{name}/events", params={"limit": 1000})).json()["events"]
    at = {one["evento"]: datetime.fromisoformat(one["em"]) for one in events}
    return (at["orchestration_resumed"] - at["orchestration_paused"]).total_seconds()


async def test_a_paused_world_resumes_with_nothing_lost_or_doubled(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    wanted = [{"fonte": "a", "timeout_s": 600, "max_tentativas": 1}] * TICKETS
    async with Oraculo(settings) as oraculo, client_of(create_app(oraculo)) as client:
        await client.post(f"{API}/pause", json={"motivo": "deploy"})
        asked = [{"correlation_id": f"m{n}", "coletas": wanted, "rotulos": ["mundo:um"]} for n in range(RUNS)]
        await oraculo.submit_many(asked)
        assert (await bulk(client, "pause"))["feitas"] == RUNS
        before = await shown(client)
        assert sum(len(one["tickets"]) for one in before.values()) == RUNS * TICKETS
    async with Oraculo(settings) as oraculo, client_of(create_app(oraculo)) as client:
        assert (await bulk(client, "resume"))["feitas"] == RUNS and (await bulk(client, "resume"))["feitas"] == 0
        after = await shown(client)
        for name in before:
            moved = datetime.fromisoformat(after[name]["prazo"]) - datetime.fromisoformat(before[name]["prazo"])
            assert moved.total_seconds() == await pause_of(client, name)
        await client.post(f"{API}/resume")
        taken: Counter[str] = Counter()
        while sum(taken.values()) < RUNS * TICKETS:
            leases = await oraculo.leases.lease("escavador_a", 1000, 5, "w")
            assert leases, f"{sum(taken.values())} came"
            orders = [httpx2.Response(200, content=one.delivery.body).json() for one in leases]
            taken.update(order["ticket_id"] for order in orders)
            answers = [
                {**order, "tipo_evento": "resultado_coleta", "payload": {"fonte": "a", "status": "ok", "dados": 1}}
                for order in orders
            ]
            assert (await client.post(f"{API}/results", json=answers, timeout=120)).is_success
        assert set(taken.values()) == {1} and len(taken) == RUNS * TICKETS
        ended = await shown(client)
        assert {one["status"] for one in ended.values()} == {"concluida"}
        assert await oraculo.leases.lease("escavador_a", 10, 0, "w") == []
