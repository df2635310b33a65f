"""The application: routes, refusals and guards around one orchestrator."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import Scope as AsgiScope

from oraculo import __version__
from oraculo.api import (
    batch,
    breakers,
    brokers,
    bulk,
    dead_letters,
    destination_pauses,
    health,
    human_input,
    journal,
    keys,
    openapi,
    orchestrations,
    order_data,
    parameter_schemas,
    pauses,
    plans,
    policies,
    predictions,
    problems,
    replicas,
    retries,
    schedules,
    slos,
    task_types,
    ticket_service,
    tickets,
    trails,
    why,
    worker_registry,
    workers,
    workflows,
)
from oraculo.api.access import GuardedRoute, check_declared, needs
from oraculo.api.application import Application
from oraculo.api.auth import Auth
from oraculo.api.body import BodyBudget
from oraculo.api.cookies import CookieLimit
from oraculo.api.credentials import CredentialJudge
from oraculo.api.guessing import GuessLimiter
from oraculo.api.journal import HEARTBEAT_S
from oraculo.api.middleware import Failures, Framing, Head, SecurityHeaders
from oraculo.api.paths import CanonicalPath
from oraculo.api.serving import answered
from oraculo.api.session import Sessions
from oraculo.api.spiffe import SpiffeIdentities
from oraculo.api.static_paths import StaticPaths
from oraculo.api.tracing import Traced
from oraculo.api.waiting import Waits
from oraculo.api.words import AnswerWords
from oraculo.bootstrap.adapters import identity_of
from oraculo.core.access import Scope
from oraculo.dashboard import frame
from oraculo.dashboard import routes as dashboard
from oraculo.loopback import is_loopback
from oraculo.service import Oraculo

ROUTERS = [  # an id is one segment, so no route shadows another; the busiest are asked first
    orchestrations.router,
    batch.router,
    bulk.router,
    journal.router,
    why.router,
    human_input.router,
    pauses.router,
    destination_pauses.router,
    breakers.router,
    retries.router,
    plans.router,
    policies.router,
    workflows.router,
    ticket_service.router,
    tickets.router,
    task_types.router,
    schedules.router,
    predictions.router,
    trails.router,
    slos.router,
    slos.told_router,
    dead_letters.router,
    workers.router,
    parameter_schemas.router,
    worker_registry.router,
    order_data.router,
    brokers.router,
    replicas.router,
    keys.router,
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
    entered already stays with its owner. Call `app.state.waits.stop()` before telling the server to exit, so
    that long polls and streams end at once. RuntimeError: a route does not declare what its callers need."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        if oraculo.is_open:
            yield
            return
        async with oraculo:
            yield

    app = Application(
        title="Oráculo",
        version=__version__,
        lifespan=lifespan,
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # ours is in Traced and in /metrics
    )
    app.state.oraculo = oraculo
    app.state.waits = Waits()
    app.state.guesses = GuessLimiter()
    app.state.identity = identity_of(oraculo.settings, oraculo.clock)
    app.state.judge = CredentialJudge(
        oraculo.settings, lambda: oraculo.keys if oraculo.is_open else None, app.state.guesses, app.state.identity
    )
    app.state.sessions = Sessions(oraculo.settings.api_key)
    app.state.body_budget = BodyBudget()
    app.state.body_seconds = body_seconds
    app.state.heartbeat_seconds = heartbeat_seconds
    app.openapi = lambda: openapi.document(app)  # type: ignore[method-assign]
    for router in routers:
        app.router.routes.extend(router.routes)  # include_router would look them up anew for every request
    app.router.routes.append(GuardedRoute("/openapi.json", _openapi, include_in_schema=False, response_class=Response))
    check_declared(app.router.routes)
    app.router.middleware_stack = StaticPaths(app.router)
    for expected in problems.EXPECTED_ERRORS:
        app.add_exception_handler(expected, _refuse)
    known = oraculo.settings
    # The last one added is the first one asked.
    app.add_middleware(Failures)
    app.add_middleware(
        Auth,
        settings=oraculo.settings,
        sessions=app.state.sessions,
        judge=app.state.judge,
        link_allows=partial(_link_allows, oraculo),
        workloads=SpiffeIdentities(known.tls.spiffe) if known.tls.spiffe else None,
    )
    app.add_middleware(AnswerWords)
    app.add_middleware(CanonicalPath)
    app.add_middleware(SecurityHeaders, strict_transport=bool(known.tls.cert) and not is_loopback(known.host))
    app.add_middleware(Head)
    app.add_middleware(CookieLimit)
    app.add_middleware(Framing)
    if oraculo.tracer is not None:
        app.add_middleware(Traced, tracer=oraculo.tracer)
    return app


def _link_allows(oraculo: Oraculo, scope: AsgiScope) -> bool:
    """Whether the address is a signed one of an order that is still good."""
    references = oraculo.references if oraculo.is_open else None
    if references is None or scope["method"] != "GET":
        return False
    try:
        query = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1"), max_num_fields=10))
    except ValueError:
        return False
    try:
        return references.links.allows(scope["path"].rpartition("/")[2], query, oraculo.now())
    except OSError:  # there is no key to judge it by
        return False


@needs(Scope.DOCS_READ)
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
