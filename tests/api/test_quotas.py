"""Limits of a key over HTTP: 429 that names the limit, and nothing is accepted."""

from __future__ import annotations

from typing import Any

from api.conftest import API, ONE, Start, assert_problem, result_of
from api.test_keys import ADMIN, SHARED, bearer, made
from api.test_plans import plan, task


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


async def test_limits_that_cannot_be(started: Start) -> None:
    async with started(ORACULO_API_KEY=SHARED) as client:
        for limits, where in (({"abertas": 0}, "abertas"), ({"por_segundo": 0}, "por_segundo"), ({"x": 1}, "x")):
            wanted = {"role": "leitor", "limites": limits}
            problem = assert_problem(
                await client.post(f"{API}/keys", json=wanted, headers=ADMIN), 422, "invalid_request"
            )
            assert problem["errors"][0]["campo"] == f"limites.{where}"
