"""What a caller needs for each route, declared beside the route and asked before it runs.

    @router.get("/things")
    @needs(Scope.RUN_READ)
    async def things() -> Response: …

`check_declared` refuses to start an application with a route that lacks a declaration, so none can be forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from oraculo.api.problems import ProblemError
from oraculo.core.access import Actor, Scope
from oraculo.service import Oraculo

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])

# No credential is asked for.
OPEN_ROUTES = frozenset({"/health", "/ready", "/.well-known/jwks.json", "/login", "/static/{version}/{name:path}"})


@dataclass(frozen=True, slots=True)
class Need:
    """`scope` is needed; where one route does several things, `by` names them: path parameter → word → scope. What
    `submits` opens a run whatever its body says, so that a caller whose rate is used up is refused unread."""

    scope: Scope
    parameter: str = ""
    by: Mapping[str, Scope] = field(default_factory=dict)
    submits: bool = False

    def of(self, path_params: Mapping[str, Any]) -> Scope:
        return self.by.get(path_params.get(self.parameter, ""), self.scope)


_DECLARED: dict[Callable[..., Any], Need] = {}


def needs(scope: Scope, parameter: str = "", *, submits: bool = False, **by: Scope) -> Callable[[Endpoint], Endpoint]:
    """Declare what a caller needs for this endpoint."""

    def declare(endpoint: Endpoint) -> Endpoint:
        _DECLARED[endpoint] = Need(scope, parameter, by, submits)
        return endpoint

    return declare


def need_of(route: BaseRoute) -> Need | None:
    """What a route declares; None when it declares nothing."""
    return _DECLARED.get(route.endpoint) if isinstance(route, GuardedRoute) else None


def actor_of(request: Request) -> Actor:
    """The caller of this request."""
    actor: Actor = request.state.actor
    return actor


class GuardedRoute(APIRoute):
    """A route that asks the actor of a request for the declared scope before anything of the request is read."""

    def refuse(self, scope: AsgiScope) -> None:
        """Raise the problem `forbidden` unless the caller may do this, QuotaError when its rate is used up."""
        need = _DECLARED.get(self.endpoint)
        if need is not None and scope["method"] in (self.methods or ()):
            wanted = need.of(scope["path_params"])
            actor: Actor = scope["state"]["actor"]
            if wanted not in actor.scopes:
                raise ProblemError("forbidden", f"the scope {wanted} is needed", scope=wanted)
            if need.submits:
                oraculo: Oraculo = scope["app"].state.oraculo
                if oraculo.is_open:
                    oraculo.requests.quotas.refuse_spent(actor)

    async def handle(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        self.refuse(scope)
        await super().handle(scope, receive, send)


def check_declared(routes: Sequence[BaseRoute]) -> None:
    """Raise unless every route either declares what it needs or is one of the few that are open."""
    for route in routes:
        path = route.path if isinstance(route, APIRoute) else ""
        if need_of(route) is None and not (isinstance(route, APIRoute) and path in OPEN_ROUTES):
            raise RuntimeError(f"the route {path or route!r} declares no scope")
