"""Routes are found at once, and called without detours.

The router asks its routes one after another, and there are more than a hundred of them. Probes, submissions and answers
have paths that are known beforehand: one look-up finds them. Of the others, a handful at most have the same shape as a
path: as many segments, and the same word behind `/api/v1/`.
"""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from oraculo.api import paths
from oraculo.api.access import GuardedRoute
from oraculo.api.direct_calls import direct_call

_BELOW_API = paths.API.count("/") + 1  # where the word stands that tells resources apart
Shape = tuple[str, int, str]  # method, slashes, that word


class StaticPaths:
    """Stands before a router, for every route of it that has no parameter in its path, and for those of the API whose
    parameters are one segment each. What it does not know, and a method that a path does not take, is left to the
    router. What is not called directly has the exit stack that FastAPI closes files with."""

    def __init__(self, router: APIRouter) -> None:
        self.router = router
        self._others = AsyncExitStackMiddleware(router.app)
        self.routes: dict[tuple[str, str], APIRoute] = {}
        self.shapes: dict[Shape, list[APIRoute]] = {}
        self._calls: dict[int, ASGIApp] = {}  # by the id of the route
        self._direct: set[int] = set()
        for route in router.routes:
            if not isinstance(route, APIRoute):
                continue
            call = direct_call(route) if isinstance(route, GuardedRoute) else None
            self._calls[id(route)] = AsyncExitStackMiddleware(route.handle) if call is None else call
            if call is not None:
                self._direct.add(id(route))
            for method in route.methods or ():
                if "{" not in route.path:
                    self.routes.setdefault((method, route.path), route)
                elif _has_shape(route.path):
                    self.shapes.setdefault(_shape(method, route.path), []).append(route)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self.route_of(scope) if scope["type"] == "http" else None
        if route is None:
            await self._others(scope, receive, send)
        else:
            await self._calls[id(route)](scope, receive, send)

    def route_of(self, scope: Scope) -> APIRoute | None:
        """The route of a request, which is told to its scope; None when it is the router's to find."""
        route = self.routes.get((scope["method"], scope["path"]))
        if route is not None:
            scope.update(router=self.router, route=route, endpoint=route.endpoint, path_params={})
            return route
        for route in self.shapes.get(_shape(scope["method"], scope["path"]), ()):
            match, found = route.matches(scope)
            if match is Match.FULL:
                scope.update(found, router=self.router)
                return route
        return None

    def is_direct(self, route: APIRoute) -> bool:
        """Whether the route is called without FastAPI's way."""
        return id(route) in self._direct


def _shape(method: str, path: str) -> Shape:
    parts = path.split("/", _BELOW_API + 1)
    return method, path.count("/"), parts[_BELOW_API] if len(parts) > _BELOW_API else ""


def _has_shape(path: str) -> bool:
    """Whether a path with parameters can be told by its shape."""
    begins = path.startswith(f"{paths.API}/") and not path[len(paths.API) + 1 :].startswith("{")
    return begins and ":path}" not in path
