"""Children over HTTP: what is refused, and how parent and child are found from each other."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx2

from api.conftest import API, CurlWorker, assert_problem
from api.test_waits import submitted
from waiting import until

URL = f"{API}/orchestrations"
TYPES = f"{API}/task-types"


def of(tipo: str) -> dict[str, Any]:
    return {"tarefas": {"c": {"filha": {"tipo": tipo}}}}


async def test_parent_and_child_are_linked(client: httpx2.AsyncClient, worker: CurlWorker) -> None:
    child = {"filha": {"execucoes": [{"executador": "x"}]}}
    name = await submitted(client, {"correlation_id": "a b", "tarefas": {"c": child}, "rotulos": ["k"]})
    path = f"{URL}/{quote('a b/c', safe='')}"

    async def shown() -> Any:
        answer = await client.get(path)
        return answer.json() if answer.status_code == 200 else None

    found = await until(shown, "the child")
    (ticket,) = (await client.get(f"{URL}/{quote(name)}")).json()["tickets"]
    assert (ticket["tipo"], ticket["filha"], ticket["destino"]) == ("filha", "a b/c", None)
    assert found["pai"] == {"correlation_id": "a b", "ticket_id": ticket["ticket_id"], "tentativa": 1}
    assert found["rotulos"] == ["k"]
    page = await client.get(f"/runs/{quote('a b/c', safe='')}")
    assert (page.status_code, 'href="/runs/a%20b"' in page.text) == (200, True)
    panel = await client.get(f"/ui/runs/{quote('a b')}/tickets/0")
    assert (panel.status_code, 'href="/runs/a%20b%2Fc"' in panel.text) == (200, True)
    assert (await client.post(f"{URL}/{quote(name)}/cancel")).status_code == 200
    await until(lambda: _ended(client, path), "the end of the child")
    assert (await client.get(f"{path}/result")).json()["status"] == "cancelada"
    assert (await client.get(f"{path}/events")).status_code == 200


async def _ended(client: httpx2.AsyncClient, path: str) -> bool:
    return bool((await client.get(path)).json()["fim"])


async def test_types_that_are_not_there_or_their_own_children_are_refused(client: httpx2.AsyncClient) -> None:
    refused = assert_problem(await client.post(URL, json=of("nada")), 422, "unknown_task_type")
    assert "nada" in refused["detail"]
    assert (await client.put(f"{TYPES}/u", json=of("v"))).is_success
    circle = await client.put(f"{TYPES}/v", json=of("u"))
    assert circle.status_code == 422
    assert "v → u → v" in circle.json()["detail"]
