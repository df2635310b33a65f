"""Retries over HTTP: what is refused and how, two presses, keys, limits, and what is shown."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from api.conftest import API, CurlWorker, Start, assert_problem
from api.test_keys import ADMIN, SHARED, bearer, made

URL = f"{API}/orchestrations"
FAILED = [{"codigo": "x", "mensagem": "não deu", "definitivo": True}]


async def failed(client: httpx2.AsyncClient, worker: CurlWorker, **more: Any) -> str:
    """The name of a run whose second collection failed."""
    body = {"coletas": [{"fonte": "boa"}, {"fonte": "ruim"}], "fan_in": {"modo": "quorum", "minimo": 2}, **more}
    name: str = (await client.post(URL, json=body)).json()["correlation_id"]
    for fonte in ("boa", "ruim"):
        await answered(worker, fonte, fonte == "boa")
    assert (await client.get(f"{URL}/{name}/result", params={"wait": 20})).json()["status"] == "erro"
    return name


async def answered(worker: CurlWorker, fonte: str, ok: bool = True) -> None:
    await worker.do(f"escavador_{fonte}", **({} if ok else {"status": "erro", "erros": FAILED}))


async def test_a_retry_is_a_new_run_that_is_linked_both_ways(client: httpx2.AsyncClient, worker: CurlWorker) -> None:
    name = await failed(client, worker, correlation_id="abc", rotulos=["cliente:acme"])
    answer = await client.post(f"{URL}/{name}/retry", json={"de": "falhas"})
    assert (answer.status_code, answer.headers["location"]) == (202, f"{URL}/abc~1")
    assert (answer.json()["correlation_id"], answer.json()["origem"]) == ("abc~1", "abc")
    again = await client.post(f"{URL}/{name}/retry")
    assert (again.json()["correlation_id"], again.headers["idempotent-replayed"]) == ("abc~1", "true")
    await answered(worker, "ruim")
    result = (await client.get(f"{URL}/abc~1/result", params={"wait": 20})).json()
    assert (result["status"], [one["dados"] for one in result["coletas"]]) == ("concluida", [[1], [1]])
    shown = (await client.get(f"{URL}/abc~1")).json()
    assert (shown["origem"], shown["de"], shown["rotulos"]) == ("abc", "falhas", ["cliente:acme"])
    assert [one.get("reaproveitada") for one in shown["tickets"]] == [True, None]
    assert (await client.get(f"{URL}/abc")).json()["retentativas"] == ["abc~1"]
    listed = (await client.get(f"{URL}/abc/retries")).json()["retentativas"]
    assert [(one["correlation_id"], one["status"]) for one in listed] == [("abc~1", "concluida")]
    following = await client.post(f"{URL}/{name}/retry", json={"from": "start"})
    assert following.json()["correlation_id"] == "abc~2"


@pytest.mark.parametrize(
    ("body", "status", "code", "said"),
    [
        ({"tarefa": "outra"}, 422, "no_such_task", "there are boa, ruim"),
        ({"de": "ontem"}, 422, "invalid_request", "de"),
        ({"de": "falhas", "tarefa": "boa"}, 422, "invalid_request", "not both"),
        ({"desde": 1}, 422, "invalid_request", "desde"),
    ],
)
async def test_what_cannot_be_asked_for_is_refused_with_what_can(
    client: httpx2.AsyncClient, worker: CurlWorker, body: dict[str, Any], status: int, code: str, said: str
) -> None:
    name = await failed(client, worker)
    problem = assert_problem(await client.post(f"{URL}/{name}/retry", json=body), status, code)
    assert said in str(problem)
    assert (await client.get(f"{URL}/{name}")).json()["retentativas"] == []


async def test_a_run_that_is_open_or_did_not_fail_is_refused(client: httpx2.AsyncClient, worker: CurlWorker) -> None:
    name = (await client.post(URL, json={"coletas": [{"fonte": "boa"}]})).json()["correlation_id"]
    assert_problem(await client.post(f"{URL}/{name}/retry"), 409, "run_open")
    await answered(worker, "boa")
    await client.get(f"{URL}/{name}/result", params={"wait": 20})
    assert_problem(await client.post(f"{URL}/{name}/retry"), 409, "nothing_failed")
    assert_problem(await client.post(f"{URL}/nenhuma/retry"), 404, "unknown_id")
    answer = await client.post(f"{URL}/{name}/retry", json={"task": "boa"})
    assert answer.status_code == 202, answer.text


async def test_the_same_key_is_the_same_retry_also_after_its_end(
    client: httpx2.AsyncClient, worker: CurlWorker
) -> None:
    name = await failed(client, worker)
    key = {"Idempotency-Key": "uma-vez"}
    first = (await client.post(f"{URL}/{name}/retry", headers=key)).json()["correlation_id"]
    await answered(worker, "ruim")
    await client.get(f"{URL}/{first}/result", params={"wait": 20})
    again = await client.post(f"{URL}/{name}/retry", headers=key)
    assert (again.json()["correlation_id"], again.headers["idempotent-replayed"]) == (first, "true")
    other = await client.post(f"{URL}/{name}/retry", json={"de": "inicio"}, headers=key)
    assert_problem(other, 422, "idempotency_key_reused")


async def test_limits_of_a_key_hold_for_retries_and_the_run_names_it(started: Start) -> None:
    async with started(ORACULO_API_KEY=SHARED) as client:
        key = await made(client, "operador", limites={"abertas": 1})
        name = (await client.post(URL, json={"coletas": [{"fonte": "boa"}]}, headers=ADMIN)).json()["correlation_id"]
        await client.post(f"{URL}/{name}/cancel", headers=ADMIN)
        mine = bearer(key)
        retried = (await client.post(f"{URL}/{name}/retry", headers=mine)).json()["correlation_id"]
        assert (await client.get(f"{URL}/{retried}", headers=ADMIN)).json()["ator"] == key["id"]
        assert_problem(await client.post(f"{URL}/{name}/retry", json={"de": "inicio"}, headers=mine), 429, "quota")


async def test_a_child_that_failed_goes_on_from_its_failures(client: httpx2.AsyncClient, worker: CurlWorker) -> None:
    inner = {"tarefas": {"a": {"fonte": "boa"}, "b": {"fonte": "ruim", "depende": ["a"]}}, "saida": "${{ b.dados }}"}
    body = {"para_cada": [1, 2], "ao_mesmo_tempo": 1, "faz": {"filha": inner}, "fan_in": {"modo": "todas_ok"}}
    await client.post(URL, json={"correlation_id": "pai", "tarefas": {"m": body}, "saida": "${{ m.resultados }}"})
    for fonte, ok in (("boa", True), ("ruim", True), ("boa", True), ("ruim", False)):
        await answered(worker, fonte, ok)
    assert (await client.get(f"{URL}/pai/result", params={"wait": 20})).json()["status"] == "erro"
    assert (await client.post(f"{URL}/pai/retry")).status_code == 202
    await answered(worker, "ruim")
    result = (await client.get(f"{URL}/pai~1/result", params={"wait": 20})).json()
    assert (result["status"], result["saida"]) == ("concluida", [[1], [1]])
    child = (await client.get(f"{URL}/pai~1%2Fm%2F1")).json()
    assert (child["origem"], child["pai"]["correlation_id"]) == ("pai/m/1", "pai~1")
    assert [one.get("reaproveitada") for one in child["tickets"]] == [True, None]


async def test_a_child_that_is_given_something_else_begins_anew(client: httpx2.AsyncClient, worker: CurlWorker) -> None:
    inner = {"entrada": {"v": "${{ x.dados }}"}, "tarefas": {"a": {"fonte": "boa"}, "b": {"fonte": "ruim"}}}
    tasks = {"x": {"fonte": "x"}, "f": {"filha": inner, "depende": ["x"]}}
    await client.post(URL, json={"correlation_id": "outro", "tarefas": tasks})
    await worker.do("escavador_x", dados=1)
    await answered(worker, "boa")
    await answered(worker, "ruim", False)
    assert (await client.get(f"{URL}/outro/result", params={"wait": 20})).json()["status"] == "erro"
    assert (await client.post(f"{URL}/outro/retry", json={"tarefa": "x"})).status_code == 202
    await worker.do("escavador_x", dados=2)
    await answered(worker, "boa")
    await answered(worker, "ruim")
    result = (await client.get(f"{URL}/outro~1/result", params={"wait": 20})).json()
    assert result["status"] == "concluida"
    assert (await client.get(f"{URL}/outro~1%2Ff")).json().get("origem") is None
