"""One look-up finds what the search of the router would find, and nothing else."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from fastapi.routing import APIRoute

from api.conftest import API, Start, assert_problem, settings_for
from oraculo.api.app import create_app
from oraculo.api.static_paths import StaticPaths
from oraculo.service import Oraculo


def table_of(app: FastAPI) -> StaticPaths:
    table = app.router.middleware_stack
    assert isinstance(table, StaticPaths)
    return table


def test_every_path_leads_to_the_route_that_the_router_would_choose(tmp_path: Path) -> None:
    app = create_app(Oraculo(settings_for(tmp_path)))
    table = table_of(app)
    assert {("GET", "/health"), ("POST", f"{API}/orchestrations"), ("POST", f"{API}/results")} <= table.routes.keys()
    for (method, path), found in table.routes.items():
        scope = {"type": "http", "method": method, "path": path, "root_path": ""}
        first = next(route for route in app.router.routes if route.matches(scope)[0].name == "FULL")
        assert first is found, f"{method} {path}"
    plain = {route.path for route in app.router.routes if isinstance(route, APIRoute) and "{" not in route.path}
    assert plain == {path for _, path in table.routes}


async def test_what_has_no_entry_is_left_to_the_router(started: Start) -> None:
    async with started() as client:
        assert (await client.get("/health")).json()["status"] == "ok"
        refused = await client.delete("/health")
        assert_problem(refused, 405, "method_not_allowed")
        assert refused.headers["allow"] == "GET, HEAD"
        assert_problem(await client.get(f"{API}/orchestrations/nada"), 404, "unknown_id")
