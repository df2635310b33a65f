"""Requests in English words, word by word: the same run as in Portuguese, and faults in the words that were sent.
Answers in English words, for those who ask."""

from __future__ import annotations

from typing import Any

import httpx2
import orjson
import pytest

from api.conftest import API, CurlWorker

URL = f"{API}/orchestrations"
PORTUGUESE: dict[str, Any] = {
    "coletas": [{"fonte": "youtube", "parametros": {"params": 1}, "max_tentativas": 2}],
    "execucoes": [{"executador": "relatorio"}],
    "fan_in": {"modo": "todos"},
    "correlation_id": "w1",
}
ENGLISH: dict[str, Any] = {
    "collects": [{"source": "youtube", "params": {"params": 1}, "max_attempts": 2}],
    "executes": [{"executor": "relatorio"}],
    "fan_in": {"mode": "all"},
    "correlation_id": "w1",
}
MIXED: dict[str, Any] = {**PORTUGUESE, "fan_in": {"modo": "all"}, "coletas": [{**ENGLISH["collects"][0]}]}


async def test_two_stages_in_english_are_the_run_that_they_are_in_portuguese(client: httpx2.AsyncClient) -> None:
    first = await client.post(URL, json=ENGLISH)
    assert first.status_code == 202, first.text
    for body in (PORTUGUESE, MIXED, ENGLISH):
        again = await client.post(URL, json=body)
        assert (again.status_code, again.json()["correlation_id"]) == (202, "w1"), again.text
    assert (await client.post(URL, json={**ENGLISH, "timeout_s": 5})).status_code == 409
    worker = CurlWorker(client)
    [order] = await worker.lease("escavador_youtube", max=1)
    assert order["mensagem"]["payload"]["parametros"] == {"params": 1}


async def test_a_task_type_is_kept_and_asked_for_in_english(client: httpx2.AsyncClient) -> None:
    body = {"collects": [{"source": "youtube"}]}
    assert (await client.put(f"{API}/task-types/semanal", json=body)).status_code in (200, 201)
    answer = await client.post(URL, json={"type": "semanal", "params": {"canal": "x"}})
    assert answer.status_code == 202, answer.text
    await CurlWorker(client).do("escavador_youtube", dados=[1])
    result = await client.get(f"{URL}/{answer.json()['correlation_id']}/result", params={"wait": 30})
    assert result.status_code == 200 and result.json()["coletas"][0]["dados"] == [1]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"collects": [{"source": "a b"}]}, "collects.0.source"),
        ({"collects": [{"source": "a", "parms": {}}]}, "collects.0.parms"),
        ({"collects": [{"source": "a"}], "fan_in": {"mode": "al"}}, "fan_in.mode"),
        ({"collects": [{"source": "a"}], "notify": {"queue": "a b"}}, "notify.queue"),
        ({"collects": [{"source": "a"}], "coletas": []}, "coletas"),
        ({"collects": [{"source": "a"}], "timeout_s": 31 * 86400}, "timeout_s"),
        ({"collects": [{"source": "a"}], "labels": ["x", "x"]}, "labels.1"),
        ({"type": "x", "collects": [{"source": "a"}]}, "collects"),
        ({"coletas": [{"fonte": "a b"}]}, "coletas.0.fonte"),
    ],
)
async def test_faults_name_the_word_that_was_sent(client: httpx2.AsyncClient, body: dict[str, Any], field: str) -> None:
    answer = await client.post(URL, json=body)
    assert answer.status_code == 422
    assert field in [error["campo"] for error in answer.json()["errors"]], answer.text


DONE = {"dados": [{"status": "erro", "fonte": "x"}]}


async def _done(client: httpx2.AsyncClient, name: str = "en1") -> None:
    body = {"coletas": [{"fonte": "youtube", "parametros": {"fonte": 1}}], "correlation_id": name, "rotulos": ["erro"]}
    assert (await client.post(URL, json=body)).status_code == 202
    await CurlWorker(client).do("escavador_youtube", **DONE)
    assert (await client.get(f"{URL}/{name}/result", params={"wait": 30})).status_code == 200


