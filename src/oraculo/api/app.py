"""The application: routes, refusals and guards around one orchestrator."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.routing import Route

from oraculo import __version__
from oraculo.api import (
    brokers,
    dead_letters,
    health,
    journal,
    openapi,
    orchestrations,
    plans,
    problems,
    replicas,
    task_types,
    tickets,
    workers,
    workflows,
)
from oraculo.api.auth import Auth
from oraculo.api.journal import HEARTBEAT_S
from oraculo.api.middleware import Failures, Head, SecurityHeaders
from oraculo.api.paths import CanonicalPath
from oraculo.api.serving import answered
from oraculo.api.tracing import Traced
from oraculo.api.waiting import Waits
from oraculo.bootstrap import Oraculo
from oraculo.dashboard import frame
from oraculo.dashboard import routes as dashboard

ROUTERS = [  # an id is one segment, so no route shadows another; the busiest are asked first
    orchestrations.router,
    journal.router,
    plans.router,
    workflows.router,
    tickets.router,
    task_types.router,
    dead_letters.router,
    workers.router,
    brokers.router,
    replicas.router,
    health.router,
    *dashboard.ROUTERS,
]
BODY_SECONDS = 30.0


def create_app(
    oraculo: Oraculo,
    *,
    body_seconds: float = BODY_SECONDS,
    heartbeat_seconds: float = HEARTBEAT_S,
    routers: Sequence[APIRouter] = ROUTERS,
) -> FastAPI:
    """Serve this orchestrator. One that is not entered yet is entered and left with the app's lifespan; one that is
    entered already stays with whoever entered it. Call `app.state.waits.stop()` before telling the server to exit, so
    that long polls and streams end at once."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        if hasattr(oraculo, "engine"):
            yield
            return
        async with oraculo:
            yield

    app = FastAPI(
        title="Oráculo",
        version=__version__,
        lifespan=lifespan,
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.state.oraculo = oraculo
    app.state.waits = Waits()
    app.state.body_seconds = body_seconds
    app.state.heartbeat_seconds = heartbeat_seconds
    app.openapi = lambda: openapi.document(app)  # type: ignore[method-assign]
    for router in routers:
        app.router.routes.extend(router.routes)  # include_router would look them up anew for every request
    app.add_api_route("/openapi.json", _openapi, include_in_schema=False, response_class=Response)
    for expected in problems.EXPECTED:
        app.add_exception_handler(expected, _refuse)
    # The last one added is the first one asked.
    app.add_middleware(Failures)
    app.add_middleware(Auth, settings=oraculo.settings)
    app.add_middleware(CanonicalPath)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(Head)
    if oraculo.tracer is not None:
        app.add_middleware(Traced, tracer=oraculo.tracer)
    return app


async def _openapi(request: Request) -> Response:
    return answered(openapi.document(request.app))


async def _refuse(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code == 405:
        error.headers = {"Allow": ", ".join(sorted(_methods(request.scope["path"])))}
    if frame.wants_page(request):
        request.state.error = error
        return frame.problem_page(request, problems.problem_of(error))
    return await problems.handle(request, error)


def _methods(path: str) -> set[str]:
    """Every method that some route takes at this path; a single route only knows its own."""
    found: set[str] = set()
    routes: list[Any] = [route for router in ROUTERS for route in router.routes]
    for route in routes:
        if isinstance(route, Route) and route.path_regex.match(path):
            found |= route.methods or set()
    return found | {"HEAD"} if "GET" in found else found or {"GET", "HEAD"}
