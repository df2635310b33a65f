"""Pause and resume over HTTP."""

from __future__ import annotations

import httpx2

from api.conftest import API, assert_problem

URL = f"{API}/orchestrations"
REQUEST = {"coletas": [{"fonte": "a", "timeout_s": 60}], "execucoes": [{"executador": "b"}], "correlation_id": "p1"}


async def _lease(client: httpx2.AsyncClient, queue: str, wait: float = 0) -> list[dict[str, object]]:
    body = {"max": 10, "wait": wait, "worker": "w"}
    found: list[dict[str, object]] = (await client.post(f"{API}/queues/{queue}/lease", json=body)).json()["mensagens"]
    return found


async def test_a_paused_run_sends_nothing_and_goes_on_when_it_is_resumed(client: httpx2.AsyncClient) -> None:
    await client.post(URL, json=REQUEST)
    [order] = await _lease(client, "escavador_a", 5)
    told = (await client.post(f"{URL}/p1/pause", json={"motivo": "manutenção"})).json()
    assert (told["pausada"], told["mudou"], told["pausa"]["motivo"]) == (True, True, "manutenção")
    again = (await client.post(f"{URL}/p1/pause")).json()
    assert (again["pausada"], again["mudou"], again["pausa"]) == (True, False, told["pausa"])
    envelope = order["mensagem"]
    assert isinstance(envelope, dict)
    answer = {key: envelope[key] for key in ("correlation_id", "ticket_id", "tentativa", "timestamp")}
    answer |= {"tipo_evento": "resultado_coleta", "payload": {"fonte": "a", "status": "ok", "dados": [1], "erros": []}}
    assert (await client.post(f"{API}/results", json=answer)).status_code == 202  # what is with workers may finish
    shown = (await client.get(f"{URL}/p1")).json()
    assert shown["espera"].startswith("pausada por local desde")
    assert [one["status"] for one in shown["tickets"]] == ["concluida", "pendente"]
    assert await _lease(client, "executador_b") == []
    for asked, names in (("true", ["p1"]), ("false", [])):
        found = (await client.get(URL, params={"pausada": asked})).json()["orchestrations"]
        assert [one["correlation_id"] for one in found if one["pausada"] is (asked == "true")] == names
    resumed = (await client.post(f"{URL}/p1/resume")).json()
    assert (resumed["pausada"], resumed["mudou"], resumed["prazo"] > told["prazo"]) == (False, True, True)
    [order] = await _lease(client, "executador_b", 5)
    events = (await client.get(f"{URL}/p1/events")).json()["events"]
    found = [(one["evento"], one["ator"], one["motivo"]) for one in events if "_paused" in one["evento"]]
    assert found == [("orchestration_paused", "local", "manutenção")]


async def test_an_order_in_our_own_queue_is_not_handed_out_while_its_run_is_paused(client: httpx2.AsyncClient) -> None:
    await client.post(URL, json=REQUEST)
    [order] = await _lease(client, "escavador_a", 5)
    await client.post(f"{API}/leases/{order['lease_id']}/release")
    await client.post(f"{URL}/p1/pause")
    assert await _lease(client, "escavador_a", 0.2) == []
    await client.post(f"{URL}/p1/resume")
    assert len(await _lease(client, "escavador_a", 5)) == 1


async def test_what_has_ended_or_is_unknown_cannot_be_paused(client: httpx2.AsyncClient) -> None:
    await client.post(URL, json=REQUEST)
    await client.post(f"{URL}/p1/cancel")
    for what in ("pause", "resume"):
        assert_problem(await client.post(f"{URL}/p1/{what}"), 409, "run_ended")
        assert_problem(await client.post(f"{URL}/none/{what}"), 404, "unknown_id")
        assert_problem(await client.post(f"{URL}/p1/{what}", json={"motivo": 5}), 422, "invalid_request")
