"""Pauses of a destination and of everything: over HTTP, through a restart, and by another process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2

from api.conftest import API, assert_problem, client_of, settings_for
from oraculo.api.app import create_app
from oraculo.core.access import LOCAL
from oraculo.service import Oraculo
from waiting import until

URL = f"{API}/orchestrations"


def request_of(name: str) -> dict[str, Any]:
    return {"coletas": [{"fonte": "a"}, {"fonte": "b"}], "correlation_id": name}


async def leased(client: httpx2.AsyncClient, queue: str, wait: float = 0) -> list[dict[str, Any]]:
    body = {"max": 10, "wait": wait, "worker": "w"}
    found: list[dict[str, Any]] = (await client.post(f"{API}/queues/{queue}/lease", json=body)).json()["mensagens"]
    return found


async def test_orders_of_a_paused_destination_wait_and_those_of_others_go(client: httpx2.AsyncClient) -> None:
    told = (await client.post(f"{API}/queues/escavador_a/pause", json={"motivo": "fora do ar"})).json()
    assert (told["fila"], told["pausada"], told["mudou"]) == ("escavador_a", True, True)
    assert (await client.post(f"{API}/queues/escavador_a/pause")).json()["mudou"] is False
    await client.post(URL, json=request_of("d1"))
    assert len(await leased(client, "escavador_b", 5)) == 1
    assert await leased(client, "escavador_a") == []
    shown = (await client.get(f"{URL}/d1")).json()["tickets"]
    assert (shown[0]["status"], shown[0]["prazo"]) == ("pendente", None)  # its time has not begun
    [listed] = (await client.get(f"{API}/pauses")).json()["pausas"]
    assert (listed["fila"], listed["ator"], listed["motivo"]) == ("escavador_a", "local", "fora do ar")
    assert (await client.post(f"{API}/queues/escavador_a/resume", json={"motivo": "voltou"})).json()["mudou"] is True
    assert len(await leased(client, "escavador_a", 5)) == 1
    kinds = {"destination_paused", "destination_resumed"}
    events = (await client.get(f"{API}/system-events")).json()["eventos"]
    found = [(one["evento"], one["fila"], one["ator"], one["motivo"]) for one in events if one["evento"] in kinds]
    assert found == [
        ("destination_resumed", "escavador_a", "local", "voltou"),
        ("destination_paused", "escavador_a", "local", "fora do ar"),
    ]


async def test_what_waits_in_our_own_queue_is_not_handed_out_while_all_is_paused(client: httpx2.AsyncClient) -> None:
    await client.post(URL, json=request_of("d2"))
    [order] = await leased(client, "escavador_a", 5)
    await client.post(f"{API}/leases/{order['lease_id']}/release")
    assert (await client.post(f"{API}/pause")).json()["fila"] is None
    assert await leased(client, "escavador_a", 0.2) == []
    await client.post(URL, json=request_of("d3"))  # requests are accepted meanwhile
    assert await leased(client, "escavador_b", 0.2) == []
    assert (await client.post(f"{API}/resume")).json()["pausada"] is False
    assert len(await leased(client, "escavador_a", 5)) >= 1


async def test_a_name_that_is_no_queue_is_refused(client: httpx2.AsyncClient) -> None:
    assert_problem(await client.post(f"{API}/queues/a%20b/pause"), 422, "invalid_parameter")


async def test_a_pause_survives_a_restart_and_its_orders_go_out_once_after_it(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    async with Oraculo(settings) as oraculo:
        await oraculo.pauses.destinations.pause("escavador_a", "manutenção", LOCAL)
        await oraculo.submit(request_of("d4"))
        await until(lambda: oraculo.status().effects.paused == 1, "the order waits")
    async with Oraculo(settings) as oraculo, client_of(create_app(oraculo)) as client:
        await until(lambda: oraculo.status().effects.paused == 1, "the order waits again")
        assert await leased(client, "escavador_a", 0.2) == []
        async with Oraculo(settings_for(tmp_path / "other"), store=oraculo.store) as other:  # another process
            await other.pauses.destinations.resume("escavador_a", "", LOCAL)
        await until(lambda: not oraculo.pauses.destinations.holds("escavador_a"), "it hears of it")
        assert len(await leased(client, "escavador_a", 5)) == 1
        assert await leased(client, "escavador_a", 0.2) == []
