"""Routes without parameters are found by their path at once.

The router asks its routes one after another, and there are some eighty of them. Probes, submissions and answers have
paths that are known beforehand, so one look-up stands before that search.
"""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send


class StaticPaths:
    """Stands before a router, for every route of it that has no parameter in its path. What it does not know, and a
    method that a path does not take, is left to the router."""

    def __init__(self, router: APIRouter) -> None:
        self._router = router
        self.routes: dict[tuple[str, str], APIRoute] = {}
        for route in router.routes:
            if isinstance(route, APIRoute) and "{" not in route.path:
                for method in route.methods or ():
                    self.routes.setdefault((method, route.path), route)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self.routes.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
        if route is None:
            await self._router.app(scope, receive, send)
            return
        scope.update(router=self._router, route=route, endpoint=route.endpoint, path_params={})
        await route.handle(scope, receive, send)
