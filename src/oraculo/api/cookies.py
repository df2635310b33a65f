"""Our own cookies, read strictly: the standard library's parser is quadratic on some Pythons (CVE-2024-7592)."""

from __future__ import annotations

import re

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from oraculo.api import problems
from oraculo.api.problems import ProblemError

COOKIES_MAX_BYTES = 4096
_VALUE = re.compile(r"[\w.~%+/=:-]*", re.ASCII)


def cookies_of(headers: Headers) -> dict[str, str]:
    """Names and values of the request. What is quoted or has other characters than ours have is passed over."""
    found: dict[str, str] = {}
    for header in headers.getlist("cookie"):
        for pair in header[:COOKIES_MAX_BYTES].split(";"):
            name, sign, value = pair.strip().partition("=")
            if sign and _VALUE.fullmatch(value):
                found.setdefault(name, value)
    return found


class CookieLimit:
    """ASGI middleware: a header of cookies that is longer than any of ours is refused before it is looked at."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            size = sum(len(value) for name, value in scope["headers"] if name == b"cookie")
            if size > COOKIES_MAX_BYTES:
                refusal = ProblemError("cookies_too_large", f"{size} bytes; at most {COOKIES_MAX_BYTES} are allowed")
                await problems.response(refusal, scope["path"])(scope, receive, send)
                return
        await self.app(scope, receive, send)
