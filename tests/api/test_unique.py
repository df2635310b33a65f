"""`unica`: a request that exists once, while an equal one is open, for a window, or for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from api.conftest import API, ONE, settings_for
from databases import database
from oraculo.core.access import LOCAL
from oraculo.service import Oraculo
from oraculo.wire.requests import request_of
from servers import redis_database

URL = f"{API}/orchestrations"
OPEN = {**ONE, "unica": {"modo": "aberta"}}


async def asked(client: httpx2.AsyncClient, body: dict[str, Any], **headers: str) -> dict[str, Any]:
    answer = await client.post(URL, json=body, headers=headers)
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    assert answer.headers["Location"].endswith(found["correlation_id"])
    return found


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (OPEN, {**OPEN, "correlation_id": "outra"}),
        (OPEN, {"collects": [{"source": "youtube", "params": {"canal": "x"}}], "unique": {"mode": "open"}}),
        (
            {"tarefas": {"t": {"fonte": "x"}}, "unica": {"modo": "sempre", "chave": "a"}},
            {"tasks": {"u": {"source": "y"}}, "unique": {"mode": "window", "window_s": 60, "key": "a"}},
        ),
    ],
)
async def test_an_equal_request_is_merged_and_seen(
    client: httpx2.AsyncClient, first: dict[str, Any], second: dict[str, Any]
) -> None:
    begun = await asked(client, first)
    assert "juntada" not in begun
    merged = await asked(client, second)
    assert merged["correlation_id"] == begun["correlation_id"] and merged["juntada"] is True
    shown = (await client.get(f"{URL}/{begun['correlation_id']}")).json()
    assert shown["unica"]["modo"] == first["unica"]["modo"]
    assert shown["juntadas"]["total"] == 1
    assert shown["juntadas"]["recentes"][0]["correlation_id"] == second.get("correlation_id")
    english = (await client.get(f"{URL}/{begun['correlation_id']}?words=en")).json()
    assert english["unique"]["mode"] in ("open", "forever") and english["merges"]["total"] == 1
    assert len((await client.get(URL)).json()["orchestrations"]) == 1


async def test_many_at_once_are_one(client: httpx2.AsyncClient) -> None:
    answers = await asyncio.gather(*(asked(client, OPEN) for _ in range(30)))
    assert len({one["correlation_id"] for one in answers}) == 1
    assert sum(1 for one in answers if one.get("juntada")) == 29
    name = answers[0]["correlation_id"]
    shown = (await client.get(f"{URL}/{name}")).json()["juntadas"]
    assert shown["total"] == 29 and len(shown["recentes"]) == 20


async def test_a_batch_merges_within_itself(client: httpx2.AsyncClient) -> None:
    answer = await client.post(f"{URL}/batch", json=[OPEN, ONE, OPEN])
    told = answer.json()["itens"]
    assert [one.get("juntada", False) for one in told] == [False, False, True]
    assert told[0]["correlation_id"] == told[2]["correlation_id"] != told[1]["correlation_id"]


@pytest.mark.parametrize(
    ("unique", "merges"),
    [
        ({"modo": "aberta"}, False),
        ({"modo": "janela", "janela_s": 3600}, True),
        ({"modo": "janela", "janela_s": 0.000001}, False),
        ({"modo": "sempre"}, True),
    ],
)
async def test_after_the_first_has_ended(client: httpx2.AsyncClient, unique: dict[str, Any], merges: bool) -> None:
    body = {**ONE, "unica": unique}
    name = (await asked(client, body))["correlation_id"]
    await client.post(f"{URL}/{name}/cancel")
    again = await asked(client, body)
    assert again.get("juntada", False) is merges
    assert (again["correlation_id"] == name) is merges
    if merges:
        assert again["status"] == "cancelada"


async def test_a_new_run_takes_the_key_and_the_old_one_keeps_what_was_merged(client: httpx2.AsyncClient) -> None:
    first = (await asked(client, OPEN))["correlation_id"]
    await asked(client, OPEN)
    await client.post(f"{URL}/{first}/cancel")
    second = (await asked(client, OPEN))["correlation_id"]
    assert (await asked(client, OPEN))["correlation_id"] == second != first
    for name in (first, second):
        assert (await client.get(f"{URL}/{name}")).json()["juntadas"]["total"] == 1


async def test_a_retry_takes_the_key_over(client: httpx2.AsyncClient) -> None:
    first = (await asked(client, OPEN))["correlation_id"]
    await client.post(f"{URL}/{first}/cancel")
    retried = (await client.post(f"{URL}/{first}/retry", json={"de": "inicio"})).json()["correlation_id"]
    assert (await asked(client, OPEN))["correlation_id"] == retried


async def test_an_idempotency_key_answers_the_run_it_was_merged_into(client: httpx2.AsyncClient) -> None:
    first = (await asked(client, OPEN))["correlation_id"]
    key = {"Idempotency-Key": "k1"}
    assert (await asked(client, OPEN, **key))["correlation_id"] == first
    await client.post(f"{URL}/{first}/cancel")
    assert (await asked(client, OPEN, **key))["correlation_id"] == first  # said again, not asked anew
    assert (await client.get(f"{URL}/{first}")).json()["juntadas"]["total"] == 1


async def test_a_task_type_may_say_it_and_a_request_otherwise(client: httpx2.AsyncClient) -> None:
    for tipo, template in (("a", ONE), ("b", {"tarefas": {"t": {"fonte": "x"}}})):
        put = await client.put(f"{API}/task-types/{tipo}", json={**template, "unica": {"modo": "sempre"}})
        assert put.status_code in (200, 201), put.text
        first = await asked(client, {"tipo": tipo, "parametros": {"n": 1}})
        assert (await asked(client, {"tipo": tipo, "parametros": {"n": 1}})).get("juntada")
        assert "juntada" not in await asked(client, {"tipo": tipo, "parametros": {"n": 2}})
        await client.post(f"{URL}/{first['correlation_id']}/cancel")
        own = {"tipo": tipo, "parametros": {"n": 1}, "unica": {"modo": "aberta"}}
        assert "juntada" not in await asked(client, own)


@pytest.mark.parametrize(
    ("unique", "where", "says"),
    [
        ({"modo": "aberto"}, "unica.modo", "aberta"),
        ({"modo": "janela"}, "unica", "janela_s"),
        ({"modo": "aberta", "janela_s": 5}, "unica", "janela_s"),
        ({"modo": "janela", "janela_s": 0}, "unica.janela_s", "0"),
        ({"modo": "sempre", "chave": ""}, "unica.chave", ""),
        ({"modo": "sempre", "prazo": 1}, "unica.prazo", ""),
        ("aberta", "unica", ""),
        ({}, "unica.modo", ""),
    ],
)
async def test_refused_with_its_place(client: httpx2.AsyncClient, unique: Any, where: str, says: str) -> None:
    for body in ({**ONE, "unica": unique}, {"tarefas": {"t": {"fonte": "x"}}, "unica": unique}):
        answer = await client.post(URL, json=body)
        assert answer.status_code == 422, answer.text
        first = answer.json()["errors"][0]
        assert first["campo"].startswith("unica") and where.startswith(first["campo"].split(".")[0])
        assert says in first["mensagem"] or says in first["campo"]


async def test_a_child_cannot_be_merged(client: httpx2.AsyncClient) -> None:
    child = {"coletas": [{"fonte": "x"}], "unica": {"modo": "sempre"}}
    answer = await client.post(URL, json={"tarefas": {"t": {"filha": child}}})
    assert answer.status_code == 422 and "whole requests" in answer.text


async def test_the_request_of_a_run_says_it_again(oraculo: Oraculo, submit: Callable[..., Any]) -> None:
    for unique in ({"modo": "aberta"}, {"modo": "janela", "janela_s": 5.0, "chave": "x"}):
        name = await submit({**ONE, "unica": unique})
        assert request_of((await oraculo.state(name)).plan)["unica"] == unique


async def test_two_replicas_begin_one_run_of_each_key_and_tenants_their_own(tmp_path: Path) -> None:
    variables = {"ORACULO_STORE": await database(), "ORACULO_BROKER": redis_database()}
    async with (
        Oraculo(settings_for(tmp_path / "a", **variables)) as one,
        Oraculo(settings_for(tmp_path / "b", **variables)) as two,
    ):
        tenants = [LOCAL, replace(LOCAL, tenant="acme")]
        wanted = [
            (oraculo, {**ONE, "unica": {"modo": "aberta", "chave": f"k{n % 3}"}}, tenant)
            for n in range(60)
            for oraculo in (one, two)
            for tenant in tenants
        ]
        found = await asyncio.gather(
            *(oraculo.requests.accept(oraculo.requests.read(body), actor=tenant) for oraculo, body, tenant in wanted)
        )
        assert sum(1 for accepted in found if accepted.new) == 6  # three keys of two tenants
        assert sum(1 for accepted in found if accepted.merged) == len(found) - 6
        assert {accepted.run for accepted in found} == {accepted.run for accepted in found if accepted.new}
        holders = [await one.store.key_holder(run) for run in {accepted.run for accepted in found}]
        assert sum(holder.merged for holder in holders if holder) == len(found) - 6


async def test_a_schedule_merges_its_instants(client: httpx2.AsyncClient) -> None:
    schedule = {"intervalo_s": 3600, "requisicao": OPEN, "sobreposicao": "permitir"}
    assert (await client.put(f"{API}/schedules/hora", json=schedule)).status_code in (200, 201)
    names = []
    for _ in range(2):
        fired = await client.post(f"{API}/schedules/hora/trigger")
        assert fired.status_code in (200, 202), fired.text
        names.append(fired.json())
    runs = (await client.get(URL)).json()["orchestrations"]
    assert len(runs) == 1, names
    assert (await client.get(f"{URL}/{runs[0]['correlation_id']}")).json()["juntadas"]["total"] == 1
