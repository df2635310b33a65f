"""Many orchestrations at once over HTTP: what is counted, what is done, what is left alone, what is refused."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from api.conftest import API, CurlWorker, Start, assert_problem
from api.test_keys import ADMIN, SHARED, bearer, made
from api.test_retry import answered, failed

URL = f"{API}/orchestrations"
BULK = f"{URL}/bulk"


async def _opened(client: httpx2.AsyncClient, count: int, label: str = "lote:a") -> list[str]:
    bodies = [{"coletas": [{"fonte": "a"}], "rotulos": [label], "correlation_id": f"{label}-{n}"} for n in range(count)]
    told = (await client.post(f"{URL}/batch", json=bodies)).json()["itens"]
    return [one["correlation_id"] for one in told]


async def _done(client: httpx2.AsyncClient, acao: str, filtro: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer = await client.post(BULK, json={"filtro": filtro, "acao": acao, **more})
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


async def _statuses(client: httpx2.AsyncClient, names: list[str]) -> set[str]:
    return {(await client.get(f"{URL}/{name}")).json()["status"] for name in names}


async def test_a_count_changes_nothing_and_is_what_is_done_afterwards(client: httpx2.AsyncClient) -> None:
    mine, others = await _opened(client, 450), await _opened(client, 3, "lote:b")
    counted = await _done(client, "cancel", {"rotulo": "lote:a"}, simular=True)
    assert (counted["total"], counted["feitas"], counted["restantes"], counted["simular"]) == (450, 0, 450, True)
    assert "cancelada" not in await _statuses(client, mine[:3])
    done = await _done(client, "cancel", {"rotulo": "lote:a"}, motivo="pedido errado")
    assert (done["total"], done["feitas"], done["restantes"], done["parou"]) == (450, 450, 0, None)
    assert await _statuses(client, mine) == {"cancelada"}
    assert "cancelada" not in await _statuses(client, others)
    again = await _done(client, "cancel", {"rotulo": "lote:a"})
    assert (again["total"], again["feitas"]) == (0, 0)
    events = (await client.get(f"{API}/system-events")).json()["eventos"]
    [told] = [one for one in events if one["evento"] == "orchestrations_changed_in_bulk" and one["feitas"]]
    assert (told["acao"], told["feitas"], told["motivo"], told["ator"]) == ("cancel", 450, "pedido errado", "local")


async def test_what_is_paused_in_bulk_is_resumed_in_bulk(client: httpx2.AsyncClient) -> None:
    names = await _opened(client, 5)
    await client.post(f"{URL}/{names[0]}/pause")
    paused = await _done(client, "pause", {"fonte": "a"})
    assert (paused["total"], paused["feitas"]) == (4, 4), "the one that was paused before is not named"
    assert all([(await client.get(f"{URL}/{name}")).json()["pausada"] for name in names])
    resumed = await _done(client, "resume", {"source": "a"})
    assert (resumed["total"], resumed["feitas"]) == (5, 5)
    assert (await _done(client, "resume", {"fonte": "a"}))["total"] == 0


async def test_failed_runs_are_tried_again_once_and_their_retries_in_their_place(
    client: httpx2.AsyncClient, worker: CurlWorker
) -> None:
    names = [await failed(client, worker, rotulos=["dia:1"]) for _ in range(2)]
    good = (await client.post(URL, json={"coletas": [{"fonte": "boa"}], "rotulos": ["dia:1"]})).json()["correlation_id"]
    await answered(worker, "boa")
    assert (await client.get(f"{URL}/{good}/result", params={"wait": 20})).json()["status"] == "concluida"
    done = await _done(client, "retry", {"rotulo": "dia:1"})
    assert (done["total"], done["feitas"], done["inalteradas"]) == (2, 2, 0)
    again = await _done(client, "retry", {"rotulo": "dia:1"})
    assert (again["total"], again["feitas"], again["inalteradas"]) == (2, 0, 2)
    for ok in (True, False):
        await answered(worker, "ruim", ok)
    tried = [f"{name}~1" for name in names]
    ended = {(await client.get(f"{URL}/{name}/result", params={"wait": 20})).json()["status"] for name in tried}
    assert ended == {"concluida", "erro"}
    last = await _done(client, "retry", {"rotulo": "dia:1"})
    assert (last["total"], last["feitas"], last["inalteradas"]) == (3, 1, 2), "the retry that failed, not its origin"


async def test_a_failed_child_is_left_to_its_parent(client: httpx2.AsyncClient, worker: CurlWorker) -> None:
    request = {"tarefas": {"f": {"filha": {"coletas": [{"fonte": "ruim"}]}}}, "correlation_id": "mae"}
    await client.post(URL, json=request)
    await answered(worker, "ruim", ok=False)
    assert (await client.get(f"{URL}/mae/result", params={"wait": 20})).json()["status"] == "erro"
    done = await _done(client, "retry", {"texto": "mae"})
    assert (done["total"], done["feitas"], done["inalteradas"]) == (2, 1, 1)


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ({"acao": "cancel"}, "invalid_request", "filtro"),
        ({"filtro": {}, "acao": "cancel"}, "filter_required", "at least one condition"),
        ({"filtro": {"status": "erro"}}, "invalid_request", "acao"),
        ({"filtro": {"status": "erro"}, "acao": "delete"}, "invalid_request", "'cancel'"),
        ({"filtro": {"status": "morta"}, "acao": "cancel"}, "invalid_parameter", "unknown status 'morta'"),
        ({"filtro": {"desde": "x"}, "acao": "cancel"}, "invalid_request", "desde"),
        ({"filtro": {"since": "ontem"}, "acao": "cancel"}, "invalid_parameter", "filtro.since"),
        ({"filtro": {"fonte": "a"}, "acao": "pause", "desfazer": True}, "invalid_request", "desfazer goes with"),
        ({"filtro": {"fonte": "a"}, "acao": "pause", "de": "inicio"}, "invalid_request", "de goes with"),
        ({"filtro": {"fonte": "a"}, "acao": "cancel", "simular": "sim"}, "invalid_request", "simular"),
        ([], "invalid_request", ""),
    ],
)
async def test_what_cannot_be_asked_for_is_refused_and_nothing_is_done(
    client: httpx2.AsyncClient, body: Any, code: str, said: str
) -> None:
    names = await _opened(client, 2)
    problem = assert_problem(await client.post(BULK, json=body), 422, code)
    assert said in str(problem)
    assert not await _statuses(client, names) & {"cancelada"}


async def test_a_key_with_a_limit_gets_as_far_as_it_goes_and_is_told(started: Start) -> None:
    async with started(ORACULO_API_KEY=SHARED) as client:
        mine = bearer(await made(client, "operador", limites={"abertas": 2}))
        for number in range(3):
            body = {"coletas": [{"fonte": "boa"}], "correlation_id": f"r{number}"}
            await client.post(URL, json=body, headers=ADMIN)
            await client.post(f"{URL}/r{number}/cancel", headers=ADMIN)
        asked = {"filtro": {"status": ["cancelled"]}, "acao": "retry"}
        told = (await client.post(BULK, json=asked, headers=mine)).json()
        assert (told["total"], told["feitas"], told["restantes"], told["parou"]["codigo"]) == (3, 2, 1, "quota")
        assert_problem(await client.post(BULK, json=asked, headers=mine), 429, "quota")


async def test_who_may_not_submit_may_not_try_again_and_other_tenants_are_not_touched(started: Start) -> None:
    async with started(ORACULO_API_KEY=SHARED) as client:
        body = {"coletas": [{"fonte": "a"}], "correlation_id": "deles"}
        await client.post(URL, json=body, headers=ADMIN)
        theirs = bearer(await made(client, "operador", tenant="acme"))
        asked = {"filtro": {"fonte": "a"}, "acao": "cancel"}
        assert (await client.post(BULK, json=asked, headers=theirs)).json()["total"] == 0
        reader = bearer(await made(client, "leitor"))
        assert_problem(await client.post(BULK, json=asked, headers=reader), 403, "forbidden")
        sender = bearer(await made(client, "remetente"))
        assert_problem(await client.post(BULK, json=asked, headers=sender), 403, "forbidden")
        assert (await client.get(f"{URL}/deles", headers=ADMIN)).json()["status"] != "cancelada"
