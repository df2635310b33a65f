"""POST /api/v1/orchestrations: accepted, repeated, refused."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from api.conftest import API, BOTH, ONE, Start, assert_problem
from oraculo.service import Oraculo

URL = f"{API}/orchestrations"


async def test_accepted(client: httpx2.AsyncClient) -> None:
    response = await client.post(URL, json=ONE)
    assert response.status_code == 202
    body = response.json()
    assert body["status"] == "pendente"
    assert response.headers["location"] == f"{URL}/{body['correlation_id']}" == body["links"]["self"]
    assert "idempotent-replayed" not in response.headers
    for name in ("self", "result", "events"):
        assert (await client.get(body["links"][name])).status_code in (200, 202)


async def test_the_callers_correlation_id_is_kept(client: httpx2.AsyncClient) -> None:
    response = await client.post(URL, json={**ONE, "correlation_id": "abc123"})
    assert response.json()["correlation_id"] == "abc123"


async def test_same_correlation_id_same_body_is_the_same_run(client: httpx2.AsyncClient, oraculo: Oraculo) -> None:
    request = {**BOTH, "correlation_id": "abc123"}
    assert (await client.post(URL, json=request)).status_code == 202
    await client.post(f"{URL}/abc123/cancel")
    again = await client.post(URL, content=json.dumps(dict(reversed(request.items()))), headers=JSON)
    assert again.status_code == 202
    assert again.headers["idempotent-replayed"] == "true"
    assert again.json()["correlation_id"] == "abc123"
    assert again.json()["status"] == "cancelada"
    assert len((await client.get(URL)).json()["orchestrations"]) == 1


async def test_same_correlation_id_other_body(client: httpx2.AsyncClient) -> None:
    await client.post(URL, json={**ONE, "correlation_id": "abc123"})
    assert_problem(await client.post(URL, json={**BOTH, "correlation_id": "abc123"}), 409, "correlation_id_taken")


JSON = {"Content-Type": "application/json"}


async def test_idempotency_key(client: httpx2.AsyncClient) -> None:
    headers = {"Idempotency-Key": '"8e03978e-40d5-43dd-bc93-6894a57f9324"'}
    first = await client.post(URL, json=ONE, headers=headers)
    again = await client.post(URL, json=ONE, headers=headers)
    assert first.status_code == again.status_code == 202
    assert first.json()["correlation_id"] == again.json()["correlation_id"]
    assert again.headers["idempotent-replayed"] == "true"
    assert again.headers["location"] == first.headers["location"]
    assert_problem(await client.post(URL, json=BOTH, headers=headers), 422, "idempotency_key_reused")
    other_id = {**ONE, "correlation_id": "another"}
    assert_problem(await client.post(URL, json=other_id, headers=headers), 422, "idempotency_key_reused")
    assert (await client.get(f"{URL}/another")).status_code == 404


async def test_fifty_at_once_with_one_key(client: httpx2.AsyncClient) -> None:
    calls = [client.post(URL, json=ONE, headers={"Idempotency-Key": "k"}) for _ in range(50)]
    answers = await asyncio.gather(*calls)
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["correlation_id"] for answer in answers}) == 1
    assert sum("idempotent-replayed" not in answer.headers for answer in answers) == 1
    assert len((await client.get(URL)).json()["orchestrations"]) == 1


async def test_a_key_outlives_the_process(tmp_path: Path, started: Start) -> None:
    headers = {"Idempotency-Key": "k"}
    async with started() as client:
        first = await client.post(URL, json=ONE, headers=headers)
    async with started() as client:
        again = await client.post(URL, json=ONE, headers=headers)
        assert again.json()["correlation_id"] == first.json()["correlation_id"]
        assert again.headers["idempotent-replayed"] == "true"


@pytest.mark.parametrize("key", ["", "a b", "é", "x" * 256, "a\tb"])
async def test_unacceptable_key(client: httpx2.AsyncClient, key: str) -> None:
    headers = [(b"Idempotency-Key", key.encode("latin-1"))]
    assert_problem(await client.post(URL, json=ONE, headers=headers), 400, "invalid_idempotency_key")


async def test_key_sent_twice(client: httpx2.AsyncClient) -> None:
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    assert_problem(await client.post(URL, json=ONE, headers=headers), 400, "invalid_idempotency_key")


async def test_longest_key(client: httpx2.AsyncClient) -> None:
    assert (await client.post(URL, json=ONE, headers={"Idempotency-Key": "x" * 255})).status_code == 202


@pytest.mark.parametrize(
    ("body", "campo"),
    [
        ({"coletas": [{"fonte": ""}]}, "coletas.0.fonte"),
        ({"coletas": [{"fonte": "../x"}]}, "coletas.0.fonte"),
        ({"coletas": [{"fonte": "a"}, {"parametros": {}}]}, "coletas.1.fonte"),
        ({"coletas": [{"fonte": "a", "timeout_s": 0}]}, "coletas.0.timeout_s"),
        ({"coletas": [{"fonte": "a", "timeout_s": -1}]}, "coletas.0.timeout_s"),
        ({"coletas": [{"fonte": "a", "timeout_s": 2**63}]}, "coletas.0.timeout_s"),
        ({"coletas": [{"fonte": "a", "timeout_s": "30"}]}, "coletas.0.timeout_s"),
        ({"coletas": [{"fonte": "a", "max_tentativas": 10**9}]}, "coletas.0.max_tentativas"),
        ({"coletas": [{"fonte": "a", "max_tentativas": 1.5}]}, "coletas.0.max_tentativas"),
        ({"coletas": [{"fonte": "a", "parametros": []}]}, "coletas.0.parametros"),
        ({"coletas": [{"fonte": "a", "outro": 1}]}, "coletas.0.outro"),
        ({"coletas": {}}, "coletas"),
        ({**ONE, "desconhecido": 1}, "desconhecido"),
        ({**ONE, "correlation_id": ""}, "correlation_id"),
        ({**ONE, "correlation_id": "x" * 129}, "correlation_id"),
        ({**ONE, "correlation_id": 7}, "correlation_id"),
        ({**ONE, "fan_in": {"modo": "talvez"}}, "fan_in.modo"),
        ({**ONE, "fan_in": {"modo": "quorum", "minimo": 0}}, "fan_in.minimo"),
        ({**ONE, "notificar": {"fila": "a b"}}, "notificar.fila"),
        ([], "(corpo)"),
        ("x", "(corpo)"),
        (None, "(corpo)"),
        (3, "(corpo)"),
    ],
)
async def test_wrong_fields_are_named(client: httpx2.AsyncClient, body: Any, campo: str) -> None:
    problem = assert_problem(await client.post(URL, content=json.dumps(body), headers=JSON), 422, "invalid_request")
    assert campo in [error["campo"] for error in problem["errors"]]
    assert all(error["mensagem"] for error in problem["errors"])


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"coletas": [], "execucoes": []},
        {**ONE, "fan_in": {"modo": "quorum"}},
        {**ONE, "fan_in": {"modo": "quorum", "minimo": 2}},
        {**ONE, "parametros": {"a": 1}},
        {**ONE, "notificar": {"webhook": "http://169.254.169.254/latest"}},
        {**ONE, "notificar": {"webhook": "ftp://example.com"}},
    ],
)
async def test_requests_that_make_no_plan(client: httpx2.AsyncClient, body: dict[str, Any]) -> None:
    assert_problem(await client.post(URL, json=body), 422, "invalid_plan")
    assert (await client.get(URL)).json()["orchestrations"] == []


async def test_unknown_task_type_lists_the_known_ones(client: httpx2.AsyncClient) -> None:
    problem = assert_problem(await client.post(URL, json={"tipo": "semanal"}), 422, "unknown_task_type")
    assert problem["known"] == []
    await client.put(f"{API}/task-types/mensal", json=ONE)
    problem = assert_problem(await client.post(URL, json={"tipo": "semanal"}), 422, "unknown_task_type")
    assert problem["known"] == ["mensal"]
    assert "mensal" in problem["detail"]
    assert problem["errors"][0]["campo"] == "tipo"


async def test_task_type(client: httpx2.AsyncClient) -> None:
    await client.put(f"{API}/task-types/semanal", json=BOTH)
    response = await client.post(URL, json={"tipo": "semanal", "parametros": {"canal": "y"}})
    shown = (await client.get(response.headers["location"])).json()
    assert shown["tipo"] == "semanal"
    assert [ticket["destino"] for ticket in shown["tickets"]] == [
        "escavador_youtube", "escavador_blog", "executador_relatorio",
    ]  # fmt: skip


async def test_too_much_open_work(started: Start) -> None:
    async with started(ORACULO_MAX_OPEN="1") as client:
        assert (await client.post(URL, json={**ONE, "correlation_id": "a"})).status_code == 202
        response = await client.post(URL, json=ONE)
        assert_problem(response, 503, "busy")
        assert int(response.headers["retry-after"]) > 0
        await client.post(f"{URL}/a/cancel")
        assert (await client.post(URL, json=ONE)).status_code == 202
