"""Plans of named tasks over HTTP: asked for, worked on, looked at, refused, kept as task types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2

from api.conftest import API, CurlWorker, Start, assert_problem, client_of, result_of, settings_for
from oraculo.api.app import create_app
from oraculo.service import Oraculo
from waiting import until

URL = f"{API}/orchestrations"
BODY: dict[str, Any] = {
    "tarefas": {
        "videos": {"fonte": "youtube", "parametros": {"canal": "x"}},
        "noticias": {"fonte": "blog", "opcional": True, "max_tentativas": 1},
        "texto": {"executador": "resumo", "depende": ["videos", "noticias"]},
        "capa": {"executador": "capa", "depende": ["noticias"]},
        "relatorio": {"executador": "relatorio", "depende": ["texto", "capa"], "fan_in": {"modo": "fechadas"}},
    }
}
ENGLISH: dict[str, Any] = {
    "tasks": {
        "videos": {"source": "youtube", "params": {"canal": "x"}},
        "noticias": {"source": "blog", "optional": True, "max_attempts": 1},
        "texto": {"executor": "resumo", "needs": ["videos", "noticias"]},
        "capa": {"executor": "capa", "needs": ["noticias"]},
        "relatorio": {"executor": "relatorio", "needs": ["texto", "capa"], "fan_in": {"mode": "fechadas"}},
    }
}


async def submitted(client: httpx2.AsyncClient, body: dict[str, Any], **headers: str) -> str:
    answer = await client.post(URL, json=body, headers=headers)
    assert answer.status_code == 202, answer.text
    name: str = answer.json()["correlation_id"]
    return name


async def test_the_whole_story(client: httpx2.AsyncClient) -> None:
    worker = CurlWorker(client)
    name = await submitted(client, BODY)
    await worker.do("escavador_youtube", dados=[1])
    await worker.do("escavador_blog", status="erro", dados=None, erros=[{"codigo": "http_500", "mensagem": "fora"}])
    [order] = await worker.lease("executador_resumo", max=1)
    assert [(one["tarefa"], one["status"], one["dados"]) for one in order["mensagem"]["payload"]["dados"]] == [
        ("videos", "concluida", [1]), ("noticias", "erro", None),
    ]  # fmt: skip

    async def sent() -> Any:
        shown = (await client.get(f"{URL}/{name}")).json()
        return any(one["tarefa"] == "texto" and one["status"] == "em_execucao" for one in shown["tickets"]) and shown

    shown = await until(sent, "the confirmation of the order is written; a worker may have it before")
    assert {one["tarefa"]: one["status"] for one in shown["tickets"]} == {
        "videos": "concluida", "noticias": "erro", "texto": "em_execucao", "capa": "ignorada",
        "relatorio": "pendente",
    }  # fmt: skip
    assert shown["fan_in"] == {}
    await worker.answer(result_of(order["mensagem"], resultado="um texto"))
    await worker.do("executador_relatorio")
    result = (await client.get(f"{URL}/{name}/result", params={"wait": 10})).json()
    assert result["status"] == "parcial"
    assert list(result["tarefas"]) == list(BODY["tarefas"])
    assert result["tarefas"]["texto"]["resultado"]["resultado"] == "um texto"
    assert result["tarefas"]["capa"] == {
        "status": "ignorada", "resultado": None, "erros": [], "tentativas": 0, "duracao_ms": None,
    }  # fmt: skip
    assert result["saida"] is None
    events = (await client.get(f"{URL}/{name}/events")).json()["events"]
    closed = [one for one in events if one["evento"] == "tickets_closed"]
    assert [(one["status"], one["motivo"]) for one in closed] == [("ignorada", "tudo de que depende foi ignorado")]


async def test_english_words_are_the_same_request(client: httpx2.AsyncClient) -> None:
    first = await submitted(client, {**BODY, "correlation_id": "abc"})
    again = await client.post(URL, json={**ENGLISH, "correlation_id": "abc"})
    assert (first, again.status_code, again.headers["idempotent-replayed"]) == ("abc", 202, "true")
    other = {**ENGLISH, "correlation_id": "abc", "timeout_s": 5}
    assert_problem(await client.post(URL, json=other), 409, "correlation_id_taken")


async def test_the_runs_page_and_its_picture(client: httpx2.AsyncClient) -> None:
    name = await submitted(client, BODY)
    assert (await client.get(f"/runs/{name}")).status_code == 200
    documents = await client.get(f"/ui/runs/{name}/documents")
    assert documents.status_code == 200
    assert "noticias" in documents.text, "what was asked for is shown"
    again = await client.get("/new", params={"from": name})
    assert again.status_code == 200
    assert "tarefas" in again.text


async def test_what_is_wrong_is_said_with_its_place(client: httpx2.AsyncClient) -> None:
    tasks = {
        "a": {"executador": "x", "prioridade": 10},
        "c": {"filha": {"tarefas": {"d": {"executador": "x", "prioridade": 0}}}},
    }
    refused = assert_problem(await client.post(URL, json={"tarefas": tasks}), 422, "invalid_request")
    places = [one["campo"] for one in refused["errors"]]
    assert places == ["tarefas.a.prioridade", "tarefas.c.filha.tarefas.d.prioridade"]
    circle = {"a": {"executador": "x", "depende": ["b"]}, "b": {"executador": "x", "depende": ["a"]}}
    refused = assert_problem(await client.post(URL, json={"tarefas": circle}), 422, "invalid_request")
    assert "a → b → a" in refused["detail"]
    assert (await client.get(URL)).json()["orchestrations"] == []


async def test_a_task_type_that_is_a_plan(started: Start) -> None:
    types = f"{API}/task-types"
    async with started() as client:
        added = await client.put(f"{types}/semanal", json=ENGLISH)
        assert (added.status_code, added.json()) == (201, BODY)
    async with started() as client:
        shown = (await client.get(f"{types}/semanal")).json()
        assert shown == BODY
        assert (await client.put(f"{types}/outro", json=shown)).json() == shown
        name = await submitted(client, {"tipo": "semanal"})
        tickets = (await client.get(f"{URL}/{name}")).json()["tickets"]
        assert [one["tarefa"] for one in tickets] == list(BODY["tarefas"])


async def test_expressions(client: httpx2.AsyncClient) -> None:
    worker = CurlWorker(client)
    body = {
        "input": {"canal": "x"},
        "tasks": {
            "videos": {"source": "youtube", "params": {"canal": "${{ input.canal }}"}},
            "top": {
                "executor": "ranking",
                "when": "${{ videos.data.size() > 1 }}",
                "params": {"n": "${{ videos.data }}"},
            },
            "none": {"executor": "vazio", "when": "${{ videos.data.size() <= 1 }}"},
            "fim": {"executor": "email", "needs": ["top", "none"], "params": {"texto": "${{ top.status }}!"}},
        },
        "output": "${{ fim.result.resultado }}",
    }
    name = await submitted(client, body)
    [order] = await worker.lease("escavador_youtube", max=1)
    assert order["mensagem"]["payload"]["parametros"] == {"canal": "x"}
    await worker.answer(result_of(order["mensagem"], dados=[1, 2]))
    [order] = await worker.lease("executador_ranking", max=1)
    assert order["mensagem"]["payload"] == {"executador": "ranking", "parametros": {"n": [1, 2]}, "dados": []}
    await worker.answer(result_of(order["mensagem"]))
    [order] = await worker.lease("executador_email", max=1)
    assert order["mensagem"]["payload"]["parametros"] == {"texto": "concluida!"}
    await worker.answer(result_of(order["mensagem"], resultado="enviado"))
    result = (await client.get(f"{URL}/{name}/result", params={"wait": 10})).json()
    assert (result["status"], result["saida"]) == ("concluida", "enviado")
    assert result["tarefas"]["none"]["status"] == "ignorada"
    events = (await client.get(f"{URL}/{name}/events")).json()["events"]
    skipped = [one for event in events for one in event.get("avaliacoes", ()) if one["desfecho"] == "skip"]
    assert [(one["tarefa"], one["expressao"], one["detalhe"]) for one in skipped] == [
        ("none", "${{ videos.data.size() <= 1 }}", "videos: concluida")
    ]
    assert (await client.get(f"/runs/{name}")).status_code == 200


async def test_an_evaluation_that_takes_long_is_made_beside_the_loop(client: httpx2.AsyncClient) -> None:
    worker = CurlWorker(client)
    costly = "${{ entrada.lista.map(x, entrada.lista.map(y, x + y).size()).sum() }}"
    body = {"entrada": {"lista": list(range(200))}, "tarefas": {"a": {"fonte": "a", "parametros": {"n": costly}}}}
    name = await submitted(client, {**body, "saida": costly})
    [order] = await worker.lease("escavador_a", max=1)
    assert order["mensagem"]["payload"]["parametros"] == {"n": 40_000}
    await worker.answer(result_of(order["mensagem"]))
    result = (await client.get(f"{URL}/{name}/result", params={"wait": 30})).json()
    assert (result["status"], result["saida"]) == ("concluida", 40_000)


async def test_the_parameters_of_a_task_type_are_its_input(client: httpx2.AsyncClient) -> None:
    plan = {"entrada": {"a": 1, "b": 2}, "tarefas": {"t": {"fonte": "a", "parametros": {"x": "${{ entrada }}"}}}}
    assert (await client.put(f"{API}/task-types/semanal", json=plan)).status_code == 201
    await submitted(client, {"tipo": "semanal", "parametros": {"b": 3}})
    [order] = await CurlWorker(client).lease("escavador_a", max=1)
    assert order["mensagem"]["payload"]["parametros"] == {"x": {"a": 1, "b": 3}}


async def test_what_has_more_priority_goes_first(tmp_path: Path) -> None:
    """What is ready together goes by it; under the ceiling what came later overtakes what waits, of other plans too."""
    call = {"executador": "x"}
    first = {"a": {**call, "prioridade": 1}, "b": {**call, "prioridade": 9}, "c": call}
    later = {"d": {**call, "prioridade": 7}, "e": {"para_cada": [1], "faz": call, "prioridade": 8}}
    settings = settings_for(tmp_path, SCHEDULER_MAX_PARALLEL_TICKETS="1")
    async with Oraculo(settings) as oraculo, client_of(create_app(oraculo)) as client:
        worker, taken = CurlWorker(client), []
        for number, tasks in enumerate((first, later)):
            body = {"tarefas": tasks, "correlation_id": f"p{number}"}
            assert (await client.post(URL, json=body)).status_code == 202
        for _ in range(5):
            [order] = await worker.lease("executador_x", max=5)
            ticket = (await client.get(f"{API}/tickets/{order['mensagem']['ticket_id']}")).json()
            taken.append((ticket["tarefa"], ticket.get("prioridade")))
            await worker.answer(result_of(order["mensagem"]))
        assert taken == [("b", 9), ("e", 8), ("d", 7), ("c", None), ("a", 1)]
        page = await client.get("/ui/runs/p0/tickets/0", headers={"Accept-Language": "en"})
        assert page.status_code == 200 and "1 / 9" in page.text


async def test_a_cancel_that_undoes(client: httpx2.AsyncClient) -> None:
    undo = {"executador": "apaga", "parametros": {"id": "${{ feito.resultado }}"}}
    tasks = {"a": {"executador": "x", "desfaz": undo}, "b": {"executador": "y", "depende": ["a"]}}
    assert (await client.post(URL, json={"tarefas": tasks, "correlation_id": "u"})).status_code == 202
    worker = CurlWorker(client)
    await worker.do("executador_x", resultado="r1")
    assert len(await worker.lease("executador_y", max=1)) == 1
    refused = await client.post(f"{URL}/u/cancel", json={"desfazer": "sim"})
    assert_problem(refused, 422, "invalid_request")
    answer = (await client.post(f"{URL}/u/cancel", json={"motivo": "chega", "desfazer": True})).json()
    assert (answer["cancelada"], answer["status"]) == (True, "em_execucao")
    shown = (await client.get(f"{URL}/u", headers={"Accept-Language": "en"}, params={"words": "en"})).json()
    assert shown["desfazendo"]["desfecho"] == "cancelled" and shown["wait"] == "undoing 0/1"
    page = await client.get("/runs/u")
    assert page.status_code == 200
    [undoing] = await worker.lease("executador_apaga", max=1)
    assert undoing["mensagem"]["payload"]["parametros"] == {"id": "r1"}
    # a worker that echoes nothing: nobody else can have said this
    await worker.answer({**result_of(undoing["mensagem"], echo=False), "payload": {"executador": "apaga"}})
    result = (await client.get(f"{URL}/u/result", params={"wait": 30})).json()
    assert result["status"] == "cancelada" and result["tarefas"]["a"]["desfeita"] == "concluida"
    events = (await client.get(f"{URL}/u/events")).json()["events"]
    [began] = [one for one in events if one["evento"] == "compensation_started"]
    assert (began["desfecho"], began["motivo"], len(began["desfaz"])) == ("cancelada", "cancelled", 1)
