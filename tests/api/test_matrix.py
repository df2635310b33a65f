"""Every route × method × actor × tenant: nobody, the seven roles, a key that was revoked; of `default` and of another.

What must happen is told twice: by the declarations of the routes with the table of roles, and by the table below, which
was written by hand and knows nothing of scopes. They have to agree, and the server has to do it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from api.conftest import API, client_of, settings_for
from api.test_keys import ADMIN, SHARED, bearer, made
from oraculo.api.access import GuardedRoute, need_of
from oraculo.api.app import create_app
from oraculo.core.access import INSTALLATION_SCOPES, SCOPES_OF, AccessRole, Scope
from oraculo.service import Oraculo

QUEUE = "escavador_a"
ROLES = {role.value for role in AccessRole}
RUN_READERS = ROLES - {"trabalhador"}
READERS = RUN_READERS - {"aprovador"}
# Who may call what, by hand. A word behind the path is the value of its last parameter.
BY_HAND: list[tuple[set[str], list[str]]] = [
    (
        ROLES,
        [
            "GET /api/v1/whoami", "GET /schemas/mensagem_schema.json", "GET /schemas/plano_schema.json",
            "GET /schemas/avro/{}", "GET /openapi.json",
            "GET /docs", "GET /problems", "GET /problems/{}", "POST /ui/preferences", "POST /ui/logout",
        ],
    ),
    (
        RUN_READERS,
        [
            "GET /api/v1/orchestrations", "GET /api/v1/orchestrations/{}", "GET /api/v1/orchestrations/{}/result",
            "GET /api/v1/orchestrations/{}/retries", "GET /ui/runs/{}/lineage",
            "GET /api/v1/orchestrations/{}/why", "GET /api/v1/tickets/{}/why", "GET /ui/runs/{}/why",
            "GET /api/v1/orchestrations/{}/events", "GET /api/v1/orchestrations/{}/stream",
            "GET /api/v1/workflows/{}", "POST /api/v1/workflows/{}/query", "GET /api/v1/tickets/by-plan/{}",
            "GET /api/v1/tickets/{}", "GET /api/v1/tickets", "GET /api/v1/flow-c/status", "GET /api/v1/task-types",
            "GET /api/v1/task-types/{}", "GET /api/v1/queues/{}/schema",
            "GET /api/v1/schedules", "GET /api/v1/schedules/{}",
            "GET /api/v1/schedules/{}/upcoming", "GET /schedules",
            "GET /sla", "GET /ui/runs/{}/forecast", "GET /api/v1/predictions", "GET /api/v1/slos",
            "GET /api/v1/slos/{}", "GET /api/v1/sla/alerts", "GET /api/v1/sla/freezes",
            "GET /", "GET /ui/overview/figures", "GET /ui/overview/points", "GET /runs",
            "GET /ui/runs/new", "GET /ui/runs/live", "GET /runs/{}", "GET /ui/runs/{}/data", "GET /ui/runs/{}/stream",
            "GET /ui/runs/{}/documents", "GET /ui/runs/{}/waits", "GET /ui/runs/{}/tickets/{}",
            "GET /runs/{}/artifacts/{}",
        ],
    ),
    (
        READERS,
        [
            "GET /api/v1/dead-letters", "GET /api/v1/dead-letters/{}", "GET /dead-letters", "GET /dead-letters/{}",
            "GET /api/v1/workers", "GET /api/v1/brokers", "GET /api/v1/replicas", "GET /api/v1/system-events",
            "GET /api/v1/workers/{}",
            "GET /workers", "GET /ui/workers",
            "GET /queues/{}", "GET /metrics", "GET /api/v1/pauses", "GET /api/v1/breakers",
            "GET /api/v1/policies", "GET /api/v1/trails",
        ],
    ),
    (
        {"remetente", "operador", "admin"},
        [
            "POST /api/v1/orchestrations", "POST /api/v1/orchestrations/batch", "POST /api/v1/plans",
            "POST /api/v1/tickets", "POST /api/v1/tickets/compensation",
            "POST /api/v1/workflows/start", "GET /new", "POST /api/v1/orchestrations/{}/retry",
            "POST /ui/new/preview", "POST /ui/new/submit", "POST /ui/runs/{} retry",
            "POST /api/v1/orchestrations/{}/signals/{}", "POST /ui/runs/{}/waits/{} signal",
        ],
    ),
    (
        {"operador", "admin"},
        [
            "POST /api/v1/orchestrations/bulk", "PATCH /api/v1/orchestrations/{}",
            "POST /api/v1/orchestrations/{}/cancel", "POST /ui/runs/{} cancel", "POST /ui/runs/{}",
            "POST /api/v1/orchestrations/{}/pause", "POST /api/v1/orchestrations/{}/resume",
            "POST /ui/runs/{} pause", "POST /ui/runs/{} resume",
            "POST /api/v1/queues/{}/pause", "POST /api/v1/queues/{}/resume", "POST /api/v1/queues/{}/probe",
            "POST /api/v1/workers/{}/drain", "POST /api/v1/workers/{}/resume", "POST /ui/workers/{}",
            "POST /api/v1/pause", "POST /api/v1/resume", "POST /ui/destinations/{}", "POST /ui/breakers/probe",
            "PUT /api/v1/task-types/{}", "DELETE /api/v1/task-types/{}", "DELETE /api/v1/queues/{}/schema",
            "PUT /api/v1/schedules/{}",
            "PUT /api/v1/slos/{}", "DELETE /api/v1/slos/{}",
            "DELETE /api/v1/schedules/{}", "POST /api/v1/schedules/{}/pause", "POST /api/v1/schedules/{}/resume",
            "POST /api/v1/schedules/{}/trigger", "POST /api/v1/schedules/{}/backfill", "POST /ui/schedules/{}",
            "POST /api/v1/dead-letters/requeue",
            "POST /api/v1/dead-letters/{}/requeue", "DELETE /api/v1/dead-letters", "DELETE /api/v1/dead-letters/{}",
            "POST /ui/dead-letters/{} requeue", "POST /ui/dead-letters/{}", "POST /ui/dead-letters/{}/edited",
        ],
    ),
    (
        {"operador", "aprovador", "admin"},
        [
            "POST /api/v1/orchestrations/{}/approve", "POST /api/v1/orchestrations/{}/reject",
            "POST /ui/runs/{}/waits/{} approve", "POST /ui/runs/{}/waits/{} reject", "POST /ui/runs/{}/waits/{}",
        ],
    ),
    (
        {"trabalhador", "admin"},
        [
            "POST /api/v1/queues/{}/lease", "PUT /api/v1/queues/{}/schema",
            "POST /api/v1/workers", "PUT /api/v1/workers/{}/heartbeat", "DELETE /api/v1/workers/{}",
            "POST /api/v1/workers/heartbeats",
            "POST /api/v1/leases/{}/extend", "POST /api/v1/leases/{}/release",
            "DELETE /api/v1/leases/{}", "POST /api/v1/results", "PATCH /api/v1/tickets/{}/status",
            "GET /api/v1/order-data/{}",
        ],
    ),
    ({"auditor", "admin"}, ["GET /security"]),
    (
        {"admin"},
        [
            "POST /api/v1/keys", "GET /api/v1/keys", "DELETE /api/v1/keys/{}", "POST /api/v1/keys/{}/rotate",
            "GET /api/v1/tickets/{}/token",
        ],
    ),
]  # fmt: skip
# What shows the whole installation: for nobody of another tenant than `default`, by hand too.
OF_INSTALLATION = {
    "GET /metrics", "GET /api/v1/brokers", "GET /api/v1/replicas", "POST /api/v1/pause", "POST /api/v1/resume",
    "GET /api/v1/policies",
}  # fmt: skip
TENANTS = ("default", "acme")
OPEN = {"GET /health", "GET /ready", "GET /.well-known/jwks.json", "GET /login", "POST /login", "GET /static/{}/{}"}


@dataclass(frozen=True)
class Way:
    """One way in: a route, a method and, where that decides, the word in the path. `scope` is None when it is open."""

    name: str
    method: str
    path: str
    scope: Scope | None


def ways(folder: Path) -> list[Way]:
    """Every way in that the application has."""
    found = []
    for route in create_app(Oraculo(settings_for(folder))).router.routes:
        assert isinstance(route, GuardedRoute)
        need = need_of(route)
        plain = re.sub(r"\{[^}]*\}", "{}", route.path)
        for method in route.methods or ():
            found.append(Way(f"{method} {plain}", method, _sample(route.path), need.scope if need else None))
            for word, scope in need.by.items() if need else ():
                path = route.path.replace("{" + need.parameter + "}", word) if need else ""
                found.append(Way(f"{method} {plain} {word}", method, _sample(path), scope))
    return found


def _sample(path: str) -> str:
    """The route with something in the place of its parameters that there is not."""
    path = path.replace("{queue:segment}", QUEUE).replace("{number}", "1").replace("{position}", "0")
    return re.sub(r"\{[^}]*\}", "nada", path)


def test_the_declarations_and_the_table_agree(tmp_path: Path) -> None:
    by_hand = {name: roles for roles, names in BY_HAND for name in names}
    assert sum(len(names) for _, names in BY_HAND) == len(by_hand), "a way in stands in the table twice"
    declared = {
        way.name: {role.value for role in AccessRole if way.scope in SCOPES_OF[role]}
        for way in ways(tmp_path)
        if way.scope is not None
    }
    assert declared == by_hand
    assert {way.name for way in ways(tmp_path) if way.scope in INSTALLATION_SCOPES} == OF_INSTALLATION
    assert {way.name for way in ways(tmp_path) if way.scope is None} == OPEN


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    oraculo = Oraculo(settings_for(tmp_path, ORACULO_API_KEY=SHARED, ORACULO_FLOW_C="on"))
    async with oraculo, client_of(create_app(oraculo)) as client:
        yield client


async def ask(client: httpx2.AsyncClient, way: Way, headers: dict[str, str]) -> tuple[int, str, str]:
    """Status, code and scope of the answer."""
    body = {"wait": 0} if way.path.endswith("/lease") else None
    answer = await client.request(way.method, way.path, headers=headers, json=body)
    if answer.headers.get("content-type") != "application/problem+json":
        return answer.status_code, "", ""
    problem = answer.json()
    return answer.status_code, problem["code"], problem.get("scope", "")


@pytest.mark.parametrize("role", sorted(ROLES))
async def test_a_role_may_what_the_table_says_and_no_more(
    client: httpx2.AsyncClient, tmp_path: Path, role: str
) -> None:
    by_hand = {name: role in roles for roles, names in BY_HAND for name in names}
    wrong = {}
    for tenant in TENANTS:
        queues = [QUEUE] if role == "trabalhador" else []
        key = bearer(await made(client, role, queues=queues, tenant=tenant))
        for way in ways(tmp_path):
            status, code, scope = await ask(client, way, key)
            if way.scope is None or (by_hand[way.name] and (tenant == "default" or way.name not in OF_INSTALLATION)):
                good = status < 500 and code not in ("unauthorized", "forbidden")
            else:
                good = (status, code, scope) == (403, "forbidden", way.scope.value)
            if not good:
                wrong[tenant, way.name] = (status, code, scope)
        told = (await client.get(f"{API}/whoami", headers=key)).json()
        assert told["tenant"] == tenant
    assert wrong == {}


@pytest.mark.parametrize("who", ["nobody", "revoked", "expired by rotation"])
async def test_who_has_no_good_key_gets_nothing(client: httpx2.AsyncClient, tmp_path: Path, who: str) -> None:
    headers: dict[str, str] = {}
    if who != "nobody":
        key = await made(client, "admin")
        headers = bearer(key)
        if who == "revoked":
            await client.delete(f"{API}/keys/{key['id']}", headers=ADMIN)
        else:
            await client.post(f"{API}/keys/{key['id']}/rotate", json={"overlap_s": 0}, headers=ADMIN)
    answers = {way.name: await ask(client, way, headers) for way in ways(tmp_path)}
    shut = {name: answer for name, answer in answers.items() if name not in OPEN}
    codes = {"too_many_failures", "unauthorized"} if headers else {"unauthorized"}
    assert {code for _, code, _ in shut.values()} <= codes
    assert {status for status, _, _ in shut.values()} <= {401, 429}
    assert all(answers[name][1] not in codes for name in OPEN)
