"""Why a run or a ticket is as it is, over HTTP: the choice of a worker, what waits, pages, and what is not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from api.conftest import API, BOTH, CurlWorker, Start, assert_problem
from waiting import until

URL = f"{API}/orchestrations"
EN = {"Accept-Language": "en"}
CHOOSING = {"ENABLE_INTELLIGENT_SCHEDULER": "true"}
NAMED = {"tarefas": {"coletar": {"fonte": "youtube"}, "pagar": {"executador": "banco", "depende": ["coletar"]}}}
Submit = Callable[..., Any]


async def why(client: httpx2.AsyncClient, name: str, **query: object) -> dict[str, Any]:
    response = await client.get(f"{URL}/{name}/why", params=query, headers=EN)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def test_a_choice_of_a_worker_is_told_with_its_candidates(started: Start) -> None:
    async with started(**CHOOSING) as client:
        asked = await client.post(URL, json={"correlation_id": "a", "coletas": [{"fonte": "youtube"}]})
        assert asked.status_code == 202
        await CurlWorker(client, "fast-1").do("escavador_youtube")
        await until(lambda: _ended(client, "a"))
        found = await why(client, "a")
        assert (found["status"], found["resumo"], found["next"]) == ("concluida", "ended as completed", None)
        (choice,) = [one for one in found["decisoes"] if one["evento"] == "ticket_allocated"]
        assert choice["frase"].startswith("escavador_youtube, attempt 1: given to fast-1 (score ")
        assert choice["alocacao"]["agent_id"] == "fast-1" and choice["alocacao"]["em"] == choice["em"]
        shown = (await client.get(f"{URL}/a")).json()["tickets"][0]
        assert choice["alocacao"] == shown["alocacao"], "the same document wherever it is shown"
        of_ticket = (await client.get(f"{API}/tickets/{shown['ticket_id']}/why", headers=EN)).json()
        assert of_ticket["resumo"] == "escavador_youtube: concluded with attempt 1"
        assert choice in of_ticket["decisoes"]


async def _ended(client: httpx2.AsyncClient, name: str) -> bool:
    return (await client.get(f"{URL}/{name}")).json()["fim"] is not None


async def test_open_tickets_say_what_each_waits_for(
    client: httpx2.AsyncClient, worker: CurlWorker, submit: Submit
) -> None:
    await submit(BOTH, correlation_id="abc")
    await worker.do("escavador_youtube")
    await worker.lease("escavador_blog")
    await until(lambda: _says(client, "abc", "escavador_blog: attempt 1 is with escavador_blog since"))
    found = await why(client, "abc")
    assert found["abertos_total"] == 2
    assert [one["tarefa"] for one in found["abertos"]] == ["escavador_blog", "executador_relatorio"]
    assert found["abertos"][1]["frase"] == "executador_relatorio waits for 1 of 2 (all): escavador_blog"
    assert found["resumo"].startswith("waits for an answer of")
    assert (await client.get(f"{URL}/abc/why")).json()["resumo"].startswith("aguarda resposta de")


async def _says(client: httpx2.AsyncClient, name: str, sentence: str) -> bool:
    return any(one["frase"].startswith(sentence) for one in (await why(client, name))["abertos"])


async def test_a_ticket_is_asked_for_by_its_id_or_the_name_of_its_task(
    client: httpx2.AsyncClient, submit: Submit
) -> None:
    await submit(NAMED, correlation_id="abc")
    ids = [one["ticket_id"] for one in (await client.get(f"{URL}/abc")).json()["tickets"]]
    by_name, by_id = await why(client, "abc", ticket="pagar"), await why(client, "abc", ticket=ids[1])
    assert by_name == by_id
    assert (by_id["ticket_id"], by_id["resumo"]) == (ids[1], "pagar waits for 1 of 1 (all ok): coletar")
    english = (await client.get(f"{URL}/abc/why", params={"words": "en", "ticket": "pagar"})).json()
    assert english["abertos"][0]["task"] == "pagar"


async def test_pages_and_what_was_done_to_a_run(client: httpx2.AsyncClient, submit: Submit) -> None:
    await submit(BOTH, correlation_id="abc")
    await client.post(f"{URL}/abc/pause", json={"motivo": "a fonte caiu"})
    await client.post(f"{URL}/abc/resume", json={})
    await client.post(f"{URL}/abc/cancel", json={"motivo": "chega"})
    whole = await why(client, "abc")
    assert whole["next"] is None and whole["abertos"] == []
    said = [one["frase"] for one in whole["decisoes"]]
    assert any(one.startswith("paused by ") and ": a fonte caiu" in one for one in said)
    assert whole["decisoes"][-1]["detalhes"][-1].endswith("× cancelled: chega")
    pages, after = [], 0
    while True:
        page = await why(client, "abc", after=after, limit=2)
        assert len(page["decisoes"]) <= 2
        pages += page["decisoes"]
        if page["next"] is None:
            break
        after = page["next"]
    assert pages == whole["decisoes"]


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("orchestrations/nunca/why", 404, "unknown_id"),
        ("orchestrations/abc/why?ticket=nunca", 404, "unknown_id"),
        ("orchestrations/abc/why?ticket=1a1de7c6-1ca1-8901-bc00-000002ba568b", 404, "unknown_id"),
        ("orchestrations/abc/why?limit=0", 422, "invalid_parameter"),
        ("tickets/x/why", 404, "unknown_id"),
        ("tickets/1a1de7c6-1ca1-8901-bc00-000002ba568b/why", 404, "unknown_id"),
    ],
)
async def test_what_is_not_there(client: httpx2.AsyncClient, submit: Submit, path: str, status: int, code: str) -> None:
    await submit(BOTH, correlation_id="abc")
    assert_problem(await client.get(f"{API}/{path}"), status, code)
