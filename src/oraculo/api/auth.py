"""Who may call: a key for everybody when one is set; without one, nobody from another site or beyond this machine.

`/health` and `/ready` are open, by exact path: probes have no keys and learn nothing. So are the page where a key is
given and the style and scripts that it needs. Everything else, unknown routes and `/metrics` included, needs the key,
or the session of a browser whose user gave it. With a session alone, whatever changes something needs its token too.
"""

from __future__ import annotations

import hmac
import ipaddress
from urllib.parse import urlencode, urlsplit

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from oraculo.api import problems
from oraculo.api.problems import ProblemError
from oraculo.api.session import CSRF_HEADER, Sessions, identity_of
from oraculo.errors import SettingsError
from oraculo.settings import Settings

OPEN = frozenset({"/health", "/ready"})
LOGIN = "/login"
STATIC = "/static/"
ACTIONS = "/ui/"  # forms of pages: each carries the token in a field, and checks it (dashboard/forms.py)
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
# Nobody can own a name under these, so a browser cannot be led here by one (RFC 6761, RFC 9476 and friends).
PRIVATE_SUFFIXES = (".localhost", ".test", ".invalid", ".example", ".local", ".internal")


def check_binding(settings: Settings) -> None:
    """No open server beyond loopback: SettingsError unless an API key is set."""
    if not settings.api_key and not is_loopback(settings.host):
        raise SettingsError(
            "ORACULO_HOST",
            settings.host,
            "without ORACULO_API_KEY only loopback: 127.0.0.1, ::1 or localhost",
        )


def is_loopback(host: str) -> bool:
    name = host.strip("[]").lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


class Auth:
    """ASGI middleware for both cases. Another site cannot send a key: the checks of origin are for the other."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self._key = settings.api_key.encode()
        self._sessions = Sessions(settings.api_key)
        own = (settings.host, urlsplit(settings.url).hostname or "")
        self._hosts = frozenset(name.strip("[]").lower() for name in own if name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            wrong = self._key_problem(scope) if self._key else self._origin_problem(scope)
            if wrong is not None and wrong.code == "unauthorized" and _is_page(scope):
                await to_login(scope)(scope, receive, send)
                return
            if wrong is not None:
                await problems.response(wrong, scope["path"])(scope, receive, send)
                return
        await self.app(scope, receive, send)

    def _key_problem(self, scope: Scope) -> ProblemError | None:
        if scope["path"] in OPEN or scope["path"] == LOGIN or scope["path"].startswith(STATIC):
            return None
        given: list[bytes] = []
        for name, value in scope["headers"]:
            if name == b"x-api-key":
                given.append(value)
            elif name == b"authorization" and value[:7].lower() == b"bearer ":
                given.append(value[7:].strip())
        if any([hmac.compare_digest(key, self._key) for key in given]):
            return None
        if not given and self._has_session(scope):
            return None
        return ProblemError(
            "unauthorized",
            "send Authorization: Bearer KEY or X-API-Key: KEY",
            headers={"WWW-Authenticate": 'Bearer realm="oraculo"'},
        )

    def _has_session(self, scope: Scope) -> bool:
        headers = Headers(scope=scope)
        identity = identity_of(self._sessions, headers)
        if identity is None:
            return False
        if scope["method"] in SAFE or scope["path"].startswith(ACTIONS):
            return True
        return self._sessions.is_token(identity, headers.get(CSRF_HEADER, ""))

    def _origin_problem(self, scope: Scope) -> ProblemError | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._answers_for(_hostname(f"//{host}")):
            return ProblemError(
                "wrong_host", f"Host {host[:100]!r}; set ORACULO_URL to the address you use, or set ORACULO_API_KEY"
            )
        if scope["method"] in SAFE:
            return None
        origin = headers.get("origin")
        strange = origin is not None and origin.partition("://")[2] != host and _hostname(origin) not in self._hosts
        if strange or headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            return ProblemError("cross_site", f"Origin {(origin or '')[:100]!r} is not this server")
        return None

    def _answers_for(self, name: str | None) -> bool:
        """Against DNS rebinding: a name that somebody could own must be one that the settings know."""
        if name is None:
            return False
        if name in self._hosts or "." not in name.rstrip(".") or name.endswith(PRIVATE_SUFFIXES):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def _is_page(scope: Scope) -> bool:
    """A person with a browser: shown the way in, not a problem document."""
    return scope["method"] in SAFE and "text/html" in Headers(scope=scope).get("accept", "")


def to_login(scope: Scope) -> RedirectResponse:
    query = scope.get("query_string", b"").decode("latin-1")
    here = scope["path"] + (f"?{query}" if query else "")
    return RedirectResponse(f"{LOGIN}?{urlencode({'next': here})}", 303)


def _hostname(url: str) -> str | None:
    """The host in a URL, empty when it has none; None when it is no URL at all."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return None
