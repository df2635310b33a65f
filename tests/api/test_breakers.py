"""Breakers of destinations: over HTTP, through a restart, among processes, on paused destinations."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from api.conftest import API, assert_problem, client_of, settings_for
from oraculo.api.app import create_app
from oraculo.core.access import LOCAL
from oraculo.service import Oraculo
from oraculo.settings.settings import Settings
from waiting import until

URL, QUEUE = f"{API}/orchestrations", "escavador_a"
ONCE = {"coletas": [{"fonte": "a", "timeout_s": 30, "max_tentativas": 1}]}


def breaking(folder: Path, **more: str) -> Settings:
    return settings_for(folder, ORACULO_BREAKER_FAILURES="3", ORACULO_BREAKER_PROBE_S="3600", **more)


@asynccontextmanager
async def started(settings: Settings, **more: Any) -> AsyncIterator[tuple[Oraculo, httpx2.AsyncClient]]:
    async with Oraculo(settings, **more) as oraculo, client_of(create_app(oraculo)) as client:
        yield oraculo, client


async def submitted(client: httpx2.AsyncClient, *names: str) -> None:
    for name in names:
        assert (await client.post(URL, json={**ONCE, "correlation_id": name})).status_code == 202


async def leased(client: httpx2.AsyncClient, wait: float = 0.0) -> list[dict[str, Any]]:
    body = {"max": 100, "wait": wait, "worker": "w"}
    found: list[dict[str, Any]] = (await client.post(f"{API}/queues/{QUEUE}/lease", json=body)).json()["mensagens"]
    return [one["mensagem"] for one in found]


async def answer(client: httpx2.AsyncClient, order: dict[str, Any], ok: bool, **erro: Any) -> None:
    erros = [] if ok else [{"codigo": "fora", "mensagem": "fora do ar", **erro}]
    payload = {"fonte": "a", "status": "ok" if ok else "erro", "dados": [1], "erros": erros}
    body = {**order, "tipo_evento": "resultado_coleta", "payload": payload}
    assert (await client.post(f"{API}/results", json=body)).status_code < 300


async def fail_all(client: httpx2.AsyncClient, count: int) -> None:
    orders: list[dict[str, Any]] = []
    while len(orders) < count:
        orders += await leased(client, 5)
    for order in orders:
        await answer(client, order, ok=False)


async def broken(oraculo: Oraculo, client: httpx2.AsyncClient) -> None:
    await submitted(client, "f0", "f1", "f2")
    await fail_all(client, 3)
    await until(lambda: bool(oraculo.breakers and oraculo.breakers.open), "the breaker opens")


async def test_new_orders_wait_one_probe_goes_out_and_then_all(tmp_path: Path) -> None:
    async with started(breaking(tmp_path)) as (oraculo, client):
        await broken(oraculo, client)
        await submitted(client, "w0", "w1", "w2")
        await until(lambda: oraculo.status().effects.paused == 3, "three orders wait")
        assert await leased(client) == []
        [shown] = (await client.get(f"{API}/breakers")).json()["disjuntores"]
        assert (shown["fila"], shown["falhas"], shown["erro"], shown["sondando"]) == (QUEUE, 3, "fora do ar", False)
        waits = (await client.get(f"{URL}/w0", headers={"accept-language": "en"})).json()
        assert waits["status"] == "pendente" and "breaker open since" in waits["espera"], waits["espera"]
        exposed = oraculo.metrics.exposition().decode()
        assert f'orchestration_breaker_open{{fila="{QUEUE}"}} 1.0' in exposed
        assert (await client.post(f"{API}/queues/{QUEUE}/probe")).json()["mudou"] is True
        [probe] = await leased(client, 5)
        assert await leased(client, 0.2) == []
        assert (await client.post(f"{API}/queues/{QUEUE}/probe")).json()["mudou"] is False  # one is out
        await answer(client, probe, ok=True)
        await until(lambda: not (oraculo.breakers and oraculo.breakers.open), "the breaker closes")
        rest = await leased(client, 5)
        rest += await leased(client, 0.5) if len(rest) < 2 else []
        assert sorted(one["correlation_id"] for one in (probe, *rest)) == ["w0", "w1", "w2"]
        events = (await client.get(f"{API}/system-events")).json()["eventos"]
        told = [(one["evento"], one["fila"], one["falhas"]) for one in events if one["evento"].startswith("breaker")]
        assert told == [("breaker_closed", QUEUE, 3), ("breaker_opened", QUEUE, 3)]
        assert (await client.get(f"{API}/breakers")).json() == {"disjuntores": []}


async def test_a_probe_that_fails_leaves_it_open(tmp_path: Path) -> None:
    async with started(breaking(tmp_path)) as (oraculo, client):
        await broken(oraculo, client)
        await submitted(client, "w0", "w1")
        await until(lambda: oraculo.status().effects.paused == 2, "two orders wait")
        await client.post(f"{API}/queues/{QUEUE}/probe")
        [probe] = await leased(client, 5)
        await answer(client, probe, ok=False)
        await until(lambda: bool(oraculo.breakers and oraculo.breakers.open[0].probes == 1), "the probe has failed")
        assert await leased(client, 0.2) == [] and oraculo.status().effects.paused == 1


async def test_it_is_open_after_a_restart_and_another_process_closes_it(tmp_path: Path) -> None:
    settings = breaking(tmp_path)
    async with started(settings) as (oraculo, client):
        await broken(oraculo, client)
        await submitted(client, "w0")
        await until(lambda: oraculo.status().effects.paused == 1, "an order waits")
    async with started(settings) as (oraculo, client):
        await until(lambda: oraculo.status().effects.paused == 1, "it waits again")
        assert await leased(client, 0.2) == []
        async with Oraculo(breaking(tmp_path / "other"), store=oraculo.store) as other:
            assert other.breakers is not None and await other.breakers.probe_now(QUEUE, LOCAL)
        [probe] = await leased(client, 10)
        await answer(client, probe, ok=True)
        await until(lambda: not (oraculo.breakers and oraculo.breakers.open), "the breaker closes")


async def test_a_paused_destination_gets_no_probe_and_a_cancelled_order_is_none(tmp_path: Path) -> None:
    async with started(breaking(tmp_path)) as (oraculo, client):
        await broken(oraculo, client)
        await submitted(client, "w0", "w1")
        await until(lambda: oraculo.status().effects.paused == 2, "two orders wait")
        await client.post(f"{URL}/w0/cancel")
        await client.post(f"{API}/queues/{QUEUE}/pause")
        await client.post(f"{API}/queues/{QUEUE}/probe")
        assert oraculo.breakers is not None and oraculo.breakers.open[0].probe is None
        await client.post(f"{API}/queues/{QUEUE}/resume")
        [probe] = await leased(client, 10)
        assert probe["correlation_id"] == "w1"


@pytest.mark.parametrize("definitivo", [True, False])
async def test_an_answer_that_blames_the_request_says_that_the_destination_works(
    tmp_path: Path, definitivo: bool
) -> None:
    async with started(breaking(tmp_path)) as (oraculo, client):
        await submitted(client, "a", "b", "c", "d")
        orders: list[dict[str, Any]] = []
        while len(orders) < 4:
            orders += await leased(client, 5)
        for number, order in enumerate(orders):
            await answer(client, order, ok=False, definitivo=definitivo and number == 1)
        await until(lambda: stands(oraculo, 2 if definitivo else 3), "all is counted")
        await until(
            lambda: bool(oraculo.breakers and oraculo.breakers.open) is not definitivo,
            "it opens unless one answer blamed the request",
        )


async def stands(oraculo: Oraculo, failures: int) -> bool:
    return [one.failures for one in await oraculo.store.breakers()] == [failures]


async def test_without_the_setting_there_is_no_breaker(client: httpx2.AsyncClient, oraculo: Oraculo) -> None:
    assert oraculo.breakers is None and (await client.get(f"{API}/breakers")).json() == {"disjuntores": []}
    told = (await client.post(f"{API}/queues/{QUEUE}/probe")).json()
    assert (told["aberto"], told["mudou"]) == (False, False)
    assert "orchestration_breaker_open{" not in oraculo.metrics.exposition().decode()
    assert_problem(await client.post(f"{API}/queues/a%20b/probe"), 422, "invalid_parameter")
