"""Tenants over HTTP: the same work in two of them, and no byte of one in any answer to the other.

Everything that a tenant sends has its mark in it: names, parameters, data, labels, notes. Then every GET route of the
OpenAPI document and every page is read as the other one, with ids of its own and with those of its twin.
"""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from api.conftest import API, CurlWorker, assert_problem, client_of, result_of, settings_for
from api.test_keys import ADMIN, SHARED, bearer, made
from databases import database
from oraculo.api.access import GuardedRoute
from oraculo.api.app import create_app
from oraculo.service import Oraculo
from waiting import until

STORES = ("sqlite", "postgres")
TWINS = ("default", "acme", "outro")
PAGE = {"Accept": "text/html"}
ROUTES = [
    route for route in create_app(Oraculo(settings_for(Path("/tmp")))).router.routes if isinstance(route, GuardedRoute)
]


@dataclass
class Twin:
    """One tenant at work, and what it can be asked for."""

    tenant: str
    client: httpx2.AsyncClient
    headers: dict[str, str]
    worker: CurlWorker
    ids: dict[str, list[str]] = field(default_factory=dict)

    @property
    def mark(self) -> str:
        """What only this one knows."""
        return f"MARCA-{self.tenant}-QZX"

    async def call(self, method: str, path: str, **options: Any) -> httpx2.Response:
        return await self.client.request(
            method, path, headers={**self.headers, **options.pop("headers", {})}, **options
        )

    def keep(self, parameter: str, value: Any) -> str:
        self.ids.setdefault(parameter, []).append(str(value))
        return str(value)

    async def work(self, seed: int) -> None:
        """The same random workload for the same seed, marked: runs of every kind of end, a task type, a schedule, dead
        letters, signals."""
        rng = random.Random(seed)
        mark = self.mark
        body = {"coletas": [{"fonte": "youtube", "parametros": {"canal": mark}}], "rotulos": [f"cliente:{mark}"]}
        stored = await self.call("PUT", f"{API}/task-types/semanal", json=body)
        assert stored.status_code in (200, 201), stored.text
        self.keep("tipo", "semanal")
        agenda = {"intervalo_s": 86400, "requisicao": {"tipo": "semanal", "rotulos": [mark]}}
        assert (await self.call("PUT", f"{API}/schedules/diario", json=agenda)).status_code == 201
        assert (await self.call("POST", f"{API}/schedules/diario/trigger")).status_code == 202
        self.keep("nome", "diario")
        for number in range(4):
            name = self.keep("correlation_id", f"run-{number}")  # the same in every tenant
            wanted = {**body, "correlation_id": name, "execucoes": [{"executador": "relatorio"}]}
            headers = {"Idempotency-Key": f"key-{number}"}
            answer = await self.call("POST", f"{API}/orchestrations", json=wanted, headers=headers)
            assert answer.status_code == 202 and answer.json()["correlation_id"] == name, answer.text
            assert "Idempotent-Replayed" not in answer.headers
        await self.call("POST", f"{API}/orchestrations/run-3/cancel", json={"motivo": mark})
        for _ in range(3):
            [leased] = await self.worker.lease("escavador_youtube", max=1)
            order = leased["mensagem"]
            assert order["payload"]["parametros"] == {"canal": mark}
            self.keep("ticket_id", order["ticket_id"])
            self.keep("lease_id", leased["lease_id"])
            ok = "ok" if rng.random() < 0.8 else "erro"
            await self.worker.answer(result_of(order, echo=rng.random() < 0.5, status=ok, dados=[mark]))
        stray = {**result_of({**order, "correlation_id": f"nada-{mark}"}, echo=False)}
        told = await self.call("POST", f"{API}/results", json=[stray])
        assert told.json()["aceitos"] == 0, told.text
        letters = (await self.call("GET", f"{API}/dead-letters")).json()["dead_letters"]
        assert len(letters) == 1
        self.keep("id", letters[0]["id"])


