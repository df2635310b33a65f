"""One span per request, when traces are on and the trace is sampled. Probes and scrapes are not traced."""

from __future__ import annotations

from typing import Any

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from oraculo.adapters.clock import MonotonicClock
from oraculo.adapters.sinks.otel import Tracer
from oraculo.adapters.sinks.otel.spans import Span
from oraculo.redaction import redact
from oraculo.wire import trace_context as context

UNTRACED_PATHS = frozenset(("/health", "/ready", "/metrics"))


class Traced:
    """Outermost. What it decided is in the scope: a context, or an empty text when this request is not sampled."""

    def __init__(self, app: ASGIApp, tracer: Tracer) -> None:
        self.app = app
        self._tracer = tracer
        self._now = MonotonicClock().now

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in UNTRACED_PATHS:
            await self.app(scope, receive, send)
            return
        given = context.parse(_header(scope))
        own = self._tracer.request(given)
        if own is None:
            scope[context.HEADER] = given or ""
            await self.app(scope, receive, send)
            return
        scope[context.HEADER] = own
        began, status = self._now(), 500

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        fields = {"trace.id": context.trace_id(own), "span.id": context.span_id(own)}
        try:
            with structlog.contextvars.bound_contextvars(**fields):
                await self.app(scope, receive, watched)
        finally:
            self._tracer.exporter.send(own, [self._span(scope, own, given, began, status)])

    def _span(self, scope: Scope, own: str, given: str | None, began: Any, status: int) -> Span:
        route = getattr(scope.get("route"), "path", None) or "unknown"
        attributes = {
            "http.request.method": scope["method"],
            "http.route": route,
            "url.path": redact(scope["path"]),
            "http.response.status_code": status,
        }
        parent = None if given is None else context.span_id(given)
        error = f"HTTP {status}" if status >= 500 else None
        name = f"{scope['method']} {route}"
        return Span(name, context.span_id(own), parent, began, self._now(), attributes, 0, "server", error)


def _header(scope: Scope) -> str | None:
    for name, value in scope["headers"]:
        if name == b"traceparent":
            return str(value, "latin-1")
    return None