@pytest.mark.parametrize("how", [{"params": {"words": "en"}}, {"headers": {"Oraculo-Words": "en"}}])
async def test_answers_in_english_words(client: httpx2.AsyncClient, how: dict[str, Any]) -> None:
    await _done(client)
    result = (await client.get(f"{URL}/en1/result", **how)).json()
    assert result["status"] == "completed" and set(result) == {
        "correlation_id", "status", "collects", "executes", "started_at", "ended_at", "duration_ms",
    }  # fmt: skip
    [collect] = result["collects"]
    assert collect["data"] == DONE["dados"] and collect["source"] == "youtube" and collect["attempts"] == 1
    shown = (await client.get(f"{URL}/en1", **how)).json()
    assert shown["agregado"]["collects"] == result["collects"] and shown["labels"] == ["erro"]
    [ticket] = shown["tickets"]
    assert ticket["status"] == "completed" and ticket["type"] == "collect" and ticket["max_attempts"] == 3
    one = await client.get(f"{API}/tickets/{ticket['ticket_id']}", **how)
    assert one.json() == ticket and int(one.headers["content-length"]) == len(one.content)
    [listed] = (await client.get(URL, **how)).json()["orchestrations"]
    assert listed["status"] == "completed" and listed["started_at"] == result["started_at"]
    events = (await client.get(f"{URL}/en1/events", **how)).json()["events"]
    assert [one["data"] for one in events if "data" in one] == [DONE["dados"]] and events[-1]["status"] == "completed"


async def test_a_stream_in_english_words(client: httpx2.AsyncClient) -> None:
    await _done(client)
    said = (await client.get(f"{URL}/en1/stream", params={"words": "en", "after": 1})).text
    datas = [orjson.loads(line[6:]) for line in said.splitlines() if line.startswith("data: ")]
    assert [one["seq"] for one in datas[:-1]] == list(range(2, len(datas) + 1))
    assert datas[-2]["status"] == "completed" and datas[-1]["collects"][0]["data"] == DONE["dados"]
    assert "event: fim" in said


async def test_task_types_batches_and_problems_in_english_words(client: httpx2.AsyncClient) -> None:
    english = {"params": {"words": "en"}}
    put = await client.put(f"{API}/task-types/fonte", json={"coletas": [{"fonte": "x", "parametros": {"fila": 1}}]})
    assert put.status_code == 201
    [kept] = (await client.get(f"{API}/task-types", **english)).json()["task_types"].items()
    assert kept[0] == "fonte" and kept[1]["collects"][0]["params"] == {"fila": 1}
    again = await client.put(f"{API}/task-types/fonte", json=kept[1])
    assert again.status_code == 200, again.text
    batch = await client.post(f"{URL}/batch", json=[{"coletas": [{"fonte": "a"}]}, {"coletas": []}], **english)
    assert batch.status_code == 207
    good, bad = batch.json()["items"]
    assert good["status"] == 202 and bad["status"] == 422 and bad["errors"][0]["message"]
    refused = await client.post(URL, json={"coletas": [{}]}, headers={"Oraculo-Words": "EN"})
    assert refused.headers["content-type"] == "application/problem+json" and refused.json()["errors"][0]["message"]


async def test_orders_keep_the_words_of_queues(client: httpx2.AsyncClient) -> None:
    await client.post(URL, json={"coletas": [{"fonte": "youtube"}]}, params={"words": "en"})
    leased = await client.post(f"{API}/queues/escavador_youtube/lease", json={"wait": 10}, params={"words": "en"})
    [one] = leased.json()["mensagens"]
    assert one["message"]["payload"] == {"fonte": "youtube", "parametros": {}}


async def test_pages_keep_the_words_that_were_asked_for(client: httpx2.AsyncClient) -> None:
    for name in ("p1", "p2"):
        await client.post(URL, json={"coletas": [{"fonte": "x"}], "correlation_id": name})
    first = await client.get(URL, params={"words": "en", "limit": 1, "status": "pending,running", "source": "x"})
    assert first.status_code == 200, first.text
    link = first.headers["link"].partition(">")[0].lstrip("<")
    [second] = (await client.get(link)).json()["orchestrations"]
    assert second["correlation_id"] == "p1" and second["status"] in ("pending", "running")


@pytest.mark.parametrize(
    "how",
    [
        {"params": {"words": "fr"}},
        {"params": {"words": ""}},
        {"params": [("words", "en"), ("words", "pt")]},
        {"headers": {"Oraculo-Words": "english"}},
    ],
)
async def test_words_that_there_are_not_are_refused(client: httpx2.AsyncClient, how: dict[str, Any]) -> None:
    refused = await client.get(URL, **how)
    assert refused.status_code == 422 and refused.json()["code"] == "invalid_parameter"
    assert "pt, en" in refused.json()["detail"] or "once" in refused.json()["detail"]


async def test_portuguese_is_what_nobody_has_to_ask_for(client: httpx2.AsyncClient) -> None:
    await _done(client)
    plain = await client.get(f"{URL}/en1")
    asked = await client.get(f"{URL}/en1", params={"words": "pt"}, headers={"Oraculo-Words": "en"})
    assert plain.content == asked.content
