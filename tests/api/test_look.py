"""Looking at orchestrations: one, many, their results, events and tickets; and cancelling."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any

import httpx2
import pytest

from api.conftest import API, BOTH, ONE, CurlWorker, assert_problem
from oraculo.api import paging
from oraculo.service import Oraculo
from waiting import DEADLINE_S, until

URL = f"{API}/orchestrations"
Submit = Callable[..., Any]


async def test_show(client: httpx2.AsyncClient, worker: CurlWorker, submit: Submit) -> None:
    await submit(BOTH, correlation_id="abc")
    await worker.do("escavador_youtube", dados={"videos": 3})
    shown = (await client.get(f"{URL}/abc")).json()
    assert shown["status"] == "em_execucao"
    assert "escavador_blog" in shown["espera"]
    assert shown["tickets"][0]["status"] == "concluida"
    assert shown["agregado"]["coletas"][0]["dados"] == {"videos": 3}
    for ticket in shown["tickets"]:
        assert (await client.get(f"{API}/tickets/{ticket['ticket_id']}")).json() == ticket


@pytest.mark.parametrize("name", ["x", "00000000-0000-8000-8000-000000000000", "1a1de7c6-1ca1-8901-bc00-000002ba568b"])
async def test_unknown_ticket(client: httpx2.AsyncClient, name: str) -> None:
    assert_problem(await client.get(f"{API}/tickets/{name}"), 404, "unknown_id")


# -- language ----------------------------------------------------------------------------------------------------------

FIRST = {"coletas": [{"fonte": "youtube"}, {"fonte": "blog"}], "fan_in": {"modo": "primeiro"}}


@pytest.mark.parametrize(
    ("header", "waits"),
    [
        (None, "aguarda resposta de"),
        ("*", "aguarda resposta de"),
        ("fr", "aguarda resposta de"),
        ("pt-BR,en;q=0.9", "aguarda resposta de"),
        ("EN-us, pt;q=0.5", "waits for an answer of"),
        ("fr, en;q=0.1", "waits for an answer of"),
        ("en;q=nada", "aguarda resposta de"),
    ],
)
async def test_sentences_are_in_the_language_of_the_reader(
    client: httpx2.AsyncClient, worker: CurlWorker, submit: Submit, header: str | None, waits: str
) -> None:
    await submit(correlation_id="abc")
    await worker.lease("escavador_youtube")
    headers = {} if header is None else {"Accept-Language": header}
    await until(lambda: _says(client, f"{URL}/abc", headers, waits))
    await until(lambda: _says(client, f"{URL}/abc/result", headers, waits))


async def _says(client: httpx2.AsyncClient, url: str, headers: dict[str, str], waits: str) -> bool:
    said = (await client.get(url, headers=headers)).json()["espera"]
    return str(said).startswith(waits)


async def test_every_route_that_shows_a_sentence_has_the_language(
    client: httpx2.AsyncClient, worker: CurlWorker, submit: Submit
) -> None:
    await submit(FIRST, correlation_id="abc")
    await worker.do("escavador_youtube")
    english, reason = {"Accept-Language": "en"}, "the fan-in (primeiro) is met already"
    shown = (await client.get(f"{URL}/abc", headers=english)).json()["tickets"][1]
    assert shown["motivo"] == reason
    assert (await client.get(f"{API}/tickets/{shown['ticket_id']}", headers=english)).json() == shown
    events = (await client.get(f"{URL}/abc/events", headers=english)).json()["events"]
    assert [event["motivo"] for event in events if event["evento"] == "tickets_closed"] == [reason]
    assert f'"motivo":"{reason}"' in (await client.get(f"{URL}/abc/stream", headers=english)).text
    assert "o fan-in (primeiro) já foi atendido" in (await client.get(f"{URL}/abc/stream")).text


# -- result ------------------------------------------------------------------------------------------------------------


async def test_result_while_running(client: httpx2.AsyncClient, submit: Submit) -> None:
    await submit(correlation_id="abc")
    for wait in ("", "?wait=0", "?wait=0.05"):
        response = await client.get(f"{URL}/abc/result{wait}")
        assert response.status_code == 202
        assert response.json()["correlation_id"] == "abc"
        assert response.headers["retry-after"] == "1"


async def test_result_is_given_as_soon_as_there_is_one(
    client: httpx2.AsyncClient, worker: CurlWorker, submit: Submit, app: Any
) -> None:
    await submit(correlation_id="abc")
    waiting = [asyncio.create_task(client.get(f"{URL}/abc/result?wait=100")) for _ in range(20)]
    await until(lambda: len(app.state.waits) == 20)
    await worker.do("escavador_youtube", dados="ç")
    for response in await asyncio.gather(*waiting):
        assert response.status_code == 200
        assert response.json()["coletas"][0]["dados"] == "ç"
        assert response.json()["status"] == "concluida"
    assert len(app.state.waits) == 0
    assert (await client.get(f"{URL}/abc/result")).content == response.content


@pytest.mark.parametrize("wait", ["-1", "301", "nan", "inf", "x", ""])
async def test_wait_out_of_range(client: httpx2.AsyncClient, wait: str) -> None:
    problem = assert_problem(await client.get(f"{URL}/abc/result?wait={wait}"), 422, "invalid_parameter")
    assert problem["errors"][0]["campo"] == "query.wait"


async def test_leaving_while_waiting_leaves_nothing_behind(
    served: httpx2.AsyncClient, submit: Submit, oraculo: Oraculo, app: Any
) -> None:
    await submit(correlation_id="abc")
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(served.get(f"{URL}/abc/result?wait=300", timeout=300)) for _ in range(5)]
        await until(lambda: len(app.state.waits) == 5)
        for task in waiting:
            task.cancel()
    await until(lambda: len(app.state.waits) == 0)
    await until(lambda: not oraculo.kernel_ports.watchers._waiters)


async def test_stopping_ends_waits_at_once(client: httpx2.AsyncClient, submit: Submit, app: Any) -> None:
    await submit(correlation_id="abc")
    result = asyncio.create_task(client.get(f"{URL}/abc/result?wait=300"))
    stream = asyncio.create_task(client.get(f"{URL}/abc/stream"))
    lease = asyncio.create_task(client.post(f"{API}/queues/q/lease", json={"wait": 300}))
    await until(lambda: len(app.state.waits) == 3)
    app.state.waits.stop()
    async with asyncio.timeout(DEADLINE_S):
        assert (await result).status_code == 202
        assert "event: fim" not in (await stream).text
        assert (await lease).json() == {"mensagens": []}
    assert_problem(await client.get(f"{URL}/abc/stream"), 503, "not_ready")


# -- events ------------------------------------------------------------------------------------------------------------


async def test_events_in_pages(client: httpx2.AsyncClient, worker: CurlWorker, submit: Submit) -> None:
    await submit(correlation_id="abc")
    await worker.do("escavador_youtube", dados={"a": [1]})
    everything = (await client.get(f"{URL}/abc/events")).json()
    assert everything["next"] is None
    assert [event["seq"] for event in everything["events"]] == list(range(1, len(everything["events"]) + 1))
    assert everything["events"][0]["evento"] == "orchestration_started"
    assert everything["events"][-1]["evento"] == "orchestration_closed"
    collected: list[Any] = []
    after: int | None = 0
    while after is not None:
        page = (await client.get(f"{URL}/abc/events?after={after}&limit=1")).json()
        collected += page["events"]
        after = page["next"]
    assert collected == everything["events"]


@pytest.mark.parametrize("query", ["after=-1", "after=x", "limit=0", "limit=10001", f"after={2**70}", "befor=1"])
async def test_events_wrong_query(client: httpx2.AsyncClient, submit: Submit, query: str) -> None:
    await submit(correlation_id="abc")
    assert_problem(await client.get(f"{URL}/abc/events?{query}"), 422, "invalid_parameter")


# -- list --------------------------------------------------------------------------------------------------------------


async def names_of(client: httpx2.AsyncClient, query: str) -> list[str]:
    response = await client.get(f"{URL}?{query}")
    assert response.status_code == 200, response.text
    return [one["correlation_id"] for one in response.json()["orchestrations"]]


async def test_filters(client: httpx2.AsyncClient, worker: CurlWorker, submit: Submit) -> None:
    await submit(correlation_id="a")
    await worker.do("escavador_youtube")
    await submit({"coletas": [{"fonte": "blog"}]}, correlation_id="b")
    await submit({"execucoes": [{"executador": "relatorio"}]}, correlation_id="c")
    await client.post(f"{URL}/c/cancel")
    assert await names_of(client, "") == ["c", "b", "a"]
    assert await names_of(client, "status=concluida") == ["a"]
    assert await names_of(client, "status=concluida&status=cancelada") == ["c", "a"]
    assert await names_of(client, "status=concluida,cancelada") == ["c", "a"]
    assert await names_of(client, "fonte=blog") == ["b"]
    assert await names_of(client, "fonte=nenhuma") == []
    assert await names_of(client, "executador=relatorio") == ["c"]
    assert await names_of(client, "executador=relatorio&status=erro") == []
    began = (await client.get(f"{URL}/b")).json()["inicio"]
    assert await names_of(client, f"since={began}") == ["c", "b"]
    assert await names_of(client, f"since={began.replace('Z', '+00:00')}") == ["c", "b"]
    assert await names_of(client, f"since={began.replace('Z', '%2B00:00')}&fonte=blog") == ["b"]
    assert await names_of(client, "since=2999-01-01T00:00:00Z") == []
    assert await names_of(client, "since=0001-01-01T00:00:00Z") == ["c", "b", "a"]
    datetime.fromisoformat(began)


@pytest.mark.parametrize(
    "query",
    [
        "status=feito",
        "status=concluida,feito",
        "status=",
        "limit=0",
        "limit=501",
        "limit=x",
        "fonte=../x",
        "fonte=a&executador=b",
        "since=ontem",
        "since=2025-10-14",
        "since=2025-10-14T12:00:00",
        "since=2025-13-01T00:00:00Z",
        "since=0000-01-01T00:00:00Z",
        "since=10000-01-01T00:00:00Z",
        "since=2025-01-01T00:00:00%2B99:99",
        "since=0001-01-01T00:00:00%2B12:00",
        "stauts=erro",
    ],
)
async def test_wrong_query(client: httpx2.AsyncClient, query: str) -> None:
    assert_problem(await client.get(f"{URL}?{query}"), 422, "invalid_parameter")


async def test_unknown_status_names_the_allowed(client: httpx2.AsyncClient) -> None:
    problem = (await client.get(f"{URL}?status=feito")).json()
    assert "em_execucao" in problem["detail"]
    assert "feito" in problem["detail"]


FORGED = [
    "",
    "x",
    "AAAA",
    "!!!!",
    "é",
    "a" * 5000,
    paging.encode("d", 5),
    paging.encode("o", 2**63),
    paging.encode("o", 1)[:-1],
]


@pytest.mark.parametrize("cursor", FORGED)
async def test_garbage_cursor(client: httpx2.AsyncClient, cursor: str) -> None:
    assert_problem(await client.get(URL, params={"cursor": cursor}), 422, "invalid_cursor")


async def test_pages_are_stable_while_more_arrives(client: httpx2.AsyncClient, submit: Submit) -> None:
    names = [await submit(correlation_id=f"n{number}") for number in range(25)]
    seen: list[str] = []
    address: str | None = f"{URL}?limit=10&status=pendente&status=em_execucao"
    pages = 0
    while address is not None:
        response = await client.get(address)
        seen += [one["correlation_id"] for one in response.json()["orchestrations"]]
        following = response.json()["next"]
        link = response.headers.get("link")
        assert (link is None) == (following is None)
        address = None if link is None else link.removeprefix("<").partition(">")[0]
        assert following is None or f"cursor={following}" in (address or "")
        await submit(correlation_id=f"later{pages}")
        pages += 1
    assert pages == 3
    assert seen == names[::-1]


async def test_the_last_page_has_no_next(client: httpx2.AsyncClient, submit: Submit) -> None:
    for number in range(4):
        await submit(correlation_id=f"n{number}")
    first = (await client.get(f"{URL}?limit=2")).json()
    second = (await client.get(f"{URL}?limit=2&cursor={first['next']}")).json()
    assert len(second["orchestrations"]) == 2
    assert second["next"] is None


# -- cancel ------------------------------------------------------------------------------------------------------------


async def test_cancel(client: httpx2.AsyncClient, submit: Submit) -> None:
    await submit(BOTH, correlation_id="abc")
    first = await client.post(f"{URL}/abc/cancel", json={"motivo": "errado"})
    assert (first.status_code, first.json()["cancelada"]) == (200, True)
    shown = (await client.get(f"{URL}/abc")).json()
    assert shown["motivo_cancelamento"] == "errado"
    assert {ticket["status"] for ticket in shown["tickets"]} == {"cancelada"}
    again = await client.post(f"{URL}/abc/cancel")
    assert again.json() == {"correlation_id": "abc", "status": "cancelada", "cancelada": False}
    assert (await client.get(f"{URL}/abc/result")).json()["status"] == "cancelada"


async def test_cancel_what_has_ended(client: httpx2.AsyncClient, worker: CurlWorker, submit: Submit) -> None:
    await submit(ONE, correlation_id="abc")
    await worker.do("escavador_youtube")
    response = await client.post(f"{URL}/abc/cancel", json={})
    assert response.json() == {"correlation_id": "abc", "status": "concluida", "cancelada": False}


@pytest.mark.parametrize(
    ("body", "status"), [({"motivo": 3}, 422), ({"x": 1}, 422), ([], 422), ({"motivo": "x" * 1001}, 422)]
)
async def test_cancel_wrong_body(client: httpx2.AsyncClient, submit: Submit, body: Any, status: int) -> None:
    await submit(ONE, correlation_id="abc")
    assert (await client.post(f"{URL}/abc/cancel", json=body)).status_code == status
    assert (await client.get(f"{URL}/abc")).json()["status"] != "cancelada"
