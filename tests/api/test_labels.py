"""Labels of a request: kept, listed, looked for, and kept by whatever is made of it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from api.conftest import API, ONE
from oraculo.service import Oraculo
from oraculo.wire.requests import request_of

URL = f"{API}/orchestrations"


async def listed(client: httpx2.AsyncClient, label: str, **more: Any) -> list[str]:
    answer = await client.get(URL, params={"rotulo": label, **more})
    assert answer.status_code == 200, answer.text
    return [one["correlation_id"] for one in answer.json()["orchestrations"]]


@pytest.mark.parametrize(
    "body",
    [
        {**ONE, "rotulos": ["cliente:acme", "ã b"]},
        {"collects": [{"source": "youtube"}], "labels": ["cliente:acme", "ã b"]},
        {"tarefas": {"t": {"fonte": "youtube"}}, "rotulos": ["cliente:acme", "ã b"]},
    ],
)
async def test_kept_and_listed(
    client: httpx2.AsyncClient, oraculo: Oraculo, submit: Callable[..., Any], body: dict[str, Any]
) -> None:
    name = await submit(body)
    await submit()
    assert (await client.get(f"{URL}/{name}")).json()["rotulos"] == ["cliente:acme", "ã b"]
    assert await listed(client, "cliente:acme") == await listed(client, "ã b", limit=1) == [name]
    assert await listed(client, "cliente") == []
    assert [one["rotulos"] for one in (await client.get(URL)).json()["orchestrations"]] == [[], ["cliente:acme", "ã b"]]
    assert request_of((await oraculo.state(name)).plan)["rotulos"] == ["cliente:acme", "ã b"]


async def test_those_of_a_task_type_and_of_the_request(client: httpx2.AsyncClient, submit: Callable[..., Any]) -> None:
    for tipo, template in (("a", ONE), ("b", {"tarefas": {"t": {"fonte": "x"}}})):
        put = await client.put(f"{API}/task-types/{tipo}", json={**template, "rotulos": ["tipo", "comum"]})
        assert put.status_code in (200, 201), put.text
        name = await submit({"tipo": tipo, "rotulos": ["comum", "meu"]})
        assert (await client.get(f"{URL}/{name}")).json()["rotulos"] == ["tipo", "comum", "meu"]
        many = await client.post(URL, json={"tipo": tipo, "rotulos": [f"r{n}" for n in range(16)]})
        assert many.status_code == 422 and many.json()["errors"][0]["campo"] == "rotulos"


@pytest.mark.parametrize(
    ("labels", "where"),
    [
        ([""], "rotulos.0"),
        (["x" * 101], "rotulos.0"),
        (["x", "x"], "rotulos"),
        (["a"] * 17, "rotulos"),
        ("x", "rotulos"),
    ],
)
async def test_faults(client: httpx2.AsyncClient, labels: Any, where: str) -> None:
    answer = await client.post(URL, json={**ONE, "rotulos": labels})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["campo"] == where
    answer = await client.get(URL, params={"rotulo": "x" * 101})
    assert answer.status_code == 422


async def test_the_same_id_with_other_labels_is_another_request(client: httpx2.AsyncClient) -> None:
    body = {**ONE, "correlation_id": "a", "rotulos": ["x"]}
    codes = [(await client.post(URL, json=one)).status_code for one in (body, body, {**body, "rotulos": ["y"]})]
    assert codes == [202, 202, 409]


async def test_the_pages_show_them_and_filter(client: httpx2.AsyncClient, submit: Callable[..., Any]) -> None:
    await submit({**ONE, "correlation_id": "com", "rotulos": ["a&b <i>"]})
    await submit({**ONE, "correlation_id": "sem"})
    html = {"accept": "text/html"}
    listed = (await client.get("/runs", params={"rotulo": "a&b <i>"}, headers=html)).text
    assert "/runs/com" in listed and "/runs/sem" not in listed
    link = 'href="/runs?rotulo=a%26b%20%3Ci%3E"'
    assert link in listed and link in (await client.get("/runs/com", headers=html)).text
