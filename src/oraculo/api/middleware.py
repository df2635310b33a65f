"""What holds for every answer: security headers, HEAD wherever there is GET, and no failure without a log line."""

from __future__ import annotations

from typing import Any

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from oraculo.api import problems

log = structlog.get_logger("oraculo.api")

_ALWAYS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
_STRICT_TRANSPORT = (b"strict-transport-security", b"max-age=31536000")
_UNLESS_SET = {
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"cache-control": b"no-store",
}


class SecurityHeaders:
    """`strict_transport`: this server itself speaks TLS, so no proxy tells browsers to stay with it."""

    def __init__(self, app: ASGIApp, strict_transport: bool = False) -> None:
        self.app = app
        self._always = [*_ALWAYS, *([_STRICT_TRANSPORT] if strict_transport else [])]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [*message["headers"], *self._always]
                given = {name for name, _ in message["headers"]}
                headers += [item for item in _UNLESS_SET.items() if item[0] not in given]
                message = {**message, "headers": headers}
            await send(message)

        await self.app(scope, receive, guarded if scope["type"] == "http" else send)


class Head:
    """RFC 9110: GET and HEAD belong together. The routes know GET only."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return

        async def without_body(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        await self.app({**scope, "method": "GET"}, receive, without_body)


class Framing:
    """A request that gives its length in two ways is refused and its connection closed: a proxy in front may have taken
    the other way, and what follows would be read as the request of another client. The parser of `oraculo up` takes no
    such request; parsers of other servers do."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = {name for name, _ in scope["headers"]}
            if b"content-length" in given and b"transfer-encoding" in given:
                await problems.response(problems.AMBIGUOUS_LENGTH, scope["path"])(scope, receive, send)
                return
        await self.app(scope, receive, send)


class Failures:
    """Innermost: what no handler expected becomes a 500 that says nothing of the inside; every 5xx is one log line."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status = 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except Exception as error:
            log.exception("request failed", **_about(scope, status))
            if status:
                raise  # the answer has begun; a broken connection is all that is left to say
            await problems.response(problems.problem_of(error), scope["path"])(scope, receive, send)
            return
        if status >= 500:
            cause = scope.get("state", {}).get("error")
            log.error("request answered with an error", **_about(scope, status), error=str(cause) if cause else None)


def _about(scope: Scope, status: int) -> dict[str, Any]:
    params = scope.get("path_params") or {}
    known = scope.get("state", {}).get("correlation_id")
    return {
        "method": scope["method"],
        "path": scope["path"],
        "status": status or 500,
        "correlation_id": params.get("correlation_id") or known,
    }
