"""Who did what: every event that somebody caused names the key, and so do the records of the system itself."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import httpx2

import oraculo
from api.conftest import API, BOTH, ONE, Start, assert_problem, result_of
from api.test_keys import ADMIN, SHARED, bearer, made
from api.test_plans import plan, task


async def events(client: httpx2.AsyncClient, name: str, **headers: str) -> list[tuple[str, Any]]:
    found = (await client.get(f"{API}/orchestrations/{name}/events", headers=headers)).json()["events"]
    return [(one["evento"], one["ator"]) for one in found if "ator" in one]


async def test_each_event_names_the_key_that_caused_it(started: Start) -> None:
    async with started(ORACULO_API_KEY=SHARED) as client:
        sender, worker = await made(client, "remetente"), await made(client, "trabalhador", queues=["escavador_blog"])
        operator = await made(client, "operador")
        sent = {**BOTH, "correlation_id": "abc"}
        await client.post(f"{API}/orchestrations", json=sent, headers=bearer(sender))
        [order] = (await client.post(f"{API}/queues/escavador_blog/lease", headers=bearer(worker))).json()["mensagens"]
        await client.post(f"{API}/results", json=result_of(order["mensagem"]), headers=bearer(worker))
        await client.post(f"{API}/orchestrations/abc/cancel", headers=bearer(operator))
        assert await events(client, "abc", **ADMIN) == [
            ("orchestration_started", sender["id"]),
            ("ticket_concluded", worker["id"]),
            ("cancel_requested", operator["id"]),
        ]
        shown = (await client.get(f"{API}/orchestrations/abc", headers=ADMIN)).json()
        assert shown["ator"] == sender["id"]


async def test_without_a_key_it_is_this_machine_and_with_the_shared_one_that(
    client: httpx2.AsyncClient, started: Start
) -> None:
    await client.post(f"{API}/orchestrations", json={**ONE, "correlation_id": "abc"})
    assert await events(client, "abc") == [("orchestration_started", "local")]
    async with started(ORACULO_API_KEY=SHARED, ORACULO_STORE="sqlite://") as keyed:
        await keyed.post(f"{API}/orchestrations", json={**ONE, "correlation_id": "abc"}, headers=ADMIN)
        assert await events(keyed, "abc", **ADMIN) == [("orchestration_started", "api-key")]


async def test_who_discards_and_requeues_dead_letters_is_recorded(started: Start) -> None:
    async with started(ORACULO_API_KEY=SHARED) as client:
        operator = await made(client, "operador")
        for name in ("x", "y"):
            stray = {**result_of({"tipo_evento": "iniciar_coleta", "correlation_id": name, "payload": {"fonte": "b"}},
                                 echo=False)}  # fmt: skip
            await client.post(f"{API}/results", json=[stray], headers=ADMIN)
        letters = (await client.get(f"{API}/dead-letters", headers=ADMIN)).json()["dead_letters"]
        await client.delete(f"{API}/dead-letters/{letters[0]['id']}", headers=bearer(operator))
        await client.delete(f"{API}/dead-letters?motivo={letters[0]['motivo']}", headers=bearer(operator))
        told = (await client.get(f"{API}/system-events", headers=ADMIN)).json()["eventos"]
        discarded = [one for one in told if one["evento"] == "dead_letters_discarded"]
        assert [one["ator"] for one in discarded] == [operator["id"]] * 2


async def test_nobody_approves_what_the_same_key_submitted(started: Start) -> None:
    async with started(ORACULO_API_KEY=SHARED) as client:
        author, other = await made(client, "operador"), await made(client, "aprovador")
        wanted = plan("p1", task("a"), requires_approval=True, correlation_id="abc")
        assert (await client.post(f"{API}/plans", json=wanted, headers=bearer(author))).status_code == 202
        where = f"{API}/orchestrations/abc/approve"
        said = {"por": "ceo@empresa.com"}
        assert_problem(await client.post(where, json=said, headers=bearer(author)), 409, "own_plan")
        answer = (await client.post(where, json=said, headers=bearer(other))).json()
        assert answer["aplicada"] is True
        found = await events(client, "abc", **ADMIN)
        assert found[:2] == [("orchestration_started", author["id"]), ("approval_given", other["id"])]


async def test_the_shared_key_approves_as_ever(started: Start) -> None:
    async with started(ORACULO_API_KEY=SHARED) as client:
        wanted = plan("p1", task("a"), requires_approval=True, correlation_id="abc")
        await client.post(f"{API}/plans", json=wanted, headers=ADMIN)
        assert (await client.post(f"{API}/orchestrations/abc/approve", headers=ADMIN)).json()["aplicada"] is True


def test_no_route_and_no_page_leaves_the_actor_out() -> None:
    """The verbs of the service stand for this process itself where none is given, so routes and pages must give one."""
    verbs = {"submit", "submit_many", "cancel", "submit_work"}
    root = Path(oraculo.__file__).parent
    asked = 0
    for path in [*(root / "api").glob("*.py"), *(root / "dashboard").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr in verbs and ast.unparse(node.func.value) == "oraculo":
                asked += 1
                assert "actor" in {keyword.arg for keyword in node.keywords}, f"{path.name}: {ast.unparse(node)}"
    assert asked >= 5