@pytest.fixture
async def twins(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[list[Twin]]:
    """On SQLite, unless the test says otherwise."""
    variables = {"ORACULO_API_KEY": SHARED}
    async with AsyncExitStack() as stack:
        if getattr(request, "param", STORES[0]) == "postgres":
            variables["ORACULO_STORE"] = await database()
        oraculo = await stack.enter_async_context(Oraculo(settings_for(tmp_path, **variables)))
        client = await stack.enter_async_context(client_of(create_app(oraculo)))
        found = []
        for tenant in TWINS:
            key = bearer(await made(client, "admin", tenant=tenant, nota=f"MARCA-{tenant}-QZX"))
            own = await stack.enter_async_context(client_of(create_app(oraculo), headers=key))
            found.append(Twin(tenant, client, key, CurlWorker(own, f"MARCA-{tenant}-QZX")))
        for twin in found:
            await twin.work(7)
        yield found


def reading_paths(twin: Twin, other: Twin) -> list[str]:
    """Every GET route, with each parameter as each of both knows it."""
    found = []
    for route in ROUTES:
        if "GET" not in (route.methods or ()):
            continue
        names = re.findall(r"\{(\w+)(?::\w+)?\}", route.path)
        for known in (twin, other):
            values = {name: known.ids.get(name, ["1", "0", "nada"]) for name in names}
            for number in range(max([1, *(len(some) for some in values.values())])):
                path = route.path
                for name in names:
                    value = quote(values[name][number % len(values[name])], safe="")
                    path = re.sub(r"\{" + name + r"(?::\w+)?\}", value, path)
                found.append(path)
    return sorted(set(found) - {"/login"})


@pytest.mark.parametrize("twins", STORES, indirect=True)
async def test_no_byte_of_one_is_in_any_answer_to_another(twins: list[Twin]) -> None:
    default, acme, outro = twins
    leaks: list[tuple[str, str]] = []
    seen: dict[str, int] = {twin.tenant: 0 for twin in twins}
    for twin, other in ((default, acme), (acme, default), (outro, acme)):
        for path in reading_paths(twin, other):
            if path.endswith("/stream"):
                continue  # of an orchestration that has not ended it has no end: the journal is read by /events
            answer = await twin.call("GET", path, headers={} if path.startswith(API) else PAGE)
            assert answer.status_code < 500, (path, answer.text)
            seen[twin.tenant] += twin.mark in answer.text
            inside = re.search(r"espaco_\w+\.(?!(?:escavador|executador|orquestrador)_)[^\"]*", answer.text)
            if inside or any(one.mark in answer.text for one in twins if one is not twin):
                leaks.append((twin.tenant, f"{path}: {inside and inside[0]}"))
    assert leaks == []
    assert min(seen.values()) >= 10, f"the marks are not where they should be: {seen}"


async def test_what_one_has_is_unknown_to_another(twins: list[Twin]) -> None:
    """The same answer as for what nobody has."""
    default, acme, _ = twins
    submitted = await acme.call("POST", f"{API}/orchestrations", json={"tipo": "semanal", "correlation_id": "só-acme"})
    assert submitted.status_code == 202
    ticket = acme.ids["ticket_id"][0]
    for path in ("", "/result", "/events", "/stream"):
        theirs = await default.call("GET", f"{API}/orchestrations/{quote('só-acme')}{path}")
        nobodys = await default.call("GET", f"{API}/orchestrations/nin-acme{path}")
        assert_problem(theirs, 404, "unknown_id")
        assert theirs.text.replace("só-acme", "x").replace(quote("só-acme"), "x") == nobodys.text.replace(
            "nin-acme", "x"
        )
    for way in ("cancel", "approve", "reject", "signals/x"):
        told = await default.call("POST", f"{API}/orchestrations/{quote('só-acme')}/{way}")
        assert_problem(told, 404, "unknown_id")
    assert_problem(await default.call("GET", f"{API}/tickets/{ticket}"), 404, "unknown_id")
    for twin, status in ((default, 200), (acme, 303)):  # the search of the dashboard leads to its run, or nowhere
        found = await twin.call("GET", f"/runs?texto={ticket}", headers=PAGE)
        assert (found.status_code, "espaco_" in found.headers.get("location", "")) == (status, False)
    assert_problem(await default.call("GET", f"{API}/dead-letters/{acme.ids['id'][0]}"), 404, "unknown_id")
    for method, way in (("POST", "/requeue"), ("DELETE", "")):
        told = await default.call(method, f"{API}/dead-letters/{acme.ids['id'][0]}{way}")
        assert_problem(told, 404, "unknown_id")
    assert_problem(await default.call("DELETE", f"{API}/leases/{acme.ids['lease_id'][0]}"), 404, "unknown_id")
    assert (await acme.call("GET", f"{API}/orchestrations/{quote('só-acme')}")).status_code == 200


async def test_no_route_changes_an_orchestration_of_another_tenant(twins: list[Twin]) -> None:
    """Every route that is about an orchestration, as somebody of another tenant who knows its id."""
    default, acme, _ = twins
    await default.call("POST", f"{API}/orchestrations", json={"tipo": "semanal", "correlation_id": "nosso"})
    answers = {}
    for route in ROUTES:
        if "{correlation_id" in route.path:
            path = re.sub(r"\{correlation_id[^}]*\}", "nosso", route.path)
            path = re.sub(r"\{[^}]*\}", "1", path)
            for method in route.methods or ():
                body = {"prioridade": 9} if method == "PATCH" else {}
                answer = await acme.call(method, path, json=body if method != "GET" else None)
                answers[f"{method} {path}"] = answer.status_code
    odd = {way: status for way, status in answers.items() if status not in (401, 403, 404, 415)}
    assert odd == {}
    assert len(answers) >= 15 and 404 in answers.values()
    events = (await default.call("GET", f"{API}/orchestrations/nosso/events")).json()["events"]
    assert {one["evento"] for one in events} <= {"orchestration_started", "tickets_dispatched", "dispatch_confirmed"}


async def test_a_worker_serves_the_queues_of_its_tenant_only(twins: list[Twin]) -> None:
    default, acme, _ = twins
    for queue in ("espaco_acme.executador_relatorio", "espaco_outro.executador_relatorio"):
        asked = await default.call("POST", f"{API}/queues/{queue}/lease", json={"wait": 0})
        assert_problem(asked, 403, "forbidden")
    key = await made(default.client, "trabalhador", tenant="acme", queues=["escavador_youtube"])
    asked = await default.client.post(f"{API}/queues/executador_relatorio/lease", json={"wait": 0}, headers=bearer(key))
    assert_problem(asked, 403, "forbidden")
    for queue in ("escavador_youtube", "espaco_acme.escavador_youtube"):
        asked = await default.client.post(f"{API}/queues/{queue}/lease", json={"wait": 0}, headers=bearer(key))
        assert asked.status_code == 200, asked.text
    wanted = {"coletas": [{"fonte": "youtube"}], "correlation_id": "mesmo"}
    for twin in twins:
        assert (await twin.call("POST", f"{API}/orchestrations", json=wanted)).status_code == 202
    [leased] = await acme.worker.lease("escavador_youtube", max=1)
    order = leased["mensagem"]
    assert order["fila_resposta"] == "espaco_acme.orquestrador_resultados"

    async def status() -> str:
        state = (await acme.call("GET", f"{API}/orchestrations/mesmo")).json()
        found: str = state["tickets"][0]["status"]
        return found

    async def sent() -> bool:
        return await status() == "em_execucao"

    await until(sent, "the confirmation of the order is written; a worker may have it before")
    for envelope in (result_of(order, dados=["de fora"]), result_of(order, echo=False, dados=["de fora"])):
        await default.call("POST", f"{API}/results", json=envelope)  # of `default`'s run of that name, or of nobody's
    assert await status() == "em_execucao"
    await acme.worker.answer(result_of(order, echo=False, dados=["meu"]))
    result = (await acme.call("GET", f"{API}/orchestrations/mesmo/result?wait=10")).json()
    assert (result["correlation_id"], result["coletas"][0]["dados"]) == ("mesmo", ["meu"])


async def test_no_request_sends_to_a_queue_of_another_tenant(twins: list[Twin]) -> None:
    default, acme, outro = twins
    for twin, queue in (
        (default, "espaco_acme.avisos"),
        (acme, "espaco_outro.avisos"),
        (outro, "orquestrador_resultados"),
    ):
        wanted = {"coletas": [{"fonte": "youtube"}], "notificar": {"fila": queue}}
        assert_problem(await twin.call("POST", f"{API}/orchestrations", json=wanted), 422, "invalid_plan")
    wanted = {"coletas": [{"fonte": "youtube"}], "notificar": {"fila": "avisos"}}
    assert (await acme.call("POST", f"{API}/orchestrations", json=wanted)).status_code == 202


async def test_keys_are_made_and_ended_by_their_own_administrators(twins: list[Twin]) -> None:
    default, acme, _ = twins
    for tenant in ("default", "outro", "*"):
        told = await acme.call("POST", f"{API}/keys", json={"role": "leitor", "tenant": tenant})
        assert_problem(told, 422, "invalid_request")
    key = (await acme.call("POST", f"{API}/keys", json={"role": "leitor"})).json()
    assert key["tenant"] == "acme"
    theirs = await made(default.client, "leitor", tenant="outro")
    assert_problem(await acme.call("DELETE", f"{API}/keys/{theirs['id']}"), 404, "unknown_id")
    assert_problem(await acme.call("GET", f"{API}/keys?tenant=outro"), 422, "invalid_parameter")
    assert {one["tenant"] for one in (await acme.call("GET", f"{API}/keys")).json()["keys"]} == {"acme"}
    every = (await default.client.get(f"{API}/keys?tenant=*", headers=ADMIN)).json()["keys"]
    assert {one["tenant"] for one in every} == set(TWINS)
    assert (await default.client.delete(f"{API}/keys/{key['id']}", headers=ADMIN)).status_code == 200
    assert (await default.client.get(f"{API}/whoami", headers=bearer(key))).status_code == 401
    bad = await default.client.post(f"{API}/keys", json={"role": "leitor", "tenant": "Não"}, headers=ADMIN)
    assert_problem(bad, 422, "invalid_request")


async def test_the_shared_key_is_of_the_tenant_default(twins: list[Twin]) -> None:
    default, acme, _ = twins
    assert (await default.client.get(f"{API}/whoami", headers=ADMIN)).json()["tenant"] == "default"
    await acme.call("POST", f"{API}/orchestrations", json={"tipo": "semanal", "correlation_id": "deles"})
    assert_problem(await default.client.get(f"{API}/orchestrations/deles", headers=ADMIN), 404, "unknown_id")
