"""Routes that are called without FastAPI's own way answer as they do with it, refusals included."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI

from api.conftest import API, Start, assert_problem, settings_for
from oraculo.api.app import create_app
from oraculo.api.static_paths import StaticPaths
from oraculo.service import Oraculo

BUSY = (
    ("POST", f"{API}/orchestrations"),
    ("POST", f"{API}/orchestrations/batch"),
    ("POST", f"{API}/results"),
    ("GET", "/health"),
)
SHAPED = (
    ("POST", f"{API}/queues/escavador_a/lease"),
    ("GET", f"{API}/orchestrations/abc/result"),
    ("GET", f"{API}/orchestrations/abc%2Fdef"),
    ("POST", f"{API}/orchestrations/abc/signals/ok"),
)


def table_of(app: FastAPI) -> StaticPaths:
    table = app.router.middleware_stack
    assert isinstance(table, StaticPaths)
    return table


@pytest.fixture
async def table(tmp_path: Path) -> AsyncIterator[StaticPaths]:
    yield table_of(create_app(Oraculo(settings_for(tmp_path))))


async def test_the_busy_routes_are_called_directly(table: StaticPaths) -> None:
    assert all(table.is_direct(table.routes[one]) for one in BUSY)
    for method, path in SHAPED:
        route = table.route_of({"type": "http", "method": method, "path": path, "root_path": ""})
        assert route is not None and table.is_direct(route), path


async def test_every_path_with_parameters_leads_to_the_route_that_the_router_would_choose(table: StaticPaths) -> None:
    for routes in table.shapes.values():
        for route in routes:
            path = route.path_format
            for name in route.param_convertors:
                path = path.replace(f"{{{name}}}", "x1")
            scope = {"type": "http", "method": min(route.methods or ()), "path": path, "root_path": ""}
            first = next(one for one in table.router.routes if one.matches(scope)[0].name == "FULL")
            assert table.route_of(scope) is first, path


async def test_a_query_that_is_not_acceptable_is_refused_in_the_words_of_the_others(started: Start) -> None:
    async with started() as client:
        name = (await client.post(f"{API}/orchestrations", json={"coletas": [{"fonte": "a"}]})).json()["correlation_id"]
        here = f"{API}/orchestrations/{name}/result"
        for query, said in (("wait=x", "wait"), ("wait=301", "wait"), ("nada=1", "nada")):
            refused = await client.get(f"{here}?{query}")
            assert said in assert_problem(refused, 422, "invalid_parameter")["detail"]
        assert (await client.get(f"{here}?wait=9&wait=0.01")).status_code == 202  # the last one counts, as ever
        assert (await client.get(f"{here}?wait=0.01")).status_code == 202
        assert (await client.get(here)).json()["status"] in ("pendente", "em_execucao")


async def test_a_caller_without_the_scope_is_refused_before_anything_is_read(started: Start) -> None:
    async with started(api_key="k" * 40) as client:
        made = await client.post(f"{API}/keys", json={"role": "leitor"}, headers={"X-API-Key": "k" * 40})
        reader = {"X-API-Key": made.json()["key"]}
        refused: httpx2.Response = await client.post(f"{API}/orchestrations", content=b"{", headers=reader)
        assert_problem(refused, 403, "forbidden")
        refused = await client.post(f"{API}/queues/escavador_a/lease", content=b"{", headers=reader)
        assert_problem(refused, 403, "forbidden")
