"""Plans that wait, over HTTP: signals, approvals, who may send and decide them, and what is shown meanwhile."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from api.conftest import API, CurlWorker, Start, assert_problem
from api.test_keys import ADMIN, SHARED, bearer, made

URL = f"{API}/orchestrations"


def approval(**more: Any) -> dict[str, Any]:
    return {"espera": {"aprovacao": {"pergunta": "pagar?", **more}}}


PAY: dict[str, Any] = {
    "tarefas": {"ok": approval(), "pago": {"executador": "banco", "depende": ["ok"]}},
    "saida": "${{ ok.dados.por }}",
}


def signals(*names: str) -> dict[str, Any]:
    return {"tarefas": {f"t{n}": {"espera": {"sinal": name}} for n, name in enumerate(names)}}


async def submitted(client: httpx2.AsyncClient, body: dict[str, Any], **headers: str) -> str:
    answer = await client.post(URL, json=body, headers=headers)
    assert answer.status_code == 202, answer.text
    name: str = answer.json()["correlation_id"]
    return name


async def test_a_signal_is_taken_by_the_task_that_waits(client: httpx2.AsyncClient) -> None:
    name = await submitted(client, {**signals("revisao"), "saida": "${{ t0.dados.nota }}"})
    shown = (await client.get(f"{URL}/{name}", headers={"Accept-Language": "en"})).json()
    assert shown["espera"].startswith("waits for the signal revisao (task t0) since 20")
    (ticket,) = shown["tickets"]
    assert (ticket["tipo"], ticket["destino"], ticket["status"], ticket["timeout_s"]) == (
        "espera", None, "em_execucao", None,
    )  # fmt: skip
    assert ticket["espera"] == {
        "tipo": "sinal", "sinal": "revisao", "desde": ticket["iniciado_em"], "prazo": None,
    }  # fmt: skip
    assert shown["agregado"]["tarefas"]["t0"]["espera"] == ticket["espera"]
    assert shown["prazo"] is None
    answer = await client.post(f"{URL}/{name}/signals/revisao", json={"dados": {"nota": 7}})
    assert (answer.status_code, answer.json()) == (202, {"tarefa": "t0"})
    result = (await client.get(f"{URL}/{name}/result", params={"wait": 10})).json()
    assert (result["status"], result["saida"], result["tarefas"]["t0"]["dados"]) == ("concluida", 7, {"nota": 7})
    assert_problem(await client.post(f"{URL}/{name}/signals/revisao"), 409, "run_ended")


async def test_an_early_signal_is_kept(client: httpx2.AsyncClient, worker: CurlWorker) -> None:
    wait = {"espera": {"sinal": "ok"}, "depende": ["x"]}
    name = await submitted(client, {"tarefas": {"x": {"executador": "x"}, "t": wait}})
    answer = await client.post(f"{URL}/{name}/signals/ok", json={"data": [1]})
    assert (answer.status_code, answer.json()) == (202, {"tarefa": None})
    await worker.do("executador_x")
    result = (await client.get(f"{URL}/{name}/result", params={"wait": 10})).json()
    assert result["tarefas"]["t"]["dados"] == [1]


async def test_the_same_key_again_is_the_same_signal(client: httpx2.AsyncClient) -> None:
    name = await submitted(client, signals("ok", "ok"))
    key = {"Idempotency-Key": "k1"}
    for replayed in (None, "true"):
        answer = await client.post(f"{URL}/{name}/signals/ok", json={"dados": 1}, headers=key)
        assert (answer.status_code, answer.json()) == (202, {"tarefa": "t0"})
        assert answer.headers.get("idempotent-replayed") == replayed
    other = await client.post(f"{URL}/{name}/signals/ok", json={"dados": 2}, headers=key)
    assert_problem(other, 422, "idempotency_key_reused")
    assert (await client.post(f"{URL}/{name}/signals/ok", json={"dados": 1})).json() == {"tarefa": "t1"}
    assert (await client.post(f"{URL}/{name}/signals/ok", json={"dados": 1}, headers=key)).json() == {"tarefa": "t0"}


async def test_a_signal_for_nobody_names_those_there_are(client: httpx2.AsyncClient) -> None:
    name = await submitted(client, signals("revisao", "ok", "ok"))
    problem = assert_problem(await client.post(f"{URL}/{name}/signals/revisão"), 422, "unknown_signal")
    assert problem["known"] == ["revisao", "ok"]
    assert "revisao, ok" in problem["detail"]
    assert_problem(await client.post(f"{URL}/nada/signals/ok"), 404, "unknown_id")
    other = await submitted(client, {"coletas": [{"fonte": "a"}]})
    assert_problem(await client.post(f"{URL}/{other}/signals/ok"), 422, "unknown_signal")


async def test_more_than_a_hundred_are_not_kept(client: httpx2.AsyncClient) -> None:
    wait = {"espera": {"sinal": "ok"}, "depende": ["x"]}
    name = await submitted(client, {"tarefas": {"x": {"executador": "x"}, "t": wait}})
    for _ in range(100):
        assert (await client.post(f"{URL}/{name}/signals/ok")).status_code == 202
    assert_problem(await client.post(f"{URL}/{name}/signals/ok"), 429, "too_many_signals")


@pytest.mark.parametrize("verb", ["approve", "reject"])
async def test_a_task_is_approved_or_refused(client: httpx2.AsyncClient, worker: CurlWorker, verb: str) -> None:
    name = await submitted(client, PAY)
    waits = (await client.get(f"{URL}/{name}")).json()["tickets"][0]["espera"]
    assert (waits["tipo"], waits["pergunta"], waits["papeis"]) == ("aprovacao", "pagar?", [])
    answer = await client.post(f"{URL}/{name}/{verb}", json={"por": "ana", "motivo": "visto"})
    assert answer.status_code == 200, answer.text
    assert (answer.json()["aplicada"], answer.json()["decidido_por"]) == (True, "ana")
    if verb == "approve":
        await worker.do("executador_banco")
    result = (await client.get(f"{URL}/{name}/result", params={"wait": 10})).json()
    assert (result["status"], result["saida"]) == (("concluida", "ana") if verb == "approve" else ("cancelada", None))
    decided = result["tarefas"]["ok"]["dados"]
    assert (decided["aprovado"], decided["por"], decided["motivo"]) == (verb == "approve", "ana", "visto")
    assert_problem(await client.post(f"{URL}/{name}/{verb}"), 409, "nothing_waits")


async def test_where_several_wait_the_task_is_named(client: httpx2.AsyncClient) -> None:
    name = await submitted(client, {"tarefas": {"a": approval(), "b": approval(), "s": {"espera": {"sinal": "x"}}}})
    problem = assert_problem(await client.post(f"{URL}/{name}/approve"), 409, "several_wait")
    assert problem["known"] == ["a", "b"]
    problem = assert_problem(await client.post(f"{URL}/{name}/approve", json={"tarefa": "s"}), 422, "unknown_task")
    assert problem["known"] == ["a", "b"]
    assert (await client.post(f"{URL}/{name}/approve", json={"task": "b"})).status_code == 200
    assert_problem(await client.post(f"{URL}/{name}/reject", json={"tarefa": "b"}), 409, "nothing_waits")
    assert (await client.post(f"{URL}/{name}/approve")).status_code == 200  # only `a` is left


async def test_a_request_of_two_stages_waits_for_no_decision(client: httpx2.AsyncClient) -> None:
    name = await submitted(client, {"coletas": [{"fonte": "a"}]})
    assert (await client.post(f"{URL}/{name}/approve")).json()["aplicada"] is False
    assert_problem(await client.post(f"{URL}/{name}/approve", json={"tarefa": "a"}), 422, "unknown_task")


async def test_only_the_roles_of_a_task_decide_it(started: Start) -> None:
    async with started(ORACULO_API_KEY=SHARED) as client:
        sender, operator, approver = [await made(client, role) for role in ("remetente", "operador", "aprovador")]
        body = {"tarefas": {"ok": approval(papeis=["aprovador"])}, "correlation_id": "a"}
        name = await submitted(client, body, **bearer(sender))
        where = f"{URL}/{name}/approve"
        problem = assert_problem(await client.post(where, headers=bearer(operator)), 403, "role_needed")
        assert problem["known"] == ["aprovador"]
        assert_problem(await client.post(where, headers=bearer(sender)), 403, "forbidden")
        decided = await client.post(where, json={"por": "ana"}, headers=bearer(approver))
        assert decided.json()["decidido_por"] == f"ana ({approver['id']})"
        again = await submitted(client, {**body, "correlation_id": "b"}, **bearer(sender))
        assert (await client.post(f"{URL}/{again}/approve", headers=ADMIN)).status_code == 200


async def test_nobody_approves_a_task_that_the_same_key_submitted(started: Start) -> None:
    async with started(ORACULO_API_KEY=SHARED) as client:
        author, other = await made(client, "operador"), await made(client, "operador")
        name = await submitted(client, PAY, **bearer(author))
        assert_problem(await client.post(f"{URL}/{name}/approve", headers=bearer(author)), 409, "own_plan")
        assert (await client.post(f"{URL}/{name}/approve", headers=bearer(other))).status_code == 200


async def test_a_plan_that_waits_is_listed_cancelled_and_tried_again(client: httpx2.AsyncClient) -> None:
    name = await submitted(client, PAY)
    assert (await client.get(URL)).json()["orchestrations"][0]["status"] == "em_execucao"
    assert (await client.get(f"/runs/{name}")).status_code == 200
    assert (await client.get(f"/ui/runs/{name}/data")).status_code == 200
    assert (await client.post(f"{URL}/{name}/cancel")).json()["status"] == "cancelada"
    events = (await client.get(f"{URL}/{name}/events")).json()["events"]
    assert [(one["evento"], one.get("destino", "")) for one in events[:2]] == [
        ("orchestration_started", ""), ("wait_started", None),
    ]  # fmt: skip


async def test_the_journal_says_who_signalled_and_what_ended_each_wait(client: httpx2.AsyncClient) -> None:
    name = await submitted(client, signals("ok"))
    await client.post(f"{URL}/{name}/signals/ok", json={"dados": 1}, headers={"Idempotency-Key": "k1"})
    events = {one["evento"]: one for one in (await client.get(f"{URL}/{name}/events")).json()["events"]}
    received, ended = events["signal_received"], events["wait_ended"]
    wanted = ("k1", "ok", "t0", 1, "local")
    assert tuple(received[key] for key in ("sinal_id", "sinal", "tarefa", "dados", "ator")) == wanted
    assert (ended["desfecho"], ended["status"], ended["sinal_id"]) == ("signalled", "concluida", "k1")
