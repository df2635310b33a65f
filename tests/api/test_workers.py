"""Work over plain HTTP: lease, answer, extend, release; and an orchestration done by nothing but HTTP and JSON."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from api.conftest import API, BOTH, ONE, CurlWorker, assert_problem, client_of, result_of, settings_for
from oraculo import Worker
from oraculo.adapters.brokers.memory import MemoryBroker
from oraculo.api.app import create_app
from oraculo.ports.broker import Outgoing
from oraculo.service import Oraculo
from waiting import until

URL = f"{API}/orchestrations"
Submit = Callable[..., Any]


@pytest.mark.parametrize("echo", [True, False], ids=["echoes", "four fields only"])
async def test_a_whole_orchestration(served: httpx2.AsyncClient, oraculo: Oraculo, echo: bool) -> None:
    worker = CurlWorker(served, "curl-1")
    await served.post(URL, json={**BOTH, "correlation_id": "abc/1"})
    for queue in ("escavador_youtube", "escavador_blog"):
        [order] = await worker.lease(queue)
        assert order["mensagem"]["tipo_evento"] == "iniciar_coleta"
        assert order["mensagem"]["payload"]["parametros"] == {}
        told = await worker.answer(result_of(order["mensagem"], echo=echo, dados=[queue]))
        assert told["aceitos"] == 1
        assert told["recusados"] == []
        assert told["resultados"][0]["situacao"] == "applied"
    [order] = await worker.lease("executador_relatorio")
    assert order["mensagem"]["payload"]["dados"] == [
        {"fonte": "youtube", "status": "concluida", "dados": ["escavador_youtube"]},
        {"fonte": "blog", "status": "concluida", "dados": ["escavador_blog"]},
    ]
    await worker.answer(result_of(order["mensagem"], echo=echo))
    result = (await served.get(f"{URL}/abc%2F1/result?wait=10")).json()
    assert result["status"] == "concluida"
    assert result["execucoes"][0]["resultado"] == {"resultado": "ok", "arquivo": "relatorio.pdf"}
    assert len(oraculo.leases) == 0, "every lease is settled"
    assert isinstance(oraculo.broker, MemoryBroker)
    assert all(taken == 0 for _, taken in oraculo.broker.depths().values())
    [seen] = (await served.get(f"{API}/workers")).json()["workers"]
    assert (seen["nome"], seen["transporte"], seen["entregues"], seen["respondidas"]) == ("curl-1", "http", 3, 3)
    assert seen["filas"] == ["escavador_blog", "escavador_youtube", "executador_relatorio"]


async def test_message_bytes_are_passed_on_as_they_are(client: httpx2.AsyncClient, worker: CurlWorker) -> None:
    await client.post(
        URL, content=b'{"coletas":[{"fonte":"a","parametros":{"f":1.0,"i":18446744073709551615,"s":"\\u00e7"}}]}',
        headers={"Content-Type": "application/json"},
    )  # fmt: skip
    response = await client.post(f"{API}/queues/escavador_a/lease", json={})
    assert b'"parametros":{"f":1.0,"i":18446744073709551615,"s":"\xc3\xa7"}' in response.content


async def test_lease_without_a_body(client: httpx2.AsyncClient, submit: Submit) -> None:
    await submit()
    response = await client.post(f"{API}/queues/escavador_youtube/lease")
    assert len(response.json()["mensagens"]) == 1


async def test_lease_waits_for_work(client: httpx2.AsyncClient, worker: CurlWorker, submit: Submit, app: Any) -> None:
    waiting = asyncio.create_task(worker.lease("escavador_youtube", wait=60))
    await until(lambda: len(app.state.waits) == 1)
    await submit(correlation_id="abc")
    [order] = await waiting
    assert order["mensagem"]["correlation_id"] == "abc"


async def test_nothing_came(worker: CurlWorker) -> None:
    assert await worker.lease("escavador_youtube", wait=0) == []
    assert await worker.lease("escavador_youtube", wait=0.02) == []


async def test_as_many_as_asked_for(worker: CurlWorker, submit: Submit) -> None:
    for _ in range(5):
        await submit()
    everything = await worker.take("escavador_youtube", 5)
    for one in everything:
        await worker.client.post(f"{API}/leases/{one['lease_id']}/release")
    assert len(await worker.lease("escavador_youtube", max=2)) == 2
    assert len(await worker.lease("escavador_youtube", max=1000)) == 3


async def test_who_leaves_while_waiting_takes_nothing(
    served: httpx2.AsyncClient, worker: CurlWorker, submit: Submit, app: Any
) -> None:
    gone = asyncio.create_task(CurlWorker(served, "gone").lease("escavador_youtube", wait=60))
    await until(lambda: len(app.state.waits) == 1)
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    await until(lambda: not len(app.state.waits))
    await submit()
    assert len(await worker.lease("escavador_youtube")) == 1


@pytest.mark.parametrize(
    "body",
    [
        {"max": 0},
        {"max": 1001},
        {"max": "1"},
        {"wait": -1},
        {"wait": 301},
        {"lease_s": 0},
        {"worker": ""},
        {"x": 1},
        [],
    ],
)
async def test_wrong_lease(client: httpx2.AsyncClient, body: Any) -> None:
    assert_problem(await client.post(f"{API}/queues/q/lease", json=body), 422, "invalid_request")


@pytest.mark.parametrize("queue", ["%2E%2E", "a%2Fb", "%20", "a%0A", "é", "x" * 201])
async def test_wrong_queue(client: httpx2.AsyncClient, queue: str) -> None:
    assert_problem(
        await client.post(f"http://oraculo.test{API}/queues/{queue}/lease", json={"wait": 0}), 422, "invalid_parameter"
    )


@pytest.mark.parametrize(
    "queue",
    [
        "orquestrador_resultados",
        "orquestrador_requisicoes",
        "plans.consensus",
        "execution.results",
        "cognitive-plans-approval-responses",
        "oraculo_sonda",
        "escavador_youtube.dlq",
        "orquestrador_resultados.dlq",
    ],
)
async def test_our_own_queues_are_not_for_workers(client: httpx2.AsyncClient, queue: str) -> None:
    assert_problem(await client.post(f"{API}/queues/{queue}/lease", json={"wait": 0}), 422, "reserved_queue")


async def test_every_queue_that_the_orchestrator_reads_is_its_own(client: httpx2.AsyncClient, oraculo: Oraculo) -> None:
    for queue in oraculo.consumers.queues:
        assert_problem(await client.post(f"{API}/queues/{queue}/lease", json={"wait": 0}), 422, "reserved_queue")
    leased = await client.post(f"{API}/queues/execution.tickets/lease", json={"wait": 0})
    assert leased.status_code == 200  # workers of Fluxo C


@pytest.mark.parametrize(
    "queue",
    [
        "orquestrador_resultados",
        "orquestrador_requisicoes",
        "plans.consensus",
        "execution.results",
        "execution.tickets",
        "telemetry.orchestration",
        "cognitive-plans-approval-responses",
        "oraculo_sonda",
        "avisos.dlq",
    ],
)
async def test_no_notice_goes_to_a_queue_of_our_own(client: httpx2.AsyncClient, queue: str) -> None:
    asked = {**ONE, "notificar": {"fila": queue}}
    document = assert_problem(await client.post(f"{API}/orchestrations", json=asked), 422, "invalid_plan")
    assert queue in document["detail"]
    assert_problem(await client.put(f"{API}/task-types/t", json=asked), 422, "invalid_plan")


@pytest.mark.parametrize(
    "asked", [{"coletas": [{"fonte": "youtube.dlq"}]}, {"execucoes": [{"executador": "relatorio.dlq"}]}]
)
async def test_no_order_goes_to_dead_letters(client: httpx2.AsyncClient, asked: dict[str, Any]) -> None:
    assert_problem(await client.post(f"{API}/orchestrations", json=asked), 422, "invalid_plan")


async def test_a_message_that_is_not_json_is_shown_as_text(worker: CurlWorker, oraculo: Oraculo) -> None:
    assert oraculo.broker is not None
    await oraculo.broker.publish([Outgoing("avisos", b"\xffnot json", "1"), Outgoing("avisos", b'{"a": 1}', "2")])
    assert [one["mensagem"] for one in await worker.lease("avisos")] == ["\ufffdnot json", {"a": 1}]


# -- results -----------------------------------------------------------------------------------------------------------


async def test_a_forged_answer_does_not_make_the_honest_one_disappear(
    client: httpx2.AsyncClient, worker: CurlWorker, submit: Submit
) -> None:
    await submit(correlation_id="abc")
    [order] = await worker.lease("escavador_youtube")
    honest = result_of(order["mensagem"])
    forged = {name: honest[name] for name in ("correlation_id", "tipo_evento", "timestamp")}
    forged["payload"] = {"fonte": "youtube", "status": "ok", "dados": "FORJADO"}
    assert (await worker.answer(forged))["resultados"][0]["situacao"] == "applied"
    assert (await worker.answer(honest))["resultados"][0]["situacao"] == "conflicting_answer"
    assert (await worker.answer(honest))["resultados"][0]["situacao"] == "duplicate"
    [ticket] = (await client.get(f"{URL}/abc")).json()["tickets"]
    assert [one["dados"] for one in ticket["respostas_conflitantes"]] == [honest["payload"]["dados"]]
    events = (await client.get(f"{URL}/abc/events")).json()["events"]
    assert [one["evento"] for one in events].count("conflicting_answer_kept") == 1
    metrics = (await client.get("/metrics")).text
    assert "\norchestration_conflicting_answers_total 1.0\n" in metrics


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({"executador": "relatorio", "resultado": "ok"}, "applied"),
        ({"fonte": "relatorio", "status": "ok", "dados": {"arquivo": "relatorio.pdf"}}, "applied"),
        ({"resultado": "ok", "arquivo": "relatorio.pdf"}, "ambiguous"),
    ],
    ids=["names itself", "as a source", "names nothing"],
)
async def test_an_executor_that_answers_resultado_coleta(
    worker: CurlWorker, submit: Submit, payload: dict[str, Any], expected: str
) -> None:
    """As in the first sketch of the distribution, which sends `iniciar_coleta` to executors too."""
    await submit(correlation_id="abc", execucoes=[{"executador": "relatorio"}])
    [order] = await worker.lease("escavador_youtube")
    await worker.answer(result_of(order["mensagem"]))
    [order] = await worker.lease("executador_relatorio")
    envelope = {name: order["mensagem"][name] for name in ("correlation_id", "timestamp")}
    told = await worker.answer({**envelope, "tipo_evento": "resultado_coleta", "payload": payload})
    became = [one["situacao"] for one in told["resultados"]] + [one["motivo"] for one in told["recusados"]]
    assert became == [expected]


async def test_duplicate_late_and_unknown(client: httpx2.AsyncClient, worker: CurlWorker, submit: Submit) -> None:
    await submit(correlation_id="abc")
    [order] = await worker.lease("escavador_youtube")
    answer = result_of(order["mensagem"])
    assert (await worker.answer(answer))["resultados"][0]["situacao"] == "applied"
    assert (await worker.answer(answer))["resultados"][0]["situacao"] == "duplicate"
    await submit(correlation_id="def")
    [order] = await worker.lease("escavador_youtube")
    await client.post(f"{URL}/def/cancel")
    late = await worker.answer(result_of(order["mensagem"]))
    assert (late["aceitos"], late["resultados"][0]["situacao"]) == (1, "late")
    unknown = await worker.answer({**answer, "correlation_id": "nope"})
    assert unknown["aceitos"] == 0
    assert unknown["recusados"][0]["motivo"] == "unknown_correlation"
    [letter] = (await client.get(f"{API}/dead-letters")).json()["dead_letters"]
    assert (letter["motivo"], letter["fila"]) == ("unknown_correlation", "orquestrador_resultados")


async def test_ambiguous_is_never_guessed(client: httpx2.AsyncClient, worker: CurlWorker, submit: Submit) -> None:
    await submit({"coletas": [{"fonte": "a"}, {"fonte": "a"}]}, correlation_id="abc")
    first, _ = await worker.take("escavador_a", 2)
    told = await worker.answer(result_of(first["mensagem"], echo=False))
    assert told["recusados"][0]["motivo"] == "ambiguous"
    assert (await client.get(f"{URL}/abc")).json()["fim"] is None


async def test_a_list_counts_what_is_good_and_keeps_the_rest(
    client: httpx2.AsyncClient, worker: CurlWorker, submit: Submit
) -> None:
    for number in range(3):
        await submit(correlation_id=f"n{number}")
    orders = await worker.take("escavador_youtube", 3)
    good = [result_of(order["mensagem"]) for order in orders]
    broken: list[Any] = [{"correlation_id": "n0"}, 7, None, {**good[0], "tipo_evento": "outro"}]
    broken.append({**good[0], "tipo_evento": "iniciar_coleta"})
    response = await client.post(f"{API}/results", json=[*good, *broken])
    told = response.json()
    assert (response.status_code, told["aceitos"]) == (202, 3)
    reasons = ["missing_field", "not_an_object", "not_an_object", "unknown_event", "unexpected_event"]
    assert [(one["indice"], one["motivo"]) for one in told["recusados"]] == list(enumerate(reasons, 3))
    letters = (await client.get(f"{API}/dead-letters")).json()
    assert len(letters["dead_letters"]) == 5
    assert {group["motivo"]: group["total"] for group in letters["groups"]}["not_an_object"] == 2


async def test_an_empty_list(worker: CurlWorker, client: httpx2.AsyncClient) -> None:
    response = await client.post(f"{API}/results", json=[])
    assert response.json() == {"aceitos": 0, "recusados": [], "resultados": []}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "missing_field"),
        (7, "not_an_object"),
        (
            {"correlation_id": "a", "tipo_evento": "x", "payload": {}, "timestamp": "2025-10-14T12:00:00Z"},
            "unknown_event",
        ),
        (
            {
                "correlation_id": "a",
                "tipo_evento": "iniciar_coleta",
                "payload": {},
                "timestamp": "2025-10-14T12:00:00Z",
            },
            "unexpected_event",
        ),
        (
            {"correlation_id": "a", "tipo_evento": "resultado_coleta", "payload": {}, "timestamp": "2025-10-14"},
            "invalid_field",
        ),
    ],
)
async def test_one_that_cannot_be_read_is_told_to_the_sender(client: httpx2.AsyncClient, body: Any, code: str) -> None:
    assert_problem(await client.post(f"{API}/results", json=body), 422, code)
    assert (await client.get(f"{API}/dead-letters")).json()["dead_letters"] == []


async def test_not_json_at_all(client: httpx2.AsyncClient) -> None:
    response = await client.post(f"{API}/results", content=b"{", headers={"Content-Type": "application/json"})
    assert_problem(response, 400, "not_json")


async def test_sizes(client: httpx2.AsyncClient, worker: CurlWorker, submit: Submit) -> None:
    await submit({"coletas": [{"fonte": "a"} for _ in range(3)]}, correlation_id="abc")
    orders = await worker.take("escavador_a", 3)
    large = [result_of(order["mensagem"], dados="x" * 900_000) for order in orders]
    assert (await worker.answer(*large))["aceitos"] == 3
    assert (await client.get(f"{URL}/abc/result")).json()["status"] == "concluida"
    too_large = {**large[0], "payload": {"dados": "x" * 1_100_000}}
    assert_problem(await client.post(f"{API}/results", json=too_large), 413, "too_large")
    told = await worker.answer(too_large, too_large)
    assert [one["motivo"] for one in told["recusados"]] == ["too_large", "too_large"]
    assert_problem(await client.post(f"{API}/results", json=[1] * 1001), 422, "invalid_request")


async def test_failure_and_retry(client: httpx2.AsyncClient, worker: CurlWorker, submit: Submit) -> None:
    await submit(correlation_id="abc")
    erro = {"codigo": "x", "mensagem": "deu errado", "definitivo": False}
    await worker.do("escavador_youtube", status="erro", erros=[erro])
    [again] = await worker.lease("escavador_youtube")
    assert again["mensagem"]["tentativa"] == 2
    await worker.answer(result_of(again["mensagem"]))
    assert (await client.get(f"{URL}/abc/result")).json()["coletas"][0]["tentativas"] == 2


# -- leases ------------------------------------------------------------------------------------------------------------


async def test_extend(client: httpx2.AsyncClient, worker: CurlWorker, submit: Submit) -> None:
    await submit()
    [order] = await worker.lease("escavador_youtube", lease_s=5)
    here = f"{API}/leases/{order['lease_id']}"
    longer = await client.post(f"{here}/extend", json={"lease_s": 600})
    assert longer.status_code == 200
    assert longer.json()["expira_em"] > order["expira_em"]
    assert (await client.post(f"{here}/extend")).json()["expira_em"] >= longer.json()["expira_em"]
    assert_problem(await client.post(f"{here}/extend", json={"lease_s": 3601}), 422, "invalid_request")


async def test_extend_what_nobody_wants(client: httpx2.AsyncClient, worker: CurlWorker, submit: Submit) -> None:
    await submit(correlation_id="abc")
    [order] = await worker.lease("escavador_youtube")
    await client.post(f"{URL}/abc/cancel")
    here = f"{API}/leases/{order['lease_id']}"
    assert_problem(await client.post(f"{here}/extend"), 410, "not_wanted")
    assert_problem(await client.post(f"{here}/extend"), 404, "unknown_id")
    assert await worker.lease("escavador_youtube", wait=0) == []


async def test_release(client: httpx2.AsyncClient, worker: CurlWorker, submit: Submit) -> None:
    await submit()
    [order] = await worker.lease("escavador_youtube")
    response = await client.post(f"{API}/leases/{order['lease_id']}/release")
    assert (response.status_code, response.content) == (204, b"")
    assert_problem(await client.post(f"{API}/leases/{order['lease_id']}/release"), 404, "unknown_id")
    [again] = await worker.lease("escavador_youtube")
    assert again["mensagem"] == order["mensagem"]
    await client.post(f"{API}/leases/{again['lease_id']}/release", json={"delay_s": 0.02})
    assert len(await worker.lease("escavador_youtube")) == 1


async def test_an_expired_lease_goes_to_another_and_the_first_answer_counts(
    worker: CurlWorker, client: httpx2.AsyncClient, submit: Submit, oraculo: Oraculo
) -> None:
    await submit(correlation_id="abc")
    [order] = await worker.lease("escavador_youtube", lease_s=1)
    [again] = await CurlWorker(client, "second").lease("escavador_youtube", wait=30)
    assert again["mensagem"] == order["mensagem"]
    assert (await worker.answer(result_of(order["mensagem"])))["aceitos"] == 1
    assert len(oraculo.leases) == 0
    assert_problem(await client.post(f"{API}/leases/{again['lease_id']}/extend"), 404, "unknown_id")


@pytest.mark.parametrize("verb", ["extend", "release"])
async def test_unknown_lease(client: httpx2.AsyncClient, verb: str) -> None:
    assert_problem(await client.post(f"{API}/leases/a%2Fb/{verb}"), 404, "unknown_id")


async def test_a_notice_is_taken_and_done_with(client: httpx2.AsyncClient) -> None:
    worker = CurlWorker(client, "curl-1")
    await client.post(URL, json={**ONE, "correlation_id": "abc", "notificar": {"fila": "avisos"}})
    [order] = await worker.lease("escavador_youtube")
    refused = await client.delete(f"{API}/leases/{order['lease_id']}")
    assert_problem(refused, 409, "wants_result")
    await worker.answer(result_of(order["mensagem"], dados=[1]))
    [notice] = await worker.lease("avisos")
    assert notice["mensagem"]["correlation_id"] == "abc"
    assert notice["mensagem"]["status"] == "concluida"
    assert (await client.delete(f"{API}/leases/{notice['lease_id']}")).status_code == 204
    assert_problem(await client.delete(f"{API}/leases/{notice['lease_id']}"), 404, "unknown_id")


async def test_a_ticket_that_was_leased_shows_as_running(client: httpx2.AsyncClient) -> None:
    await client.post(URL, json={**ONE, "correlation_id": "abc"})
    await CurlWorker(client, "curl-1").lease("escavador_youtube")

    async def running() -> Any:
        seen = (await client.get(f"{URL}/abc")).json()
        return (seen["status"], seen["tickets"][0]["status"]) == ("em_execucao", "em_execucao") and seen

    seen = await until(running, "the confirmation of the order is written; a worker may have it before")
    assert seen["tickets"][0]["iniciado_em"] is not None


# -- who works ---------------------------------------------------------------------------------------------------------


async def test_workers_of_this_process(tmp_path: Any) -> None:
    worker = Worker(name="dentro")
    begun, go_on = asyncio.Event(), asyncio.Event()

    @worker.escavador("youtube")
    async def youtube(parametros: dict[str, Any]) -> list[int]:
        begun.set()
        await go_on.wait()
        return [1]

    oraculo = Oraculo(settings_for(tmp_path), workers=[worker])
    async with oraculo, client_of(create_app(oraculo)) as client:
        await client.post(URL, json={**ONE, "correlation_id": "abc"})
        await begun.wait()
        await CurlWorker(client, "fora").lease("escavador_blog", wait=0)
        told = (await client.get(f"{API}/workers")).json()
        inside, outside = told["workers"]
        assert (inside["nome"], inside["transporte"], inside["em_andamento"]) == ("dentro", "processo", 1)
        assert inside["filas"] == ["escavador_youtube"]
        assert (outside["nome"], outside["em_andamento"]) == ("fora", 0)
        (queue,) = [one for one in told["filas"] if one["fila"] == "escavador_youtube"]
        assert (queue["aguardando"], queue["em_andamento"], queue["mais_antiga_s"]) == (0, 1, None)
        assert (queue["consumidores"], queue["respondidas_por_s"]) == (1, 0)
        (other,) = [one for one in told["filas"] if one["fila"] == "escavador_blog"]
        assert other["consumidores"] == 1
        go_on.set()
        assert (await client.get(f"{URL}/abc/result?wait=10")).json()["coletas"][0]["dados"] == [1]

        async def counted() -> bool:
            (queue,) = [
                one
                for one in (await client.get(f"{API}/workers")).json()["filas"]
                if one["fila"] == "escavador_youtube"
            ]
            return bool(queue["enviadas_por_s"] == queue["respondidas_por_s"] > 0)

        await until(counted)
        scraped = (await client.get("/metrics")).text
        assert 'orchestration_queue_consumers{fila="escavador_youtube"} 1.0' in scraped
        assert 'orchestration_queue_sent_total{fila="escavador_youtube"} 1.0' in scraped
        assert 'orchestration_queue_answered_total{fila="escavador_youtube"} 1.0' in scraped


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl on this machine")
async def test_as_curl_would_say_it(served: httpx2.AsyncClient) -> None:
    """The very bytes that the documentation prints."""
    process = await asyncio.create_subprocess_exec(
        "curl", "-sS", "-X", "POST", f"{served.base_url}{URL}", "-H", "Content-Type: application/json", "-d",
        '{"coletas": [{"fonte": "youtube"}], "correlation_id": "abc"}', stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate()
    assert json.loads(out)["correlation_id"] == "abc"


async def test_over_http_an_answer_without_its_token_is_refused_and_kept(tmp_path: Path) -> None:
    """Alone with 403; in a list as `recusados`, and the others count. The right one settles the lease."""
    app = create_app(Oraculo(settings_for(tmp_path, ORACULO_RESULT_TOKENS="require")))
    async with app.state.oraculo as oraculo, client_of(app) as client:
        worker = CurlWorker(client)
        for name in ("um", "dois"):
            await client.post(URL, json={**ONE, "correlation_id": name})
        first, second = [one["mensagem"] for one in await worker.take("escavador_youtube", 2)]
        alone = await client.post(f"{API}/results", json=result_of(first))
        problem = assert_problem(alone, 403, "unauthenticated")
        assert "does not echo the `token`" in problem["detail"]
        told = await worker.answer(
            {**result_of(first), "token": second["token"]}, {**result_of(second), "token": second["token"]}
        )
        assert [(one["indice"], one["motivo"]) for one in told["recusados"]] == [(0, "unauthenticated")]
        assert [one["situacao"] for one in told["resultados"]] == ["applied"]
        kept = (await client.get(f"{API}/dead-letters?motivo=unauthenticated")).json()["dead_letters"]
        assert [one["correlation_id"] for one in kept] == [first["correlation_id"]] * 2
        again = (await client.post(f"{API}/dead-letters/{kept[0]['id']}/requeue")).json()
        assert (again["situacao"], again["motivo"], again["removida"]) == ("quarantined", "unauthenticated", False)
        await worker.answer({**result_of(first), "token": first["token"]})
        assert len(oraculo.leases) == 0
        found = (await client.get("/.well-known/jwks.json")).json()
        assert [key["kty"] for key in found["keys"]] == ["OKP"] and "d" not in found["keys"][0]
        assert (
            'orchestration_dead_letters_total{fila="orquestrador_resultados",motivo="unauthenticated"} 2.0'
            in (await client.get("/metrics")).text
        )


async def test_by_default_orders_have_no_token_and_no_key_is_published(
    client: httpx2.AsyncClient, worker: CurlWorker
) -> None:
    await client.post(URL, json=ONE)
    [order] = await worker.lease("escavador_youtube")
    assert "token" not in order["mensagem"]
    assert (await client.get("/.well-known/jwks.json")).json() == {"keys": []}
    told = await worker.answer({**result_of(order["mensagem"]), "token": "whatever"})
    assert told["aceitos"] == 1


async def test_our_worker_hands_tokens_back(tmp_path: Path) -> None:
    work = Worker()

    @work.escavador("youtube")
    def youtube(parametros: dict[str, Any]) -> str:
        return parametros["canal"]

    settings = settings_for(tmp_path, ORACULO_RESULT_TOKENS="require")
    async with Oraculo(settings, workers=[work]) as oraculo:
        accepted = await oraculo.submit(ONE)
        result = await oraculo.result(accepted.correlation_id, wait=30)
        assert result is not None and result["coletas"][0]["dados"] == "x"
