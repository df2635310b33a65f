"""Many requests in one call: each is answered on its own, in order, and what is bad costs the others nothing."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest

from api.conftest import API, ONE, Start, assert_problem
from api.test_keys import SHARED, bearer, made
from oraculo.api.batch import BATCH_MAX_REQUESTS
from oraculo.ports.work import Work
from oraculo.service import Oraculo

BATCH = f"{API}/orchestrations/batch"
NDJSON = {"content-type": "application/x-ndjson"}


async def send(client: httpx2.AsyncClient, requests: Any, **headers: str) -> list[dict[str, Any]]:
    response = await client.post(BATCH, json=requests, headers=headers)
    assert response.status_code == 207, response.text
    items: list[dict[str, Any]] = response.json()["itens"]
    return items


def named(*names: str) -> list[dict[str, Any]]:
    return [{**ONE, "correlation_id": name} for name in names]


async def test_each_is_accepted_or_refused_on_its_own_in_order(client: httpx2.AsyncClient) -> None:
    wanted = [
        *named("a"), {"coletas": []}, 7, *named("b"), {"tipo": "nenhum"}, {**named("a")[0], "timeout_s": 3},
        *named("a"), {**ONE, "collects": []}, {"coletas": [{"fonte": "x" * 500}]},
    ]  # fmt: skip
    items = await send(client, wanted)
    assert [one["status"] for one in items] == [202, 422, 422, 202, 422, 409, 202, 422, 422]
    assert [items[at] for at in (0, 3, 6)] == [{"status": 202, "correlation_id": name} for name in "aba"]
    assert [items[at]["code"] for at in (1, 4, 5)] == ["invalid_plan", "unknown_task_type", "correlation_id_taken"]
    assert items[4]["known"] == [] and items[8]["errors"][0]["campo"] == "coletas.0.fonte"
    for name in "ab":
        assert (await client.get(f"{API}/orchestrations/{name}")).status_code == 200
    assert len((await client.get(f"{API}/orchestrations")).json()["orchestrations"]) == 2


async def test_lines_are_read_one_by_one(client: httpx2.AsyncClient) -> None:
    lines = [json.dumps(named("a")[0]), "", "{broken", json.dumps(named("b")[0]) + "\r"]
    response = await client.post(BATCH, content="\n".join(lines), headers=NDJSON)
    items = response.json()["itens"]
    assert [(one["status"], one.get("correlation_id") or one.get("code")) for one in items] == [
        (202, "a"),
        (400, "not_json"),
        (202, "b"),
    ]


async def test_an_element_that_is_no_json_is_refused_alone(client: httpx2.AsyncClient) -> None:
    raw = f'[{json.dumps(ONE)}, {{"a": 1, "a": 2}}, {json.dumps(ONE)}]'
    response = await client.post(BATCH, content=raw, headers={"content-type": "application/json"})
    assert [one["status"] for one in response.json()["itens"]] == [202, 400, 202]


@pytest.mark.parametrize("raw", ['{"coletas": []}', "[1, 2", "", "[1] 2"])
async def test_what_is_no_list_is_refused_whole(client: httpx2.AsyncClient, raw: str) -> None:
    response = await client.post(BATCH, content=raw, headers={"content-type": "application/json"})
    assert_problem(response, 400, "not_json")


async def test_an_empty_list_is_answered_with_nothing(client: httpx2.AsyncClient) -> None:
    assert await send(client, []) == []


async def test_sizes_and_types_are_bounded(client: httpx2.AsyncClient) -> None:
    response = await client.post(BATCH, json=[ONE] * (BATCH_MAX_REQUESTS + 1))
    assert "at most 1000" in assert_problem(response, 422, "invalid_request")["detail"]
    large = {"coletas": [{"fonte": "youtube", "parametros": {"x": "y" * 1_100_000}}]}
    assert [one["status"] for one in await send(client, [large, ONE])] == [413, 202]
    too_much = b"[" + b" " * (16 * 1024 * 1024) + b"]"
    refused = await client.post(BATCH, content=too_much, headers={"content-type": "application/json"})
    assert_problem(refused, 413, "too_large")
    refused = await client.post(BATCH, content=b"a,b", headers={"content-type": "text/csv"})
    assert "application/x-ndjson" in assert_problem(refused, 415, "unsupported_media_type")["detail"]


async def test_a_key_makes_a_repetition_safe_place_by_place(client: httpx2.AsyncClient) -> None:
    first = await send(client, [ONE, ONE], **{"idempotency-key": "k1"})
    assert await send(client, [ONE, ONE, ONE], **{"idempotency-key": "k1"}) != first
    again = await send(client, [ONE, {**ONE, "timeout_s": 9}], **{"idempotency-key": "k1"})
    assert again[0] == first[0] and again[1]["code"] == "idempotency_key_reused"
    assert len((await client.get(f"{API}/orchestrations")).json()["orchestrations"]) == 3


async def test_a_limit_refuses_those_that_are_over_it(started: Start) -> None:
    async with started(ORACULO_API_KEY=SHARED) as client:
        key = bearer(await made(client, "remetente", limites={"abertas": 2}))
        items = await send(client, [{"coletas": []}, *named("a", "b", "c", "d")], **key)
        assert [one["status"] for one in items] == [422, 202, 202, 429, 429]
        assert items[3]["limite"] == "open"
    async with started(ORACULO_API_KEY=SHARED, ORACULO_MAX_OPEN="4") as client:  # two are open from before
        items = await send(client, named("e", "f", "g"), authorization=f"Bearer {SHARED}")
        assert [one["status"] for one in items] == [202, 202, 503]


async def test_many_take_few_transactions_and_leave_others_their_turn(
    client: httpx2.AsyncClient, oraculo: Oraculo, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits: list[int] = []
    append = oraculo.store.append

    async def counted(batch: Any) -> None:
        commits.append(sum(1 for step in batch.steps if step.first == 1))
        await append(batch)

    monkeypatch.setattr(oraculo.store, "append", counted)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    task = asyncio.create_task(others())
    wide = {"coletas": [{"fonte": f"f{n}"} for n in range(5)], "execucoes": [{"executador": "e"}]}
    items = await send(client, [wide] * BATCH_MAX_REQUESTS)
    task.cancel()
    assert all(one["status"] == 202 for one in items) and len(items) == BATCH_MAX_REQUESTS
    assert sum(commits) == BATCH_MAX_REQUESTS and max(commits) == 250 // 6
    assert turns > 20


async def test_once_the_store_fails_the_rest_is_told_to_come_again(
    client: httpx2.AsyncClient, oraculo: Oraculo, monkeypatch: pytest.MonkeyPatch
) -> None:
    from oraculo.errors import StoreUnavailableError

    submit, calls = oraculo.engine.submit, 0

    async def failing(works: list[Work], *, piecewise: bool = False) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise StoreUnavailableError("away")
        return await submit(works, piecewise=piecewise)

    monkeypatch.setattr(oraculo.engine, "submit", failing)
    items = await send(client, [ONE] * 600)
    assert [one["status"] for one in items] == [202] * 250 + [503] * 350
    assert items[-1]["code"] == "store_unavailable" and calls == 2
