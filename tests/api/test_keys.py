"""Keys over HTTP: made by administrators, shown once, and good for what their role may."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx2
import pytest

from api.conftest import API, BOTH, ONE, Start, assert_problem, client_of, result_of, settings_for
from oraculo.api.app import create_app
from oraculo.api.session import Sessions
from oraculo.core.access import SCOPES_OF, AccessRole
from oraculo.service import Oraculo

SHARED = "a-shared-key-of-more-than-thirty-two-letters"
ADMIN = {"Authorization": f"Bearer {SHARED}"}
HTML = {"Accept": "text/html"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


async def made(client: httpx2.AsyncClient, role: str, **more: Any) -> dict[str, Any]:
    answer = await client.post(f"{API}/keys", json={"role": role, **more}, headers=ADMIN)
    assert answer.status_code == 201, answer.text
    document: dict[str, Any] = answer.json()
    return document


def bearer(key: dict[str, Any]) -> dict[str, str]:
    return {"Authorization": f"Bearer {key['key']}"}


async def test_a_key_is_shown_once(started: Start) -> None:
    async with started(ORACULO_API_KEY=SHARED) as client:
        key = await made(client, "operador", expires_s=3600, nota="CI")
        assert key["id"].startswith("k") and key["key"].startswith(f"orc_{key['id']}_")
        assert (key["role"], key["tenant"], key["nota"], key["criada_por"]) == ("operador", "default", "CI", "api-key")
        listed = await client.get(f"{API}/keys", headers=ADMIN)
        assert listed.json() == {"keys": [{name: value for name, value in key.items() if name != "key"}]}
        assert key["key"][-43:] not in listed.text


@pytest.mark.parametrize("role", list(AccessRole))
async def test_who_am_i(started: Start, role: AccessRole) -> None:
    async with started(ORACULO_API_KEY=SHARED) as client:
        queues = ["a"] if role is AccessRole.TRABALHADOR else []
        key = await made(client, role, queues=queues)
        told = (await client.get(f"{API}/whoami", headers=bearer(key))).json()
        assert told == {
            "ator": key["id"],
            "tipo": "worker" if queues else "key",
            "tenant": "default",
            "scopes": sorted(SCOPES_OF[role]),
            "queues": queues or None,
        }
        told = (await client.get(f"{API}/whoami", headers={"X-API-Key": key["key"]})).json()
        assert told["ator"] == key["id"]
        assert (await client.get(f"{API}/whoami", headers=ADMIN)).json()["ator"] == "api-key"


async def test_a_key_does_what_its_role_may(started: Start) -> None:
    async with started(ORACULO_API_KEY=SHARED) as client:
        reader, sender = bearer(await made(client, "leitor")), bearer(await made(client, "remetente"))
        sent = {**ONE, "correlation_id": "abc"}
        refused = await client.post(f"{API}/orchestrations", json=sent, headers=reader)
        problem = assert_problem(refused, 403, "forbidden")
        assert problem["scope"] == "run:submit" and "run:submit" in problem["detail"]
        assert (await client.post(f"{API}/orchestrations", json=sent, headers=sender)).status_code == 202
        assert (await client.get(f"{API}/orchestrations/abc", headers=reader)).status_code == 200
        refused = await client.post(f"{API}/orchestrations/abc/cancel", headers=sender)
        assert assert_problem(refused, 403, "forbidden")["scope"] == "run:cancel"
        for method, path in (("POST", "/keys"), ("GET", "/keys"), ("DELETE", "/keys/x"), ("POST", "/keys/x/rotate")):
            refused = await client.request(method, API + path, headers=sender)
            assert assert_problem(refused, 403, "forbidden")["scope"] == "key:admin"


async def test_rotate_and_revoke(started: Start) -> None:
    async with started(ORACULO_API_KEY=SHARED) as client:
        old = await made(client, "leitor")
        where = f"{API}/keys/{old['id']}"
        new = (await client.post(f"{where}/rotate", headers=ADMIN)).json()
        assert new["id"] == old["id"] and new["key"] != old["key"]
        for key in (old, new):
            assert (await client.get(f"{API}/whoami", headers=bearer(key))).status_code == 200
        newest = (await client.post(f"{where}/rotate", json={"overlap_s": 0}, headers=ADMIN)).json()
        for key in (old, new):
            assert_problem(await client.get(f"{API}/whoami", headers=bearer(key)), 401, "unauthorized")
        gone = await client.delete(where, headers=ADMIN)
        assert gone.json()["situacao"] == "revogada" and gone.json()["revogada_em"]
        refused = await client.get(f"{API}/whoami", headers=bearer(newest))
        assert_problem(refused, 401, "unauthorized")
        assert refused.json()["detail"] == (await client.get(f"{API}/whoami")).json()["detail"]
        assert (await client.delete(where, headers=ADMIN)).json() == gone.json()
        for path in (f"{where}/rotate", f"{API}/keys/knone/rotate"):
            assert_problem(await client.post(path, headers=ADMIN), 404, "unknown_id")
        assert_problem(await client.delete(f"{API}/keys/knone", headers=ADMIN), 404, "unknown_id")
        told = (await client.get(f"{API}/system-events", headers=ADMIN)).json()["eventos"]
        assert [one["evento"] for one in told] == ["key_revoked", "key_rotated", "key_rotated", "key_created"]
        assert {(one["chave"], one["ator"]) for one in told} == {(old["id"], "api-key")}


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({}, "role"),
        ({"role": "rei"}, "role"),
        ({"role": "leitor", "tenant": "Acme"}, "tenant"),
        ({"role": "trabalhador"}, "queues"),
        ({"role": "leitor", "queues": ["a"]}, "queues"),
        ({"role": "leitor", "expires_s": 1}, "expires_s"),
        ({"role": "leitor", "expires_s": "90"}, "expires_s"),
        ({"role": "leitor", "scopes": []}, "scopes"),
    ],
)
async def test_a_key_that_cannot_be(started: Start, body: dict[str, Any], where: str) -> None:
    async with started(ORACULO_API_KEY=SHARED) as client:
        problem = assert_problem(await client.post(f"{API}/keys", json=body, headers=ADMIN), 422, "invalid_request")
        assert [one["campo"] for one in problem["errors"]] == [where]


class TestWorkers:
    async def test_a_worker_leases_and_answers_for_its_queues_only(self, started: Start) -> None:
        async with started(ORACULO_API_KEY=SHARED) as client:
            mine = bearer(await made(client, "trabalhador", queues=["escavador_youtube"]))
            sent = {**BOTH, "correlation_id": "abc"}
            await client.post(f"{API}/orchestrations", json=sent, headers=ADMIN)
            refused = await client.post(f"{API}/queues/escavador_blog/lease", json={"wait": 0}, headers=mine)
            problem = assert_problem(refused, 403, "forbidden")
            assert "escavador_blog" in problem["detail"] and problem["scope"] == "lease:take"
            [own] = (await client.post(f"{API}/queues/escavador_youtube/lease", headers=mine)).json()["mensagens"]
            [other] = (await client.post(f"{API}/queues/escavador_blog/lease", headers=ADMIN)).json()["mensagens"]
            for path in (f"{API}/leases/{other['lease_id']}/extend", f"{API}/leases/{other['lease_id']}/release"):
                assert_problem(await client.post(path, headers=mine), 404, "unknown_id")
            gone = await client.delete(f"{API}/leases/{other['lease_id']}", headers=mine)
            assert_problem(gone, 404, "unknown_id")
            assert (await client.post(f"{API}/leases/{own['lease_id']}/extend", headers=mine)).status_code == 200

            for echo in (True, False):
                forged = result_of(other["mensagem"], echo=echo, dados="FORGED")
                refused = await client.post(f"{API}/results", json=forged, headers=mine)
                assert "escavador_blog" in assert_problem(refused, 403, "forbidden")["detail"]
            both = [forged, result_of(own["mensagem"])]
            told = (await client.post(f"{API}/results", json=both, headers=mine)).json()
            assert told["aceitos"] == 1 and told["resultados"][0]["situacao"] == "applied"
            assert [(one["indice"], one["motivo"]) for one in told["recusados"]] == [(0, "forbidden_queue")]
            honest = await client.post(f"{API}/results", json=result_of(other["mensagem"]), headers=ADMIN)
            assert honest.json()["resultados"][0]["situacao"] == "applied"

    async def test_a_nameless_answer_cannot_be_meant_for_another_queue(self, started: Start) -> None:
        """Two open tickets and no name: which one it is cannot be told, now or later."""
        async with started(ORACULO_API_KEY=SHARED) as client:
            mine = bearer(await made(client, "trabalhador", queues=["escavador_youtube"]))
            await client.post(f"{API}/orchestrations", json={**BOTH, "correlation_id": "abc"}, headers=ADMIN)
            [own] = (await client.post(f"{API}/queues/escavador_youtube/lease", headers=mine)).json()["mensagens"]
            [_] = (await client.post(f"{API}/queues/escavador_blog/lease", headers=ADMIN)).json()["mensagens"]
            nameless = result_of(own["mensagem"], echo=False)
            del nameless["payload"]["fonte"]
            told = (await client.post(f"{API}/results", json=[nameless], headers=mine)).json()
            assert [one["motivo"] for one in told["recusados"]] == ["ambiguous"]

    async def test_an_answer_without_its_ticket_settles_the_lease(self, started: Start) -> None:
        async with started(ORACULO_API_KEY=SHARED) as client:
            mine = bearer(await made(client, "trabalhador", queues=["escavador_youtube"]))
            await client.post(f"{API}/orchestrations", json={**ONE, "correlation_id": "abc"}, headers=ADMIN)
            [own] = (await client.post(f"{API}/queues/escavador_youtube/lease", headers=mine)).json()["mensagens"]
            told = await client.post(f"{API}/results", json=result_of(own["mensagem"], echo=False), headers=mine)
            assert told.json()["resultados"][0]["situacao"] == "applied"
            gone = await client.post(f"{API}/leases/{own['lease_id']}/extend", headers=mine)
            assert_problem(gone, 404, "unknown_id")
            unknown = {**result_of(own["mensagem"]), "correlation_id": "nunca"}
            told = (await client.post(f"{API}/results", json=[unknown], headers=mine)).json()
            assert told["aceitos"] == 0


class TestLoopback:
    async def test_without_a_key_nothing_is_asked_for(self, client: httpx2.AsyncClient) -> None:
        answer = await client.post(f"{API}/keys", json={"role": "leitor"})
        assert answer.status_code == 201 and answer.json()["criada_por"] == "local"
        for headers in ({}, {"X-API-Key": "anything"}, {"Authorization": "Bearer orc_live_x"}):
            assert (await client.get(f"{API}/whoami", headers=headers)).json()["ator"] == "local"
            assert (await client.post(f"{API}/orchestrations", json=ONE, headers=headers)).status_code == 202

    async def test_a_key_that_is_sent_is_judged(self, client: httpx2.AsyncClient) -> None:
        key = (await client.post(f"{API}/keys", json={"role": "leitor"})).json()
        assert (await client.get(f"{API}/whoami", headers=bearer(key))).json()["ator"] == key["id"]
        refused = await client.post(f"{API}/orchestrations", json=ONE, headers=bearer(key))
        assert assert_problem(refused, 403, "forbidden")["scope"] == "run:submit"
        await client.delete(f"{API}/keys/{key['id']}")
        assert_problem(await client.get(f"{API}/whoami", headers=bearer(key)), 401, "unauthorized")
        assert (await client.get("/health", headers=bearer(key))).status_code == 200


async def test_beyond_loopback_keys_of_the_store_are_enough(started: Start) -> None:
    async with started(ORACULO_HOST="0.0.0.0") as client:
        assert_problem(await client.get(f"{API}/whoami"), 401, "unauthorized")
        assert_problem(await client.post(f"{API}/keys", json={"role": "admin"}), 401, "unauthorized")
        assert (await client.get("/login", headers=HTML)).status_code == 200
        forged = {"Cookie": f"oraculo_session={Sessions('').issue()}"}  # signed with no key at all
        assert_problem(await client.get(f"{API}/whoami", headers=forged), 401, "unauthorized")
        assert (await client.post("/login", data={"key": ""})).status_code == 403


async def test_the_dashboard_lets_a_key_in_and_its_session_ends(tmp_path: Path) -> None:
    oraculo = Oraculo(settings_for(tmp_path, ORACULO_API_KEY=SHARED))
    async with oraculo, client_of(create_app(oraculo)) as client:
        key = await made(client, "operador")
        wrong = await client.post("/login", content=urlencode({"key": key["key"] + "x"}), headers=FORM)
        assert wrong.status_code == 403 and "set-cookie" not in wrong.headers
        entered = await client.post("/login", content=urlencode({"key": key["key"], "next": "/runs"}), headers=FORM)
        assert (entered.status_code, entered.headers["location"]) == (303, "/runs")
        cookie = entered.headers["set-cookie"]
        assert "HttpOnly" in cookie and key["key"][-43:] not in cookie
        page = await client.get("/runs", headers=HTML)
        token = page.text.partition('name="csrf" content="')[2].partition('"')[0]
        assert page.status_code == 200 and token
        assert (await client.get(f"{API}/whoami")).json()["ator"] == key["id"]
        assert (await client.post(f"{API}/orchestrations", json=ONE)).status_code == 401
        sent = await client.post(f"{API}/orchestrations", json=ONE, headers={"X-CSRF-Token": token})
        assert sent.status_code == 202
        denied = await client.post(f"{API}/keys", json={"role": "admin"}, headers={"X-CSRF-Token": token})
        assert assert_problem(denied, 403, "forbidden")["scope"] == "key:admin"
        stolen = {"Cookie": cookie.partition(";")[0]}
        left = await client.post("/ui/logout", content=urlencode({"csrf": token}), headers=FORM)
        assert left.headers["location"] == "/login"
        client.cookies.clear()
        assert_problem(await client.get(f"{API}/whoami", headers=stolen), 401, "unauthorized")
