"""Dead letters over HTTP: look, requeue, discard."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from api.conftest import API, ONE, CurlWorker, assert_problem, result_of
from oraculo.core.ticket_id import ticket_id
from oraculo.ports.broker import Delivery, Outgoing
from oraculo.ports.dead_letters import DeadLetter
from oraculo.ports.journal import Batch
from oraculo.service import Oraculo
from oraculo.wire import quarantine
from waiting import until

URL = f"{API}/dead-letters"
RESULTS, REQUESTS = "orquestrador_resultados", "orquestrador_requisicoes"
Submit = Callable[..., Any]


async def publish(oraculo: Oraculo, queue: str, *bodies: bytes) -> None:
    """Through the broker, and wait until the orchestrator has quarantined them."""
    assert oraculo.broker is not None and oraculo.store is not None
    dead = oraculo.metrics.families.dead
    before = sum(
        sample.value for metric in dead.collect() for sample in metric.samples if sample.name.endswith("_total")
    )
    await oraculo.broker.publish([Outgoing(queue, body, "") for body in bodies])
    await until(
        lambda: (
            sum(s.value for m in dead.collect() for s in m.samples if s.name.endswith("_total")) == before + len(bodies)
        )
    )


async def listed(client: httpx2.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    letters: list[dict[str, Any]] = (await client.get(URL, params=query)).json()["dead_letters"]
    return letters


async def test_list_look_and_groups(client: httpx2.AsyncClient, oraculo: Oraculo) -> None:
    assert (await client.get(URL)).json() == {"dead_letters": [], "groups": [], "next": None}
    await publish(oraculo, RESULTS, b"{", b"\xff\xfe", b'{"a": "<b>"}')
    await publish(oraculo, REQUESTS, b"{}")
    letters = await listed(client)
    assert [letter["fila"] for letter in letters] == [REQUESTS, RESULTS, RESULTS, RESULTS]
    assert [letter["motivo"] for letter in await listed(client, fila=RESULTS, motivo="missing_field")] == [
        "missing_field"
    ]
    assert await listed(client, fila="outra") == []
    groups = (await client.get(URL)).json()["groups"]
    assert sum(group["total"] for group in groups) == 4
    one = (await client.get(f"{URL}/{letters[1]['id']}")).json()
    assert (one["corpo"], one["codificacao"]) == ('{"a": "<b>"}', "utf-8")
    odd = (await client.get(f"{URL}/{letters[2]['id']}")).json()
    assert (odd["corpo"], odd["codificacao"], odd["tamanho"]) == ("fffe", "hex", 2)


async def test_pages(client: httpx2.AsyncClient, oraculo: Oraculo) -> None:
    await publish(oraculo, RESULTS, *[b"{%d" % number for number in range(7)])
    first = (await client.get(URL, params={"limit": 3})).json()
    await publish(oraculo, RESULTS, b"new")
    second = (await client.get(URL, params={"limit": 3, "cursor": first["next"]})).json()
    third = (await client.get(URL, params={"limit": 3, "cursor": second["next"]})).json()
    ids = [letter["id"] for page in (first, second, third) for letter in page["dead_letters"]]
    assert ids == sorted(ids, reverse=True)
    assert (len(ids), third["next"]) == (7, None)
    assert_problem(await client.get(URL, params={"cursor": "x"}), 422, "invalid_cursor")
    assert_problem(await client.get(URL, params={"limit": 0}), 422, "invalid_parameter")


@pytest.mark.parametrize("id", ["0", "99", "x", "-1", "1.0", "9" * 30, "%D9%A1", "requeue"])
async def test_unknown(client: httpx2.AsyncClient, id: str) -> None:
    assert_problem(await client.get(f"{URL}/{id}"), 404, "unknown_id")
    assert_problem(await client.post(f"{URL}/{id}/requeue"), 404, "unknown_id")
    assert_problem(await client.delete(f"{URL}/{id}"), 404, "unknown_id")


async def test_discard_one(client: httpx2.AsyncClient, oraculo: Oraculo) -> None:
    await publish(oraculo, RESULTS, b"{")
    [letter] = await listed(client)
    response = await client.delete(f"{URL}/{letter['id']}", params={"motivo": "lixo"})
    assert (response.status_code, response.content) == (204, b"")
    assert await listed(client) == []
    assert_problem(await client.delete(f"{URL}/{letter['id']}"), 404, "unknown_id")
    [event] = (await client.get(f"{API}/system-events")).json()["eventos"]
    assert (event["evento"], event["quantas"], event["razao"]) == ("dead_letters_discarded", 1, "lixo")
    assert (event["fila"], event["motivo"]) == (RESULTS, "not_json")


async def test_discard_many_says_why(client: httpx2.AsyncClient, oraculo: Oraculo) -> None:
    await publish(oraculo, RESULTS, b"{", b"{{", b"{{{")
    told = (await client.delete(URL, params={"motivo": "not_json", "razao": "teste de carga"})).json()
    assert told == {"descartadas": 3}
    [event] = (await client.get(f"{API}/system-events", params={"limit": 1})).json()["eventos"]
    assert (event["quantas"], event["razao"]) == (3, "teste de carga")


async def test_requeued_result_counts_once_it_can(
    client: httpx2.AsyncClient, worker: CurlWorker, submit: Submit, oraculo: Oraculo
) -> None:
    """Two tickets of one source and an answer that names neither; when one is answered, the other is the only one."""
    await submit({"coletas": [{"fonte": "a"}, {"fonte": "a"}]}, correlation_id="abc")
    first, second = await worker.lease("escavador_a")
    unsaid = result_of(second["mensagem"], echo=False, dados=["second"])
    await publish(oraculo, RESULTS, json.dumps(unsaid).encode())
    [letter] = await listed(client, motivo="ambiguous")
    again = (await client.post(f"{URL}/{letter['id']}/requeue")).json()
    assert (again["situacao"], again["motivo"], again["removida"]) == ("quarantined", "ambiguous", False)
    assert await listed(client) == [letter], "refused again it stays, once"
    await worker.answer(result_of(first["mensagem"]))
    again = (await client.post(f"{URL}/{letter['id']}/requeue")).json()
    assert again == {
        "id": letter["id"], "situacao": "applied", "motivo": "applied", "correlation_id": "abc", "removida": True,
    }  # fmt: skip
    assert await listed(client) == []
    result = (await client.get(f"{API}/orchestrations/abc/result")).json()
    assert [coleta["dados"] for coleta in result["coletas"]] == [[1], ["second"]]


async def test_requeue_what_can_never_be_read(client: httpx2.AsyncClient, oraculo: Oraculo) -> None:
    await publish(oraculo, RESULTS, b"{")
    [letter] = await listed(client)
    for _ in range(3):
        told = (await client.post(f"{URL}/{letter['id']}/requeue")).json()
        assert (told["situacao"], told["motivo"], told["removida"]) == ("quarantined", "not_json", False)
    assert await listed(client) == [letter]


def request_message(name: str, payload: dict[str, Any]) -> bytes:
    envelope = {"correlation_id": name, "tipo_evento": "iniciar_coleta", "payload": payload}
    return json.dumps({**envelope, "timestamp": "2025-10-14T12:00:00Z"}).encode()


async def test_requeued_request_starts(client: httpx2.AsyncClient, oraculo: Oraculo) -> None:
    await publish(oraculo, REQUESTS, request_message("abc", {"tipo": "semanal"}))
    [letter] = await listed(client, fila=REQUESTS)
    assert letter["correlation_id"] == "abc"
    assert (await client.post(f"{URL}/{letter['id']}/requeue")).json()["removida"] is False
    await client.put(f"{API}/task-types/semanal", json=ONE)
    told = (await client.post(f"{URL}/{letter['id']}/requeue")).json()
    assert (told["situacao"], told["removida"]) == ("applied", True)
    assert (await client.get(f"{API}/orchestrations/abc")).json()["tipo"] == "semanal"


async def test_a_request_whose_id_is_taken_stays(client: httpx2.AsyncClient, oraculo: Oraculo) -> None:
    await client.post(f"{API}/orchestrations", json={**ONE, "correlation_id": "abc"})
    await publish(oraculo, REQUESTS, request_message("abc", {"coletas": [{"fonte": "outra"}]}))
    [letter] = await listed(client, fila=REQUESTS, motivo="conflict")
    told = (await client.post(f"{URL}/{letter['id']}/requeue")).json()
    assert (told["situacao"], told["removida"]) == ("conflict", False)
    assert await listed(client) == [letter]


async def test_letters_of_other_queues_are_published_there(
    client: httpx2.AsyncClient, worker: CurlWorker, oraculo: Oraculo
) -> None:
    assert oraculo.store is not None
    await oraculo.store.append(Batch(oraculo.now(), dead=[DeadLetter("escavador_a", "rejected", "", b'{"x":1}')]))
    [letter] = await listed(client)
    told = (await client.post(f"{URL}/{letter['id']}/requeue")).json()
    assert (told["situacao"], told["removida"]) == ("published", True)
    assert (await worker.lease("escavador_a"))[0]["mensagem"] == {"x": 1}


async def test_many(client: httpx2.AsyncClient, oraculo: Oraculo) -> None:
    await publish(oraculo, REQUESTS, *[request_message(f"n{n}", {"tipo": "semanal"}) for n in range(120)], b"{")
    await publish(oraculo, RESULTS, b"{", b"[")
    await client.put(f"{API}/task-types/semanal", json=ONE)
    told = (await client.post(f"{URL}/requeue", params={"fila": REQUESTS})).json()
    assert told == {"reenviadas": 120, "mantidas": 1, "situacoes": {"applied": 120, "quarantined": 1}}
    assert len((await client.get(f"{API}/orchestrations", params={"limit": 500})).json()["orchestrations"]) == 120
    assert len(await listed(client)) == 3
    assert (await client.delete(URL, params={"fila": RESULTS, "motivo": "outro"})).json() == {"descartadas": 0}
    assert (await client.delete(URL, params={"motivo": "not_json"})).json() == {"descartadas": 3}
    assert await listed(client) == []


async def test_many_need_a_filter_and_no_typing_errors(client: httpx2.AsyncClient, oraculo: Oraculo) -> None:
    await publish(oraculo, RESULTS, b"{")
    assert_problem(await client.delete(URL), 422, "filter_required")
    assert_problem(await client.post(f"{URL}/requeue"), 422, "filter_required")
    wrong = {"fila": RESULTS, "motvo": "ambiguous"}
    assert_problem(await client.delete(URL, params=wrong), 422, "invalid_parameter")
    assert_problem(await client.post(f"{URL}/requeue", params=wrong), 422, "invalid_parameter")
    assert len(await listed(client)) == 1


FAILURE = {"status": "erro", "erros": ["fora do ar"]}
TWO = {"coletas": [{"fonte": "a", "max_tentativas": 1}, {"fonte": "b"}]}


async def test_order_whose_attempts_are_used_up_is_quarantined(
    client: httpx2.AsyncClient, worker: CurlWorker, submit: Submit
) -> None:
    request = {"coletas": [{"fonte": "a", "max_tentativas": 2}, {"fonte": "b"}]}
    await submit(request, correlation_id="abc")
    for _ in range(2):
        await worker.do("escavador_a", **FAILURE)
    [letter] = await listed(client)
    assert (letter["fila"], letter["motivo"], letter["tentativas"]) == ("escavador_a", "attempts_used_up", 2)
    assert (letter["detalhe"], letter["correlation_id"]) == ("fora do ar", "abc")
    order = json.loads((await client.get(f"{URL}/{letter['id']}")).json()["corpo"])
    assert (order["tipo_evento"], order["tentativa"]) == ("iniciar_coleta", 2)
    assert order["payload"] == {"fonte": "a", "parametros": {}}


async def test_failure_that_its_worker_calls_final_is_no_dead_letter(
    client: httpx2.AsyncClient, worker: CurlWorker, submit: Submit
) -> None:
    await submit({"coletas": [{"fonte": "a"}, {"fonte": "b"}]})
    await worker.do("escavador_a", status="erro", erros=[{"mensagem": "não existe", "definitivo": True}])
    assert await listed(client) == []


async def test_requeued_order_is_a_further_attempt(
    client: httpx2.AsyncClient, worker: CurlWorker, submit: Submit
) -> None:
    await submit(TWO, correlation_id="abc")
    await worker.do("escavador_a", **FAILURE)
    [letter] = await listed(client)
    assert_problem(await client.post(f"{URL}/{letter['id']}/requeue", json={"corpo": "{}"}), 422, "invalid_request")
    told = (await client.post(f"{URL}/{letter['id']}/requeue")).json()
    assert (told["situacao"], told["removida"], told["correlation_id"]) == ("applied", True, "abc")
    assert await listed(client) == []
    [order] = await worker.lease("escavador_a")
    assert order["mensagem"]["tentativa"] == 2
    await worker.answer(result_of(order["mensagem"]))
    await worker.do("escavador_b")
    result = (await client.get(f"{API}/orchestrations/abc/result", params={"wait": 5})).json()
    assert result["status"] == "concluida"
    assert [one["tentativas"] for one in result["coletas"]] == [2, 1]
    events = (await client.get(f"{API}/orchestrations/abc/events")).json()["events"]
    [requeued] = [one for one in events if one["evento"] == "ticket_requeued"]
    assert (requeued["tentativa"], requeued["destino"]) == (2, "escavador_a")
    assert requeued["ator"]


async def test_order_of_a_finished_orchestration_stays_a_dead_letter(
    client: httpx2.AsyncClient, worker: CurlWorker, submit: Submit
) -> None:
    await submit({"coletas": [{"fonte": "a", "max_tentativas": 1}]}, correlation_id="abc")
    await worker.do("escavador_a", **FAILURE)
    [letter] = await listed(client)
    told = (await client.post(f"{URL}/{letter['id']}/requeue")).json()
    assert (told["situacao"], told["motivo"], told["removida"]) == ("quarantined", "run_ended", False)
    assert await listed(client) == [letter]
    bulk = (await client.post(f"{URL}/requeue", params={"motivo": "attempts_used_up"})).json()
    assert (bulk["reenviadas"], bulk["mantidas"]) == (0, 1)


def test_header_of_a_stranger_does_not_make_an_exhausted_order() -> None:
    forged = {"oraculo-motivo": "attempts_used_up", "oraculo-ticket": ticket_id(5, 0)}
    letter = quarantine.letter(Delivery("escavador_a.dlq", b"{}", 0, headers=forged))
    assert letter.reason == "attempts_used_up"
    assert quarantine.exhausted_ticket(letter) is None


async def test_large_data_are_left_out_of_the_letter(
    client: httpx2.AsyncClient, worker: CurlWorker, submit: Submit
) -> None:
    await submit({"coletas": [{"fonte": "a"}], "execucoes": [{"executador": "x", "max_tentativas": 1}]})
    await worker.do("escavador_a", dados="x" * 100_000)
    await worker.do("executador_x", **FAILURE)
    [letter] = await listed(client)
    assert letter["tamanho"] < 10_000
    order = json.loads((await client.get(f"{URL}/{letter['id']}")).json()["corpo"])
    assert order["payload"]["dados_ref"]["omitidos"] is True
