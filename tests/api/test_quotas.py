"""Limits of a key over HTTP: 429 that names the limit, and nothing is accepted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from api.conftest import API, ONE, Start, assert_problem, result_of
from api.test_keys import ADMIN, SHARED, bearer, made
from api.test_plans import plan, task
from oraculo.core.access import Actor, Limits, PrincipalKind
from oraculo.ports.tenants import StoredTenant

JSON = {"Content-Type": "application/json"}


async def test_open_orchestrations(started: Start) -> None:
    async with started(ORACULO_API_KEY=SHARED) as client:
        worker = bearer(await made(client, "trabalhador", queues=["escavador_youtube"]))
        key = await made(client, "operador", limites={"abertas": 2})
        assert key["limites"] == {"abertas": 2, "por_segundo": None}
        other = bearer(await made(client, "operador"))

        async def submit(headers: dict[str, str], name: str) -> Any:
            return await client.post(f"{API}/orchestrations", json={**ONE, "correlation_id": name}, headers=headers)

        mine = bearer(key)
        assert [(await submit(mine, name)).status_code for name in ("a", "b")] == [202, 202]
        refused = await submit(mine, "c")
        problem = assert_problem(refused, 429, "quota")
        assert problem["limite"] == "open" and key["id"] in problem["detail"] and refused.headers["retry-after"]
        assert (await client.get(f"{API}/orchestrations/c", headers=ADMIN)).status_code == 404
        bring = plan("p1", task("t"), correlation_id="d")
        assert_problem(await client.post(f"{API}/plans", json=bring, headers=mine), 429, "quota")
        assert (await submit(other, "e")).status_code == 202
        assert (await submit(ADMIN, "f")).status_code == 202
        leased = (await client.post(f"{API}/queues/escavador_youtube/lease", headers=worker)).json()["mensagens"]
        [one] = [one for one in leased if one["mensagem"]["correlation_id"] == "a"]
        await client.post(f"{API}/results", json=result_of(one["mensagem"]), headers=worker)
        assert (await submit(mine, "c")).status_code == 202  # one has ended


async def test_submissions_in_a_second(started: Start) -> None:
    async with started(ORACULO_API_KEY=SHARED) as client:
        key = bearer(await made(client, "remetente", limites={"por_segundo": 0.001}))
        assert (await client.post(f"{API}/orchestrations", json=ONE, headers=key)).status_code == 202
        refused = await client.post(f"{API}/orchestrations", json=ONE, headers=key)
        problem = assert_problem(refused, 429, "quota")
        assert problem["limite"] == "per_second" and 900 < int(refused.headers["retry-after"]) <= 1000
        assert (await client.get(f"{API}/orchestrations", headers=key)).status_code == 200


async def test_what_is_sent_too_fast_is_refused_unread(started: Start) -> None:
    async with started(ORACULO_API_KEY=SHARED, ORACULO_FLOW_C="on") as client:
        key = {**bearer(await made(client, "remetente", limites={"por_segundo": 0.001})), **JSON}
        assert (await client.post(f"{API}/orchestrations", content="{no JSON", headers=key)).status_code == 400
        assert (await client.post(f"{API}/orchestrations", json=ONE, headers=key)).status_code == 202

        async def endless() -> AsyncIterator[bytes]:
            raise AssertionError("the body was asked for")
            yield b""

        for path in ("orchestrations", "plans", "workflows/start"):
            refused = await client.post(f"{API}/{path}", content=endless(), headers=key)
            assert assert_problem(refused, 429, "quota")["limite"] == "per_second"


async def test_limits_that_cannot_be(started: Start) -> None:
    async with started(ORACULO_API_KEY=SHARED) as client:
        for limits, where in (({"abertas": 0}, "abertas"), ({"por_segundo": 0}, "por_segundo"), ({"x": 1}, "x")):
            wanted = {"role": "leitor", "limites": limits}
            problem = assert_problem(
                await client.post(f"{API}/keys", json=wanted, headers=ADMIN), 422, "invalid_request"
            )
            assert problem["errors"][0]["campo"] == f"limites.{where}"


async def test_a_tenant_over_a_limit_is_told_which_and_others_are_served(started: Start) -> None:
    """Bytes in a second, streams at once, and dead letters that are kept."""
    async with started(ORACULO_API_KEY=SHARED) as client:
        oraculo = client._transport.app.state.oraculo  # type: ignore[attr-defined]
        tight = {"a": Limits(bytes_per_second=400), "b": Limits(streams=1), "c": Limits(dead_letters=1)}
        keys = {name: bearer(await made(client, "admin", tenant=name)) for name in (*tight, "d")}
        for name, limits in tight.items():
            await oraculo.store.put_tenant(StoredTenant(name, oraculo.now(), limits))
        await oraculo._opened.tenants.look()

        async def submit(tenant: str, **more: Any) -> Any:
            return await client.post(f"{API}/orchestrations", json={**ONE, **more}, headers=keys[tenant])

        assert (await submit("a")).status_code == 202
        refused = await submit("a", rotulos=["x" * 90] * 4)
        assert assert_problem(refused, 429, "quota")["limite"] == "bytes_per_second" and refused.headers["retry-after"]

        quotas, actor = oraculo.requests.quotas, Actor("k", PrincipalKind.KEY, "b", frozenset(), "b")
        await submit("b", correlation_id="s")
        close = quotas.open_stream(actor)
        over = await client.get(f"{API}/orchestrations/s/stream", headers=keys["b"])
        assert assert_problem(over, 429, "quota")["limite"] == "streams"
        close()
        await client.post(f"{API}/orchestrations/s/cancel", headers=keys["b"])
        for _ in range(2):  # each ends with its run, and counts no longer
            assert (await client.get(f"{API}/orchestrations/s/stream", headers=keys["b"])).status_code == 200
        assert quotas._streams == {}

        assert (await submit("c")).status_code == 202
        stray = {"correlation_id": "?", "tipo_evento": "resultado_coleta", "payload": {}, "timestamp": "2025-10-14"}
        await client.post(f"{API}/results", json=[stray], headers=keys["c"])
        assert assert_problem(await submit("c"), 429, "quota")["limite"] == "dead_letters"
        assert [(await submit("d")).status_code for _ in range(3)] == [202] * 3
