"""The application without the layers that its requests never need.

FastAPI puts a layer for telemetry around every request, and one with an exit stack before every route. Telemetry of
its kind is off here, and routes that are called directly have nothing to close: StaticPaths makes the stack for the
others. Everything else stands where it always does: errors of the server outermost, then the middleware of this
application, then the handlers of what endpoints raise.
"""

from __future__ import annotations

from fastapi import FastAPI
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.types import ASGIApp


class Application(FastAPI):
    def build_middleware_stack(self) -> ASGIApp:
        """Put the layers around the router's own way to its routes."""
        handlers = dict(self.exception_handlers)
        by_class, by_status = handlers.pop(Exception, None), handlers.pop(500, None)
        stack: ASGIApp = ExceptionMiddleware(self.router.middleware_stack, handlers=handlers, debug=self.debug)
        for layer, arguments, options in reversed(self.user_middleware):
            stack = layer(stack, *arguments, **options)
        return ServerErrorMiddleware(stack, handler=by_class or by_status, debug=self.debug)
