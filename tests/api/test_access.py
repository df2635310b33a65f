"""Every route, command and queue says what it needs, and an application with one that does not cannot be made."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest
from fastapi import APIRouter, WebSocket
from starlette.responses import Response
from starlette.routing import Mount, Route, WebSocketRoute

from api.conftest import assert_problem, client_of, settings_for
from oraculo.api import auth, credentials
from oraculo.api.access import OPEN_ROUTES, GuardedRoute, need_of, needs
from oraculo.api.app import ROUTERS, create_app
from oraculo.cli import main
from oraculo.core.access import LOCAL, Actor, Scope
from oraculo.runtime.consumers import QueueConsumers
from oraculo.service import Oraculo


async def endpoint() -> Response:
    return Response("done")


async def socket(websocket: WebSocket) -> None:
    await websocket.accept()


@needs(Scope.RUN_CANCEL, "what", look=Scope.RUN_READ)
async def guarded(what: str) -> Response:
    return Response(what)


def router_of(route: Any) -> APIRouter:
    router = APIRouter()
    router.routes.append(route)
    return router


@pytest.mark.parametrize(
    "route",
    [
        GuardedRoute("/new", endpoint),
        Route("/new", endpoint),
        Route("/health", endpoint),
        Mount("/new", routes=[Route("/inside", endpoint)]),
        WebSocketRoute("/new", socket),
    ],
    ids=["no declaration", "not guarded", "not guarded, with the name of an open one", "mount", "web socket"],
)
def test_an_application_with_an_undeclared_route_cannot_be_made(tmp_path: Path, route: Any) -> None:
    with pytest.raises(RuntimeError, match="declares no scope"):
        create_app(Oraculo(settings_for(tmp_path)), routers=[*ROUTERS, router_of(route)])


def test_open_routes_are_five(tmp_path: Path) -> None:
    routes = create_app(Oraculo(settings_for(tmp_path))).router.routes
    undeclared = {route.path for route in routes if need_of(route) is None}  # type: ignore[attr-defined]
    jwks = "/.well-known/jwks.json"
    assert undeclared == OPEN_ROUTES == {"/health", "/ready", jwks, "/login", "/static/{version}/{name:path}"}


async def test_what_lacks_the_scope_is_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Actor("ana", LOCAL.kind, "default", frozenset({Scope.RUN_READ}))
    for module in (auth, credentials):
        monkeypatch.setattr(module, "LOCAL", reader)
    route = GuardedRoute("/do/{what}", guarded, methods=["POST"])
    app = create_app(Oraculo(settings_for(tmp_path)), routers=[*ROUTERS, router_of(route)])
    async with client_of(app) as client:
        assert (await client.post("/do/look")).text == "look"
        problem = assert_problem(await client.post("/do/other"), 403, "forbidden")
        assert problem["scope"] == "run:cancel"
        assert_problem(await client.get("/do/look"), 405, "method_not_allowed")
        refused = await client.post("/api/v1/orchestrations", content=b"not read")
        assert assert_problem(refused, 403, "forbidden")["scope"] == "run:submit"


async def test_connections_of_another_kind_reach_no_route(tmp_path: Path) -> None:
    app = create_app(Oraculo(settings_for(tmp_path)))
    sent: list[Any] = []

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "websocket", "path": "/", "raw_path": b"/", "query_string": b"", "headers": []}
    await app(scope, receive, send)
    assert sent == []


def test_every_command_says_what_it_needs() -> None:
    declared = {scope for route in main.COMMANDS.values() for _, _, scope, _ in route if scope is not None}
    routes = {need.scope for router in ROUTERS for route in router.routes if (need := need_of(route)) is not None}
    assert declared <= routes


def test_a_command_that_asks_a_server_declares_it() -> None:
    """Commands without a scope never make a client."""
    for commands in main.COMMANDS.values():
        for _, target, scope, _ in commands:
            module, _, function = target.partition(":")
            source = (Path(main.__file__).parent / f"{module}.py").read_text(encoding="utf-8")
            body = next(n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef) and n.name == function)
            asks = "inputs.client(" in ast.unparse(body)
            assert not (asks and scope is None), target


async def test_every_queue_that_is_listened_to_says_what_its_messages_do(tmp_path: Path) -> None:
    async with Oraculo(settings_for(tmp_path, ORACULO_FLOW_C="on")) as oraculo:
        scopes = oraculo.consumers.scopes
        assert set(scopes) == oraculo.consumers.queues
        assert scopes["orquestrador_resultados"] is Scope.RESULT_WRITE
        assert scopes["orquestrador_requisicoes"] is Scope.RUN_SUBMIT
    for verb in (QueueConsumers.answers, QueueConsumers.requests, QueueConsumers.commands):
        assert inspect.signature(verb).parameters["scope"].default is inspect.Parameter.empty


def test_the_openapi_document_says_what_each_route_needs(tmp_path: Path) -> None:
    paths = create_app(Oraculo(settings_for(tmp_path))).openapi()["paths"]
    said = {(path, method): one.get("x-scope") for path, ways in paths.items() for method, one in ways.items()}
    assert {path for (path, _), scope in said.items() if scope is None} == {
        "/health",
        "/ready",
        "/.well-known/jwks.json",
    }
    assert said["/api/v1/orchestrations/{correlation_id}/cancel", "post"] == "run:cancel"
    assert all(("security" in paths[path][method]) == (scope is not None) for (path, method), scope in said.items())
